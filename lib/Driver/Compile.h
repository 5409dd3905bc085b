// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One compilation from an ONNX file to a model folder, to IR text, or to a description.
#ifndef QUIRE_LIB_DRIVER_COMPILE_H
#define QUIRE_LIB_DRIVER_COMPILE_H

#include "lib/Pipelines/Pipelines.h"

#include "llvm/Support/raw_ostream.h"

namespace quire {

/// Exit codes of the command line.
enum class ExitCode {
  Done = 0,
  BadInput = 1, // usage, or a file that cannot be read
  Refused = 3,  // the model means something that is not proved or not supported
  Defect = 70   // a bug of the compiler
};

struct CompileOptions {
  std::string input;      // the ONNX file
  std::string output;     // the model folder; empty: none
  std::string reportPath; // JSON report; empty: only inside the folder
  std::string mcpu = "host";
  std::vector<std::string> mattr;
  std::vector<std::string> inputRoles;
  std::optional<Phase> compileTo; // print the IR of this phase to standard output instead
  int64_t blockTokens = 16;
  int64_t prefetchDistance = 1;
  bool inspect = false; // describe the file, build nothing
  bool json = false;    // with inspect: JSON instead of text
  bool verify = false;  // write a certificate
  uint64_t verifySeed = 0;
  bool verbose = false; // echo subprocesses
  bool quiet = false;   // no table on the terminal
};

/// Runs the compilation. Results go to files and standard output, messages to standard error.
ExitCode compile(const CompileOptions &options);

} // namespace quire

#endif // QUIRE_LIB_DRIVER_COMPILE_H
