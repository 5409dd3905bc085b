// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Proof by execution: the original graph against the compiled paged model.
#ifndef QUIRE_LIB_DRIVER_CERTIFICATE_H
#define QUIRE_LIB_DRIVER_CERTIFICATE_H

#include "lib/Conversion/ONNXToKV/RaiseAttention.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace quire {

struct Certificate {
  bool holds = false;
  std::string reason;  // what differs; empty when it holds
  std::string summary; // one line of what was compared
  llvm::json::Object document;
};

struct CertificateOptions {
  uint64_t seed = 0;
  /// Multiply-adds that the original graph may take for one sequence. Longer ones start from random K and V instead of a prompt.
  double workLimit = 4e10;
  /// Numbers in the K and V of such a sequence; longer ones are left out and listed.
  double memoryLimit = 1e8;
};

/// Runs the graph in `module` (evaluator, contiguous caches, each sequence alone, all tokens in one call) against the model in `folder`: the same sequences
/// in ragged batches, whole, in random chunks mixed with single tokens, and with permuted block tables. Lengths are the multiples of a block and their
/// neighbours, and the constants of masks and theirs. Compares the logits of every row and every stored K and V row. A length that takes the graph too long
/// is reached from a random past: the same K and V of all tokens but the last few in the pages and in the graph's inputs.
///
/// Where K and V are codes of 4 bits or fp8, what they round adds up from row to row. Then the last row of each sequence is compared, with the graph on the K
/// and V that the pages hold of the rows before, so that the rounding of one row is the only difference.
Certificate certify(mlir::ModuleOp module, llvm::StringRef modelFolder, const RaiseReport &report, const std::string &folder, const CertificateOptions &options);

} // namespace quire

#endif // QUIRE_LIB_DRIVER_CERTIFICATE_H
