// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Results of replays side by side, and what the doctor thinks of each.
#ifndef QUIRE_RUNTIME_DOCTOR_REPLAYREPORT_H
#define QUIRE_RUNTIME_DOCTOR_REPLAYREPORT_H

#include "doctor/Doctor.h"
#include "residency/Replay.h"

#include <optional>
#include <string>
#include <vector>

namespace quire::runtime {

struct ReplayReport {
  const Trace *trace;
  uint32_t livePages; // mostLivePages() of it
  ReplayOptions options; // of all runs; `policy` is each run's
  struct Run {
    PolicyKind policy;
    ReplayResult result;
  };
  std::vector<Run> runs;
  bool withOptimum = true;
  OptimalCounts optimum;
  bool withDoctor = false;
  /// What the run did that the trace is of, with its own fast tier; nothing of it is simulated.
  struct Recorded {
    PagerCounters counters;
    uint64_t optimalMisses;
  };
  std::optional<Recorded> recorded = std::nullopt;
};

/// None: the trace does not say how its demands ended, or how large its fast tier was.
std::optional<ReplayReport::Recorded> recordedRun(const Trace &trace);

Vitals vitalsOf(const ReplayReport &report, const ReplayReport::Run &run);

/// A table with one line for the recorded run, one a policy, and "opt" if wanted.
std::string replayText(const ReplayReport &report);
std::string replayJson(const ReplayReport &report);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_DOCTOR_REPLAYREPORT_H
