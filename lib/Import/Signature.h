// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the dialect's operators take and give, read from their ODS definitions.

#ifndef QUIRE_LIB_IMPORT_SIGNATURE_H
#define QUIRE_LIB_IMPORT_SIGNATURE_H

#include "mlir/IR/OperationSupport.h"

#include <optional>

namespace quire::import {

struct Signature {
  enum class Presence { Required, Optional, Variadic };
  struct Slot {
    llvm::StringRef name;
    Presence presence;
  };
  struct Field {
    llvm::StringRef name, storage; // the MLIR attribute class, without namespace
    bool required;
  };

  explicit Signature(mlir::OperationName operation) : operation(operation) {}

  mlir::OperationName operation;
  llvm::SmallVector<Slot> operands, results;
  llvm::SmallVector<Field> attributes;
  llvm::SmallVector<llvm::StringRef> regions;

  const Field *findAttribute(llvm::StringRef name) const;
  bool hasRegion(llvm::StringRef name) const { return llvm::is_contained(regions, name); }
  /// Whether the slots can hold `count` values.
  static bool accepts(llvm::ArrayRef<Slot> slots, size_t count) {
    return count <= slots.size() || (!slots.empty() && slots.back().presence == Presence::Variadic);
  }
};

/// The signature of an operator, or nullopt if the dialect does not know it.
std::optional<Signature> lookupSignature(mlir::MLIRContext *context, llvm::StringRef domain, llvm::StringRef opType);

} // namespace quire::import

#endif // QUIRE_LIB_IMPORT_SIGNATURE_H
