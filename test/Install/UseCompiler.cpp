// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The installed compiler library works: an absent file is bad input.
#include <quire/Driver.h>

int main() {
  quire::CompileOptions options;
  options.input = "/nonexistent.onnx";
  options.inspect = true;
  return quire::compile(options) == quire::ExitCode::BadInput ? 0 : 1;
}
