// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams initializers into weights.bin, packing and converting on the way.
#include "lib/Target/CPU/WeightsWriter.h"
#include "dialects/KVRT/KVRT.h"
#include "dialects/ONNX/ONNXOps.h"
#include "lib/Target/CPU/FloatFormats.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

// Elements that a conversion handles at a time.
constexpr int64_t convertChunk = 1 << 18;

int64_t elementBytes(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }
bool isFloat(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

float readFloat(const char *from, Type type) {
  uint32_t wide;
  uint16_t narrow;
  if (type.isF32()) {
    std::memcpy(&wide, from, 4);
    return floatFromBits(wide);
  }
  std::memcpy(&narrow, from, 2);
  return type.isF16() ? floatFromHalf(narrow) : floatFromBfloat(narrow);
}

void writeFloat(char *to, Type type, float value) {
  if (type.isF32()) {
    std::memcpy(to, &value, 4);
    return;
  }
  uint16_t narrow = type.isF16() ? halfFromFloat(value) : bfloatFromFloat(value);
  std::memcpy(to, &narrow, 2);
}

class Writer {
public:
  Writer(ModuleOp module, StringRef modelFolder, llvm::raw_ostream &stream)
      : module(module), modelFolder(modelFolder), stream(stream) {}

  LogicalResult write(kvrt::PackedOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    if (failed(open(op, op.getSource(), op.getK() * op.getN(), type.getElementType())) ||
        failed(seek(op, op.getOffset())))
      return failure();
    int64_t nr = op.getLayout().getNr(), panels = type.getDimSize(0);
    for (int64_t panel = 0; panel < panels; ++panel)
      writePanel(op, panel * nr, std::min<int64_t>(nr, op.getN() - panel * nr), type.getElementType());
    return success();
  }

  LogicalResult write(kvrt::RawOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    if (failed(open(op, op.getSource(), type.getNumElements(), type.getElementType())) ||
        failed(seek(op, op.getOffset())))
      return failure();
    int64_t bytes = elementBytes(sourceType), count = type.getNumElements();
    for (int64_t start = 0; start < count; start += convertChunk)
      emit(source->getBufferStart() + start * bytes, std::min(convertChunk, count - start), type.getElementType());
    return success();
  }

  /// Pads the file to a multiple of 64 bytes.
  void finish() { pad(kvrt::alignTo64(position)); }

private:
  // Maps the source of `op`: `count` elements, convertible to `target`.
  LogicalResult open(Operation *op, StringRef name, int64_t count, Type target) {
    auto initializer = module.lookupSymbol<onnx::InitializerOp>(name);
    if (!initializer)
      return op->emitOpError("expected an initializer, but got @") << name;
    sourceType = cast<ShapedType>(initializer.getType()).getElementType();
    if (sourceType != target && !(isFloat(sourceType) && isFloat(target)))
      return op->emitOpError("not implemented: conversion from ") << sourceType << " to " << target;
    int64_t bytes = count * elementBytes(sourceType);
    if (static_cast<int64_t>(initializer.getBytes()) != bytes)
      return op->emitOpError("expected an initializer of ")
             << bytes << " bytes, but got " << static_cast<int64_t>(initializer.getBytes());
    SmallString<256> path(modelFolder);
    llvm::sys::path::append(path, initializer.getFile());
    uint64_t size = 0;
    if (std::error_code error = llvm::sys::fs::file_size(path, size))
      return op->emitOpError("cannot read ") << path << ": " << error.message();
    uint64_t end = static_cast<uint64_t>(initializer.getOffset()) + bytes;
    if (end > size)
      return op->emitOpError("expected at least ") << end << " bytes in " << path << ", but got " << size;
    auto buffer = llvm::MemoryBuffer::getFileSlice(path, bytes, initializer.getOffset());
    if (!buffer)
      return op->emitOpError("cannot read ") << path << ": " << buffer.getError().message();
    source = std::move(*buffer);
    return success();
  }

  LogicalResult seek(Operation *op, std::optional<uint64_t> offset) {
    if (!offset)
      return op->emitOpError("expected an offset: run assign-weight-offsets first");
    if (static_cast<int64_t>(*offset) < position)
      return op->emitOpError("expected entries in the order of their offsets");
    pad(*offset);
    return success();
  }

  void pad(int64_t offset) {
    stream.write_zeros(offset - position);
    position = offset;
  }

  // Writes elements of the source's type as `target`.
  void emit(const char *elements, int64_t count, Type target) {
    int64_t from = elementBytes(sourceType), to = elementBytes(target);
    position += count * to;
    if (sourceType == target) {
      stream.write(elements, count * to);
      return;
    }
    converted.resize(count * to);
    for (int64_t i = 0; i < count; ++i)
      writeFloat(converted.data() + i * to, target, readFloat(elements + i * from, sourceType));
    stream.write(converted.data(), count * to);
  }

  template <typename Element>
  void gatherPanel(kvrt::PackedOp op, int64_t first, int64_t columns) {
    int64_t k = op.getK(), n = op.getN(), nr = op.getLayout().getNr();
    panel.assign(k * nr * sizeof(Element), 0);
    const char *bytes = source->getBufferStart();
    for (int64_t row = 0; row < k; ++row) {
      char *to = panel.data() + row * nr * sizeof(Element);
      if (!op.getTransposed()) {
        std::memcpy(to, bytes + (row * n + first) * sizeof(Element), columns * sizeof(Element));
        continue;
      }
      for (int64_t column = 0; column < columns; ++column)
        std::memcpy(to + column * sizeof(Element), bytes + ((first + column) * k + row) * sizeof(Element),
                    sizeof(Element));
    }
  }

  void writePanel(kvrt::PackedOp op, int64_t first, int64_t columns, Type target) {
    if (elementBytes(sourceType) == 4)
      gatherPanel<uint32_t>(op, first, columns);
    else
      gatherPanel<uint16_t>(op, first, columns);
    emit(panel.data(), op.getK() * op.getLayout().getNr(), target);
  }

  ModuleOp module;
  StringRef modelFolder;
  llvm::raw_ostream &stream;
  int64_t position = 0;
  std::unique_ptr<llvm::MemoryBuffer> source;
  Type sourceType;
  std::vector<char> panel, converted;
};

} // namespace

LogicalResult quire::cpu::writeWeights(ModuleOp module, StringRef modelFolder, StringRef outPath) {
  std::error_code error;
  llvm::raw_fd_ostream stream(outPath, error);
  if (error)
    return module.emitError("cannot write ") << outPath << ": " << error.message();
  stream.SetBufferSize(1 << 20);
  Writer writer(module, modelFolder, stream);
  for (Operation &op : *module.getBody()) {
    LogicalResult result = success();
    if (auto packed = dyn_cast<kvrt::PackedOp>(op))
      result = writer.write(packed);
    else if (auto raw = dyn_cast<kvrt::RawOp>(op))
      result = writer.write(raw);
    if (failed(result)) {
      stream.clear_error();
      return failure();
    }
  }
  writer.finish();
  stream.close();
  error = stream.error();
  stream.clear_error();
  if (error)
    return module.emitError("cannot write ") << outPath << ": " << error.message();
  return success();
}
