// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// JSON lines and the NumPy array format, version 1.0.
#include "serving/ResultWriter.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

namespace quire::serving {

using Json = nlohmann::ordered_json;

/// Bytes of the NumPy header, which is padded so that the number of rows can be
/// filled in at the end.
static constexpr size_t headerBytes = 128;

static const char *reasonName(FinishReason reason) {
  switch (reason) {
  case FinishReason::Length:
    return "length";
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Error:
    return "error";
  }
  return "error";
}

static Json milliseconds(double value) { return value < 0 ? Json() : Json(std::round(value * 1000) / 1000); }

std::string resultLine(const Request &request, const Result &result) {
  Json line;
  switch (request.idKind) {
  case Request::IdKind::None:
    line["id"] = nullptr;
    break;
  case Request::IdKind::Text:
    line["id"] = request.id;
    break;
  case Request::IdKind::Integer:
    line["id"] = Json::parse(request.id);
    break;
  }
  line["tokens"] = result.tokens;
  line["finish_reason"] = reasonName(result.reason);
  line["prompt_tokens"] = request.prompt.size();
  line["ttft_ms"] = milliseconds(result.firstTokenMs);
  line["decode_ms_per_token"] = milliseconds(result.decodeMsPerToken);
  if (result.reason == FinishReason::Error)
    line["error"] = result.error;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool ResultWriter::check(const OutputFile &file, bool ok) {
  if (!ok && error_.empty())
    error_ = file.error();
  return ok;
}

bool ResultWriter::open(const std::string &path, const std::string &logitsFolder, int64_t vocabulary) {
  vocabulary_ = vocabulary;
  return (logitsFolder.empty() || openFolder(logitsFolder)) && check(results_, results_.open(path, OutputFile::Keep::Flushed));
}

ResultWriter::Folder::~Folder() {
  if (isMade)
    ::rmdir(path.c_str());
}

/// Permissions say too little (a file system may be read-only or full), so a file is made for a moment.
bool ResultWriter::openFolder(const std::string &path) {
  auto refuse = [&](const std::string &why) {
    error_ = path + ": " + why;
    return false;
  };
  folder_.path = path;
  folder_.isMade = ::mkdir(path.c_str(), 0777) == 0;
  struct stat info;
  if (!folder_.isMade && (errno != EEXIST || ::stat(path.c_str(), &info) != 0))
    return refuse(std::strerror(errno));
  if (!folder_.isMade && !S_ISDIR(info.st_mode))
    return refuse("expected a folder, but got a file");
  std::string probe = path + "/.quire-XXXXXX";
  int descriptor = ::mkstemp(probe.data());
  if (descriptor < 0)
    return refuse(std::string("no file can be made in this folder: ") + std::strerror(errno));
  ::close(descriptor);
  ::unlink(probe.c_str());
  return true;
}

std::string ResultWriter::header(int64_t rows) const {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(headerBytes - 10);
  text += '\0';
  text += "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
          std::to_string(vocabulary_) + "), }";
  text.resize(headerBytes - 1, ' ');
  return text + '\n';
}

bool ResultWriter::addLogits(const Request &request, const float *row) {
  if (folder_.path.empty())
    return true;
  std::unique_ptr<Rows> &rows = logits_[request.line];
  if (!rows) {
    rows = std::make_unique<Rows>();
    std::string start = header(0);
    if (!check(rows->file, rows->file.open(folder_.path + "/" + request.id + ".npy") &&
                               rows->file.write(start.data(), start.size())))
      return false;
  }
  ++rows->count;
  return check(rows->file, rows->file.write(row, static_cast<size_t>(vocabulary_) * sizeof(float)));
}

bool ResultWriter::addResult(const Request &request, const Result &result) {
  auto rows = logits_.find(request.line);
  if (rows != logits_.end()) {
    std::string start = header(rows->second->count);
    OutputFile &file = rows->second->file;
    if (!check(file, file.rewrite(0, start.data(), start.size()) && file.finish()))
      return false;
    logits_.erase(rows);
  }
  std::string line = resultLine(request, result) + "\n";
  return check(results_, results_.write(line.data(), line.size()) && results_.flush());
}

bool ResultWriter::finish() {
  folder_.isMade = false; // now it is the caller's
  logits_.clear();
  return check(results_, results_.finish());
}

} // namespace quire::serving
