// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Proof by execution: the original graph against the compiled paged model.
#ifndef QUIRE_LIB_DRIVER_CERTIFICATE_H
#define QUIRE_LIB_DRIVER_CERTIFICATE_H

#include "quire/Driver.h"

#include "llvm/Support/JSON.h"

namespace quire {

struct Certificate {
  bool holds = false;
  std::string reason; // what differs; empty when it holds
  llvm::json::Object document;
};

/// Runs the graph of `options.input` (evaluator, contiguous caches, each sequence alone) against the model in `folder` on random ragged batches.
Certificate certify(const CompileOptions &options, const std::string &folder);

} // namespace quire

#endif // QUIRE_LIB_DRIVER_CERTIFICATE_H
