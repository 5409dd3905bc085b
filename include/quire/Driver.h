// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler as a library: one compilation from an ONNX file to a model folder, to IR text, or to a description.
#ifndef QUIRE_DRIVER_H
#define QUIRE_DRIVER_H

#include <cstdint>
#include <string>
#include <vector>

namespace quire {

/// Exit codes of the command line.
enum class ExitCode {
  Done = 0,
  BadInput = 1, // usage, or a file that cannot be read
  Refused = 3,  // the model means something that is not proved or not supported
  Defect = 70   // a bug of the compiler
};

struct CompileOptions {
  std::string input;                   // the ONNX file
  std::string output;                  // the model folder; empty: none
  std::string reportPath;              // JSON report; empty: only inside the folder
  std::string mcpu = "host";           // CPU by LLVM's name
  std::vector<std::string> mattr;      // "+feature", "-feature"
  std::vector<std::string> inputRoles; // NAME=ROLE
  std::string compileTo;               // print the IR after this phase to standard output instead of building
  int64_t blockTokens = 16;
  std::string kvType = "model"; // how K and V are stored: model, f16, bf16, int8, int4, fp8_e4m3 or fp8_e5m2
  int64_t prefetchDistance = 1; // layers that KV blocks are requested ahead
  bool inspect = false;         // describe the file, build nothing
  bool json = false;            // with inspect: JSON instead of text
  bool verify = false;          // compare with the original graph, and keep the result as a certificate
  uint64_t verifySeed = 0;
  double verifyWork = 4e10; // multiply-adds of the original graph for one sequence of the certificate
  std::string breakAttend; // tests only: an error that --verify must find
  bool verbose = false;    // echo subprocesses
  bool quiet = false;      // no table on the terminal
};

/// Runs the compilation. Results go to files and standard output, messages to standard error. Writes the model folder whole or not at all.
ExitCode compile(const CompileOptions &options);

} // namespace quire

#endif // QUIRE_DRIVER_H
