// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors of the file: small ones as attributes, large ones as a place in a file.

#ifndef QUIRE_LIB_IMPORT_TENSORDATA_H
#define QUIRE_LIB_IMPORT_TENSORDATA_H

#include "lib/Import/ModelFile.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"

namespace quire::import {

/// A tensor: `value` if it is small or the file does not hold it as plain bytes, else its place.
struct TensorData {
  mlir::RankedTensorType type;
  mlir::ElementsAttr value;
  std::string file; // relative to the model's folder
  int64_t offset = 0, bytes = 0;
};

class TensorReader {
public:
  using EmitError = ModelFile::EmitError;

  TensorReader(const ModelFile &file, mlir::MLIRContext *context, int64_t maxConstantBytes)
      : file(file), context(context), maxConstantBytes(maxConstantBytes) {}

  mlir::FailureOr<TensorData> read(const pb::TensorProto &tensor, EmitError emitError);
  /// The dense form of a sparse tensor.
  mlir::FailureOr<TensorData> read(const pb::SparseTensorProto &tensor, EmitError emitError);
  /// As `read`, but always with a value.
  mlir::FailureOr<mlir::ElementsAttr> readValue(const pb::TensorProto &tensor, EmitError emitError);

private:
  struct ExternalFile {
    std::string path; // as the operating system opens it
    std::string relative;
    uint64_t size;
  };

  mlir::FailureOr<mlir::RankedTensorType> readType(const pb::TensorProto &tensor, EmitError emitError);
  mlir::FailureOr<TensorData> readExternal(const pb::TensorProto &tensor, mlir::RankedTensorType type,
                                           EmitError emitError);
  mlir::FailureOr<ExternalFile> openExternal(llvm::StringRef location, EmitError emitError);
  mlir::FailureOr<TensorData> readInline(const pb::TensorProto &tensor, mlir::RankedTensorType type,
                                         EmitError emitError);
  mlir::FailureOr<mlir::ElementsAttr> readTyped(const pb::TensorProto &tensor, mlir::RankedTensorType type,
                                                EmitError emitError);
  mlir::FailureOr<mlir::ElementsAttr> valueOf(const TensorData &data, EmitError emitError);

  const ModelFile &file;
  mlir::MLIRContext *context;
  int64_t maxConstantBytes;
  llvm::StringMap<ExternalFile> externals;
};

/// Bytes of a tensor as ONNX stores raw data, or nullopt beyond 2^62 bits.
std::optional<int64_t> rawBytes(mlir::RankedTensorType type);

/// The constant whose raw data is `raw`, which has `rawBytes(type)` bytes.
mlir::ElementsAttr elementsFromRaw(mlir::RankedTensorType type, llvm::StringRef raw);

} // namespace quire::import

#endif // QUIRE_LIB_IMPORT_TENSORDATA_H
