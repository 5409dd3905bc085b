// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole kinds of models that cannot be raised, by what their graph does.
#ifndef QUIRE_LIB_CONVERSION_ONNXTOKV_CAUSES_H
#define QUIRE_LIB_CONVERSION_ONNXTOKV_CAUSES_H

#include "lib/Analysis/StatePairing/RaisedModel.h"

#include <string>
#include <vector>

namespace quire {

/// Why a model that was refused could not have been raised, or compiled: a cache that is in pages already, states that are replaced in every call, hidden states that
/// come from another model, mixtures of experts. Each reason names a node or an input. Empty when the model is of no such kind; then the reasons of the analysis stand.
std::vector<std::string> causesOfRefusal(mlir::func::FuncOp source, llvm::ArrayRef<std::string> inputNames, llvm::ArrayRef<InputRole> roles);

} // namespace quire

#endif // QUIRE_LIB_CONVERSION_ONNXTOKV_CAUSES_H
