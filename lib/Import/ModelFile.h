// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An ONNX file parsed without its tensor data, which stays where it is and is found again by offset.

#ifndef QUIRE_LIB_IMPORT_MODELFILE_H
#define QUIRE_LIB_IMPORT_MODELFILE_H

#include "lib/Import/Messages.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>

namespace quire::import {

/// Where the bytes of a tensor lie in the model file, and the field of TensorProto that held them.
struct InlineData {
  static constexpr int rawData = 9, floatData = 4, doubleData = 10;
  uint64_t offset = 0, size = 0, field = rawData;
};

class ModelFile {
public:
  using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

  /// Maps and parses the file at `path`.
  static mlir::FailureOr<std::unique_ptr<ModelFile>> open(llvm::StringRef path, EmitError emitError);
  /// Parses `bytes`, which must outlive the result, as the file at `path`.
  static mlir::FailureOr<std::unique_ptr<ModelFile>> parse(llvm::StringRef bytes, llvm::StringRef path,
                                                           EmitError emitError);

  const pb::ModelProto &model() const { return proto; }
  llvm::StringRef path() const { return filePath; }
  /// The folder of the file, "." if the path names none.
  llvm::StringRef folder() const { return fileFolder; }
  /// The file's name without its folder.
  llvm::StringRef name() const;

  /// In the parsed model every `raw_data` holds one record instead of the data; packed `float_data` and `double_data` of
  /// more than a few bytes are recorded there too. Fails if the field holds no record.
  static mlir::FailureOr<InlineData> inlineData(const pb::TensorProto &tensor);
  /// The bytes that a record stands for.
  llvm::StringRef bytes(const InlineData &data) const { return contents.substr(data.offset, data.size); }

private:
  mlir::LogicalResult load(EmitError emitError);

  std::unique_ptr<llvm::MemoryBuffer> buffer;
  llvm::StringRef contents;
  std::string filePath, fileFolder;
  pb::ModelProto proto;
};

} // namespace quire::import

#endif // QUIRE_LIB_IMPORT_MODELFILE_H
