// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Benchmark operations as JSON lines, so that engines can alternate in one run without loading again.
#ifndef QUIRE_RUNTIME_BENCH_SERVE_H
#define QUIRE_RUNTIME_BENCH_SERVE_H

#include "bench/Session.h"

#include <iosfwd>

namespace quire::bench {

/// Reads one operation a line and answers each with one line, until {"op":"quit"}
/// or the end of the input:
///   {"op":"setup","ctx":[lengths]}  {"kv_bytes":N}
///   {"op":"steps","n":N}            {"steps":[seconds of each]}
///   {"op":"prefill","n":N}          {"t":seconds}
///   {"op":"free"}                   {}
///   {"op":"mem"}                    {"VmRSS":bytes,"VmHWM":bytes}
/// A line that cannot be done is answered by {"error":text}.
void serve(Session &session, std::istream &input, std::ostream &output);

} // namespace quire::bench

#endif // QUIRE_RUNTIME_BENCH_SERVE_H
