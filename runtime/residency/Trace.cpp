// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Traces as trace event JSON (the format of chrome://tracing and Perfetto), a line for each event.
#include "residency/Trace.h"

#include "core/Json.h"
#include "model/FileReader.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <sys/stat.h>
#include <unistd.h>

namespace quire::runtime {

using Json = nlohmann::json;
using Kind = TraceEvent::Kind;
using Outcome = TraceEvent::Outcome;

static constexpr const char *kindNames[] = {"step", "demand", "write", "prefetch", "load", "store", "evict", "free", "observe"};
static constexpr const char *outcomeNames[] = {"none", "hit", "late", "miss"};
static constexpr int version = 1;
static constexpr int64_t maxNs = int64_t(1) << 52; // exact as microseconds in double; 52 days

//===----------------------------------------------------------------------===//
// Writer
//===----------------------------------------------------------------------===//

/// Loads and stores are the mover's, all else the pool owner's.
static int threadOf(Kind kind) { return kind == Kind::Load || kind == Kind::Store ? 2 : 1; }

static void writeEvent(std::FILE *file, const TraceEvent &event) {
  bool spans = event.duration > 0 || threadOf(event.kind) == 2;
  std::fprintf(file, "{\"name\":\"%s\",\"ph\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%lld.%03lld",
               kindNames[static_cast<size_t>(event.kind)], spans ? "X" : "i", threadOf(event.kind),
               static_cast<long long>(event.ns / 1000), static_cast<long long>(event.ns % 1000));
  if (spans)
    std::fprintf(file, ",\"dur\":%lld.%03lld", static_cast<long long>(event.duration / 1000),
                 static_cast<long long>(event.duration % 1000));
  else
    std::fputs(",\"s\":\"t\"", file);
  if (event.kind == Kind::Step) {
    std::fprintf(file, ",\"args\":{\"rows\":%u}}", event.page);
    return;
  }
  std::fprintf(file, ",\"args\":{\"page\":%u,\"layer\":%u", event.page, event.layer);
  if (event.outcome != Outcome::None)
    std::fprintf(file, ",\"outcome\":\"%s\"", outcomeNames[static_cast<size_t>(event.outcome)]);
  if (event.kind == Kind::Observe)
    std::fprintf(file, ",\"mass\":%.9g", static_cast<double>(event.mass));
  std::fputs("}}", file);
}

static void writeAll(std::FILE *file, const Trace &trace) {
  std::fprintf(file,
               "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"format\":\"quire-trace\",\"version\":%d,\"pages\":%u,"
               "\"page_bytes\":%llu,\"fast_pages\":%u,\"blocks\":%u,\"groups\":%u,\"group_major\":%s,\"dropped\":%llu},"
               "\"traceEvents\":[\n",
               version, trace.pages, static_cast<unsigned long long>(trace.pageBytes), trace.fastPages,
               trace.numbering.blocks, trace.numbering.groups, trace.numbering.isGroupMajor ? "true" : "false",
               static_cast<unsigned long long>(trace.dropped()));
  std::fputs("{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"steps\"}},\n"
             "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"transfers\"}}",
             file);
  for (const TraceEvent &event : trace.events()) {
    std::fputs(",\n", file);
    writeEvent(file, event);
  }
  std::fputs("\n]}\n", file);
}

Status Trace::write(const std::string &path) const {
  struct stat info;
  bool exists = ::stat(path.c_str(), &info) == 0;
  // A device, a pipe and a link stay what they are.
  bool direct = exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  char resolved[PATH_MAX];
  std::string target = exists && !direct && ::realpath(path.c_str(), resolved) ? resolved : path;
  std::string written = direct ? target : target + ".partial";
  auto fail = [&](const char *what) {
    Status status = failure(QUIRE_IO_ERROR, "%s: %s: %s", path.c_str(), what, std::strerror(errno));
    if (!direct)
      ::unlink(written.c_str());
    return status;
  };
  std::FILE *file = std::fopen(written.c_str(), "wb");
  if (!file)
    return failure(QUIRE_IO_ERROR, "%s: %s", written.c_str(), std::strerror(errno));
  writeAll(file, *this);
  bool failed = std::fflush(file) != 0 || std::ferror(file) != 0;
  if (std::fclose(file) != 0 || failed)
    return fail("cannot be written");
  if (!direct && std::rename(written.c_str(), target.c_str()) != 0)
    return fail("cannot be renamed");
  return success();
}

//===----------------------------------------------------------------------===//
// Reader
//===----------------------------------------------------------------------===//

namespace {

/// The members of one line; remembers the first failure and gives neutral values
/// after it.
class Line {
public:
  Line(const std::string &name, size_t number) : name_(name), number_(number) {}

  const Status &status() const { return status_; }

  void fail(const std::string &text) {
    if (status_.ok())
      status_ = failure(QUIRE_BAD_ARTEFACT, "%s: line %zu: %s", name_.c_str(), number_, text.c_str());
  }

  void expected(const std::string &field, const std::string &what, const Json &got) {
    fail(field + ": expected " + what + ", but got " + shownJson(got, 40));
  }

  /// Parses one object.
  void parse(std::string_view text, Json &out) {
    std::string error;
    if (!parseJson(text, out, error))
      fail(error);
    else if (!out.is_object())
      expected("event", "an object", out);
  }

  /// Every key is one of these.
  void onlyKeys(const Json &object, const std::string &where, std::initializer_list<const char *> known) {
    if (!status_.ok())
      return;
    for (const auto &item : object.items())
      if (std::none_of(known.begin(), known.end(), [&](const char *key) { return item.key() == key; }))
        return fail("unknown key " + shownJson(where + item.key(), 40));
  }

  const Json &member(const Json &object, const std::string &where, const char *key) {
    static const Json nothing;
    if (!status_.ok())
      return nothing;
    auto found = object.find(key);
    if (found != object.end())
      return *found;
    fail("missing '" + where + key + "'");
    return nothing;
  }

  uint64_t number(const Json &object, const std::string &where, const char *key, uint64_t high) {
    const Json &value = member(object, where, key);
    if (!status_.ok())
      return 0;
    if (value.is_number_unsigned() && value.get<uint64_t>() <= high)
      return value.get<uint64_t>();
    expected(where + key, "an integer of 0 to " + std::to_string(high), value);
    return 0;
  }

  /// Microseconds, as nanoseconds.
  int64_t time(const Json &object, const char *key) {
    const Json &value = member(object, "", key);
    if (!status_.ok())
      return 0;
    double ns = value.is_number() ? value.get<double>() * 1000 : -1;
    if (ns >= 0 && ns <= static_cast<double>(maxNs))
      return std::llround(ns);
    expected(key, "microseconds of 0 to " + std::to_string(maxNs / 1000), value);
    return 0;
  }

  /// The index of a string among `names`.
  template <size_t N>
  size_t choice(const Json &object, const std::string &where, const char *key, const char *const (&names)[N], size_t first) {
    const Json &value = member(object, where, key);
    if (!status_.ok())
      return first;
    std::string list;
    for (size_t i = first; i < N; ++i) {
      if (value == names[i])
        return i;
      list += (i == first ? "" : i + 1 == N ? " or " : ", ") + std::string(names[i]);
    }
    expected(where + key, list, value);
    return first;
  }

private:
  const std::string &name_;
  size_t number_;
  Status status_;
};

} // namespace

static void readGeometry(Line &line, const Json &root, Trace &out, uint64_t &dropped) {
  line.onlyKeys(root, "", {"displayTimeUnit", "otherData", "traceEvents"});
  const Json &data = line.member(root, "", "otherData");
  if (line.status().ok() && !data.is_object())
    line.expected("otherData", "an object", data);
  const std::string where = "otherData.";
  const Json &format = line.member(data, where, "format");
  if (line.status().ok() && format != "quire-trace")
    line.expected(where + "format", "\"quire-trace\"", format);
  const Json &found = line.member(data, where, "version");
  if (line.status().ok() && found != version)
    line.expected(where + "version", std::to_string(version), found);
  line.onlyKeys(data, where, {"format", "version", "pages", "page_bytes", "fast_pages", "blocks", "groups", "group_major", "dropped"});
  out.pages = static_cast<uint32_t>(line.number(data, where, "pages", Trace::maxPages));
  out.pageBytes = line.number(data, where, "page_bytes", uint64_t(1) << 40);
  out.fastPages = static_cast<uint32_t>(line.number(data, where, "fast_pages", Trace::maxPages));
  out.numbering.blocks = static_cast<uint32_t>(line.number(data, where, "blocks", Trace::maxPages));
  out.numbering.groups = static_cast<uint32_t>(line.number(data, where, "groups", Trace::maxPages));
  const Json &major = line.member(data, where, "group_major");
  if (line.status().ok() && !major.is_boolean())
    line.expected(where + "group_major", "true or false", major);
  dropped = line.number(data, where, "dropped", UINT64_MAX);
  if (!line.status().ok())
    return;
  out.numbering.isGroupMajor = major.get<bool>();
  uint64_t numbered = uint64_t(out.numbering.blocks) * out.numbering.groups;
  if (out.pages == 0)
    line.expected(where + "pages", "at least 1", data["pages"]);
  else if (out.numbering.groups == 0 || (out.numbering.blocks > 0 && numbered != out.pages))
    line.expected(where + "groups", "blocks times groups to be the number of pages", data["groups"]);
}

/// False: a line that only names a thread.
static bool readEvent(Line &line, const Json &object, const Trace &trace, TraceEvent &out) {
  line.onlyKeys(object, "", {"name", "ph", "pid", "tid", "ts", "dur", "s", "args"});
  const Json &phase = line.member(object, "", "ph");
  if (!line.status().ok() || phase == "M")
    return false;
  bool spans = phase == "X";
  if (!spans && phase != "i")
    line.expected("ph", "X, i or M", phase);
  out.kind = static_cast<Kind>(line.choice(object, "", "name", kindNames, 0));
  out.ns = line.time(object, "ts");
  out.duration = spans ? line.time(object, "dur") : 0;
  const Json &args = line.member(object, "", "args");
  if (line.status().ok() && !args.is_object())
    line.expected("args", "an object", args);
  if (!line.status().ok())
    return false;
  const std::string where = "args.";
  if (out.kind == Kind::Step) {
    line.onlyKeys(args, where, {"rows"});
    out.page = static_cast<uint32_t>(line.number(args, where, "rows", UINT32_MAX));
    return line.status().ok();
  }
  line.onlyKeys(args, where, {"page", "layer", "outcome", "mass"});
  out.page = static_cast<uint32_t>(line.number(args, where, "page", trace.pages - 1));
  out.layer = static_cast<uint32_t>(line.number(args, where, "layer", UINT32_MAX));
  if (args.contains("outcome"))
    out.outcome = static_cast<Outcome>(line.choice(args, where, "outcome", outcomeNames, 1));
  if (out.kind == Kind::Observe) {
    const Json &mass = line.member(args, where, "mass");
    double value = mass.is_number() ? mass.get<double>() : -1;
    if (line.status().ok() && !(value >= 0 && value <= 1))
      line.expected(where + "mass", "a number of 0 to 1", mass);
    out.mass = static_cast<float>(value);
  } else if (args.contains("mass")) {
    line.fail(where + "mass: expected none, as the event is no observe, but got one");
  }
  return line.status().ok();
}

Status Trace::parse(const std::string &name, std::string_view text, Trace &out) {
  if (text.size() > maxFileBytes)
    return failure(QUIRE_BAD_ARTEFACT, "%s: expected at most %llu bytes, but got %zu", name.c_str(),
                   static_cast<unsigned long long>(maxFileBytes), text.size());
  Trace read(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')));
  size_t number = 0;
  bool isOpen = true, wantsMore = false;
  while (!text.empty() && isOpen) {
    std::string_view here = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), here.size() + 1));
    Line line(name, ++number);
    Json object;
    if (number == 1) {
      constexpr std::string_view start = "\"traceEvents\":[";
      if (here.size() < start.size() || here.substr(here.size() - start.size()) != start)
        line.fail("expected a header that ends in " + std::string(start) + ", as quire writes it, but got none");
      else
        line.parse(std::string(here) + "]}", object);
      if (line.status().ok())
        readGeometry(line, object, read, read.dropped_);
    } else if (here == "]}") {
      isOpen = false;
      if (wantsMore)
        line.fail("expected an event after the comma, but got ]}");
    } else {
      if (number > 2 && !wantsMore)
        line.fail("expected ]}, as no comma came before, but got more");
      wantsMore = !here.empty() && here.back() == ',';
      line.parse(here.substr(0, here.size() - wantsMore), object);
      TraceEvent event{};
      if (line.status().ok() && readEvent(line, object, read, event))
        read.events_.push_back(event);
    }
    QUIRE_TRY(line.status());
  }
  if (isOpen || !text.empty())
    return failure(QUIRE_BAD_ARTEFACT, "%s: line %zu: expected %s", name.c_str(), number + 1,
                   isOpen ? "]} at the end, but the file ends" : "nothing after ]}, but got more");
  out = std::move(read);
  return success();
}

Status Trace::read(const std::string &path, Trace &out) {
  FileReader file;
  QUIRE_TRY(file.open(path));
  if (file.size() > maxFileBytes)
    return failure(QUIRE_BAD_ARTEFACT, "%s: expected at most %llu bytes, but got %llu", path.c_str(),
                   static_cast<unsigned long long>(maxFileBytes), static_cast<unsigned long long>(file.size()));
  std::string text(static_cast<size_t>(file.size()), '\0');
  QUIRE_TRY(file.read(text.data()));
  return parse(path, text, out);
}

std::vector<PageUse> usesOf(const Trace &trace) {
  using Kind = TraceEvent::Kind;
  struct First {
    uint64_t step = 0; // 0: none
    size_t event = 0;
  };
  std::vector<First> first(trace.pages); // uses of the page in the step
  std::vector<PageUse> out(trace.events().size(), PageUse::None);
  uint64_t step = 1;
  for (size_t i = 0; i < out.size(); ++i) {
    const TraceEvent &event = trace.events()[i];
    bool isWrite = event.kind == Kind::Write;
    if (event.kind == Kind::Step)
      ++step;
    else if (event.kind == Kind::Free)
      first[event.page].step = 0;
    if (event.kind != Kind::Demand && !isWrite)
      continue;
    First &earlier = first[event.page];
    bool isFirst = earlier.step != step;
    if (isFirst)
      earlier = {step, i};
    if (isFirst || !isWrite)
      out[i] = isWrite ? PageUse::Write : PageUse::Read;
    else if (out[earlier.event] == PageUse::Read)
      out[earlier.event] = PageUse::ReadAndWrite;
  }
  return out;
}

} // namespace quire::runtime
