// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Feeds bytes to the ONNX importer: it must give a module or an error, whatever they are.

#include "lib/Import/Import.h"

#include "mlir/IR/Diagnostics.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

using namespace mlir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  bool reported = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &) {
    reported = true;
    return success();
  });
  quire::ImportOptions options;
  options.maxNodes = 2000;
  StringRef bytes(reinterpret_cast<const char *>(data), size);
  FailureOr<OwningOpRef<ModuleOp>> module = quire::importOnnxBytes(bytes, "fuzz/model.onnx", context, options);
  // A failure without a reason is a bug as well.
  if (failed(module) && !reported)
    std::abort();
  return 0;
}
