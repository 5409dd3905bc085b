// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Children that report through shared memory, and delta debugging.
#include "PoolChild.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace quire::test {

namespace {

struct Report {
  RunCounts counts;
  uint64_t at = 0; // what is running
  bool done = false;
  char error[2048] = {};
};

/// What both processes see.
class SharedReport {
public:
  SharedReport() : report_(static_cast<Report *>(::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    new (report_) Report;
  }
  ~SharedReport() { ::munmap(report_, sizeof(Report)); }
  SharedReport(const SharedReport &) = delete;
  SharedReport &operator=(const SharedReport &) = delete;
  Report *operator->() const { return report_; }
  Report &operator*() const { return *report_; }

private:
  Report *report_;
};

void add(RunCounts &to, const RunCounts &from) {
  auto *sums = reinterpret_cast<uint64_t *>(&to);
  const auto *values = reinterpret_cast<const uint64_t *>(&from);
  static_assert(sizeof(RunCounts) % sizeof(uint64_t) == 0, "numbers only");
  for (size_t i = 0; i < sizeof(RunCounts) / sizeof(uint64_t); ++i)
    sums[i] += values[i];
}

/// Runs `work` in a child and waits for it; gives what was wrong.
template <typename Work>
std::string inChild(SharedReport &report, const Work &work) {
  pid_t child = ::fork();
  if (child < 0)
    return "no process";
  if (child == 0) {
    std::string error = work();
    std::strncpy(report->error, error.c_str(), sizeof(report->error) - 1);
    report->done = true;
    ::_exit(0);
  }
  int result = 0;
  ::waitpid(child, &result, 0);
  ::unlink(slotFileOf(child).c_str());
  if (report->done)
    return report->error;
  if (WIFSIGNALED(result) && WTERMSIG(result) == SIGALRM)
    return "it does not end";
  return WIFSIGNALED(result) ? std::string("the process ended by signal ") + ::strsignal(WTERMSIG(result))
                             : "the process ended with " + std::to_string(WEXITSTATUS(result));
}

} // namespace

std::string runInChild(const Program &program, RunCounts &counts, const PoolRun::Sabotage &sabotage, unsigned seconds) {
  SharedReport report;
  std::string error = inChild(report, [&] {
    ::alarm(seconds);
    return PoolRun(program, report->counts, sabotage).run();
  });
  add(counts, report->counts);
  return error;
}

std::string sweepFault(const Program &program, runtime::Fault &fault, uint64_t stride, RunCounts &counts, unsigned seconds) {
  SharedReport report;
  std::string error = inChild(report, [&] {
    for (report->at = 0;; report->at += stride) {
      fault.first = report->at;
      ::alarm(seconds);
      uint64_t before = report->counts.injected;
      std::string found = PoolRun(program, report->counts, {}, {fault}).run();
      if (!found.empty() || report->counts.injected == before)
        return found;
    }
  });
  fault.first = report->at;
  add(counts, report->counts);
  return error;
}

bool runSweep(const Sweep &sweep, RunCounts &counts, Program &failing, std::string &error, unsigned standstill) {
  SharedReport report;
  error = inChild(report, [&] {
    for (report->at = sweep.first; report->at < sweep.first + sweep.programs; ++report->at) {
      ::alarm(standstill);
      std::string found = runProgram(randomProgram(report->at, sweep.operations), report->counts);
      if (!found.empty())
        return found;
    }
    return std::string();
  });
  add(counts, report->counts);
  if (!error.empty())
    failing = randomProgram(report->at, sweep.operations);
  return error.empty();
}

//===----------------------------------------------------------------------===//
// Smaller programs
//===----------------------------------------------------------------------===//

static bool shrinkOps(Program &program, const Fails &fails) {
  bool smaller = false;
  for (size_t chunk = std::max<size_t>(1, program.ops.size() / 2);; chunk /= 2) {
    for (size_t at = 0; at < program.ops.size();) {
      Program less = program;
      auto begin = less.ops.begin() + static_cast<std::ptrdiff_t>(at);
      less.ops.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(chunk, less.ops.size() - at)));
      if (fails(less)) {
        program = std::move(less);
        smaller = true;
      } else {
        at += chunk;
      }
    }
    if (chunk <= 1)
      return smaller;
  }
}

/// To 0 or to little more, since what a byte chooses is a remainder; or by halves, and then by ones.
static bool shrinkByte(Program &program, uint8_t &byte, const Fails &fails) {
  uint8_t first = byte;
  auto isEnough = [&](int less) {
    uint8_t old = std::exchange(byte, static_cast<uint8_t>(less));
    bool failed = less < old && fails(program);
    byte = failed ? byte : old;
    return failed;
  };
  for (int few = 0; few < 4; ++few)
    if (byte == few || isEnough(few))
      return byte != first;
  while (isEnough(byte / 2))
    continue;
  while (isEnough(byte - 1))
    continue;
  return byte != first;
}

Program shrink(Program program, const Fails &fails) {
  for (bool smaller = true; smaller;) {
    smaller = shrinkOps(program, fails);
    for (Op &op : program.ops)
      for (uint8_t *byte : {&op.a, &op.b, &op.c})
        smaller |= shrinkByte(program, *byte, fails);
    for (uint8_t &byte : program.shape)
      smaller |= shrinkByte(program, byte, fails);
  }
  return program;
}

} // namespace quire::test
