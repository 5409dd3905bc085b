// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes the project's dialects, passes and pipelines known to an MLIR tool.
#ifndef QUIRE_REGISTER_H
#define QUIRE_REGISTER_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace quire {

/// Adds `onnx`, `kv` and `kvrt`, the upstream dialects they lower to, and the interfaces that the passes need.
void registerAllDialects(mlir::DialectRegistry &registry);
/// Adds every pass of the project, and `--quire-pipeline`.
void registerAllPasses();

} // namespace quire

#endif // QUIRE_REGISTER_H
