// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes results as JSON lines while they come in, and logits as NumPy files.
#ifndef QUIRE_RUNTIME_SERVING_RESULTWRITER_H
#define QUIRE_RUNTIME_SERVING_RESULTWRITER_H

#include "serving/OutputFile.h"
#include "serving/Request.h"

#include <map>
#include <memory>
#include <string>

namespace quire::serving {

/// The JSON of one result, without the newline.
std::string resultLine(const Request &request, const Result &result);

class ResultWriter {
public:
  /// `logitsFolder` empty: logits are not written. Made if missing, and checked
  /// for being writable. False on failure, with the reason in error(). Without
  /// finish() nothing is left, not even the folder if it was made here.
  bool open(const std::string &path, const std::string &logitsFolder, int64_t vocabulary);

  /// One more row of a request's logits. Their file stays open until the
  /// request's result, so at most as many as the scheduler lets begin.
  bool addLogits(const Request &request, const float *row);
  bool addResult(const Request &request, const Result &result);

  /// Makes the results appear under their name; logits of requests without a
  /// result are dropped.
  bool finish();

  const std::string &error() const { return error_; }

private:
  struct Rows {
    OutputFile file;
    int64_t count = 0;
  };

  /// Removes the folder if it was made here and is empty.
  struct Folder {
    std::string path;
    bool isMade = false;
    ~Folder();
  };

  bool openFolder(const std::string &path);
  bool check(const OutputFile &file, bool ok);
  std::string header(int64_t rows) const;

  Folder folder_; // destroyed last: the results may lie in it
  OutputFile results_;
  int64_t vocabulary_ = 0;
  std::map<int64_t, std::unique_ptr<Rows>> logits_; // by line of the request
  std::string error_;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_RESULTWRITER_H
