// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The importer's entry points.

#include "lib/Import/Import.h"

#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Import/GraphImporter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace quire;

static FailureOr<OwningOpRef<ModuleOp>> importFile(FailureOr<std::unique_ptr<import::ModelFile>> file,
                                                   MLIRContext &context, const ImportOptions &options) {
  if (failed(file))
    return failure();
  context.loadDialect<quire::onnx::ONNXDialect, func::FuncDialect>();
  return import::GraphImporter(**file, &context, options).import();
}

FailureOr<OwningOpRef<ModuleOp>> quire::importOnnx(StringRef path, MLIRContext &context, const ImportOptions &options) {
  auto error = [&] { return emitError(UnknownLoc::get(&context)) << path << ": "; };
  return importFile(import::ModelFile::open(path, error), context, options);
}

FailureOr<OwningOpRef<ModuleOp>> quire::importOnnxBytes(StringRef bytes, StringRef path, MLIRContext &context,
                                                        const ImportOptions &options) {
  auto error = [&] { return emitError(UnknownLoc::get(&context)) << path << ": "; };
  return importFile(import::ModelFile::parse(bytes, path, error), context, options);
}
