// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX element types and value types as MLIR types.

#ifndef QUIRE_LIB_IMPORT_ELEMENTTYPES_H
#define QUIRE_LIB_IMPORT_ELEMENTTYPES_H

#include "lib/Import/Messages.h"

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace quire::import {

/// The MLIR type of a TensorProto.DataType; null for values outside the enumeration.
mlir::Type elementType(mlir::MLIRContext *context, int64_t dataType);

/// The element type's name in the specification.
llvm::StringRef dataTypeName(int64_t dataType);

/// Bits that one element takes in raw data; 0 for strings and unknown types.
unsigned rawBits(mlir::Type element);

/// The MLIR type of a value; null if the file gives none. `reason` says what is wrong with it, if something is.
mlir::Type valueType(mlir::MLIRContext *context, const pb::TypeProto &type, std::string &reason);

/// The names of a tensor type's extents, an empty string for a number or an extent without a name.
llvm::SmallVector<std::string> dimensionNames(const pb::TypeProto &type);

/// A tensor type of unknown shape.
mlir::Type unrankedTensor(mlir::Type element);

/// What is known from both types. Where they contradict each other, `first` wins.
mlir::Type mergeTypes(mlir::Type first, mlir::Type second);

/// A type that covers both.
mlir::Type joinTypes(mlir::Type first, mlir::Type second);

} // namespace quire::import

#endif // QUIRE_LIB_IMPORT_ELEMENTTYPES_H
