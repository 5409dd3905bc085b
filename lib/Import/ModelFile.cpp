// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walks the wire format of an ONNX file and leaves tensor data out before Protobuf parses it.

#include "lib/Import/ModelFile.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstring>

using namespace mlir;
using namespace quire::import;

namespace {

// The messages on the way to a tensor; everything else is copied as it is.
enum class Message { Model, Graph, Node, Attribute, Tensor, SparseTensor, Function, Other };

// Typed data of fewer bytes is left to Protobuf.
constexpr uint64_t minReferencedBytes = 64;

// Protobuf refuses more than 100 nested messages; a graph in a graph takes three.
constexpr int maxDepth = 96;

Message childOf(Message parent, uint64_t field) {
  switch (parent) {
  case Message::Model:
    return field == 7 ? Message::Graph : field == 25 ? Message::Function : Message::Other;
  case Message::Graph:
    return field == 1   ? Message::Node
           : field == 5 ? Message::Tensor
           : field == 15 ? Message::SparseTensor
                         : Message::Other;
  case Message::Node:
    return field == 5 ? Message::Attribute : Message::Other;
  case Message::Attribute:
    return field == 5 || field == 10   ? Message::Tensor
           : field == 6 || field == 11 ? Message::Graph
           : field == 22 || field == 23 ? Message::SparseTensor
                                        : Message::Other;
  case Message::SparseTensor:
    return field == 1 || field == 2 ? Message::Tensor : Message::Other;
  case Message::Function:
    return field == 7 ? Message::Node : field == 11 ? Message::Attribute : Message::Other;
  case Message::Tensor:
  case Message::Other:
    return Message::Other;
  }
  return Message::Other;
}

class Stripper {
public:
  explicit Stripper(StringRef file) : file(file) {}

  /// Appends the message at [begin, end) of the file to `out`, without tensor data.
  bool strip(Message kind, uint64_t begin, uint64_t end, std::string &out, int depth = 0);

  StringRef reason;
  uint64_t errorOffset = 0;

private:
  bool fail(StringRef why, uint64_t offset) {
    reason = why;
    errorOffset = offset;
    return false;
  }
  bool readVarint(uint64_t &position, uint64_t end, uint64_t &value);
  bool copyChild(Message child, uint64_t field, uint64_t begin, uint64_t end, std::string &out, int depth);

  StringRef file;
};

void writeVarint(std::string &out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void writeRecord(std::string &out, const InlineData &data) {
  writeVarint(out, InlineData::rawData << 3 | 2);
  writeVarint(out, 24);
  char bytes[24];
  llvm::support::endian::write64le(bytes, data.offset);
  llvm::support::endian::write64le(bytes + 8, data.size);
  llvm::support::endian::write64le(bytes + 16, data.field);
  out.append(bytes, sizeof(bytes));
}

} // namespace

bool Stripper::readVarint(uint64_t &position, uint64_t end, uint64_t &value) {
  uint64_t start = position;
  value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (position >= end)
      return fail("the file ends inside a field", start);
    uint8_t byte = file[position++];
    if (shift < 64)
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return fail("a number is longer than ten bytes", start);
}

bool Stripper::copyChild(Message child, uint64_t field, uint64_t begin, uint64_t end, std::string &out, int depth) {
  writeVarint(out, field << 3 | 2);
  if (child == Message::Other) {
    writeVarint(out, end - begin);
    out.append(file.data() + begin, end - begin);
    return true;
  }
  std::string stripped;
  if (!strip(child, begin, end, stripped, depth + 1))
    return false;
  writeVarint(out, stripped.size());
  out += stripped;
  return true;
}

bool Stripper::strip(Message kind, uint64_t begin, uint64_t end, std::string &out, int depth) {
  if (depth > maxDepth)
    return fail("graphs are nested too deeply", begin);
  bool hasData = false;
  uint64_t position = begin;
  while (position < end) {
    uint64_t start = position, tag = 0, length = 0;
    if (!readVarint(position, end, tag))
      return false;
    uint64_t field = tag >> 3;
    if (field == 0 || field > 536870911)
      return fail("expected a field number", start);
    switch (tag & 7) {
    case 0:
      if (!readVarint(position, end, length))
        return false;
      break;
    case 1:
      position += 8;
      break;
    case 5:
      position += 4;
      break;
    case 2: {
      if (!readVarint(position, end, length))
        return false;
      if (length > end - position)
        return fail("a field is longer than the file", start);
      uint64_t data = position;
      position += length;
      bool typed = (field == InlineData::floatData || field == InlineData::doubleData) && length >= minReferencedBytes;
      if (kind == Message::Tensor && (field == InlineData::rawData || typed)) {
        if (hasData)
          return fail("a tensor has its data twice", start);
        hasData = true;
        writeRecord(out, {data, length, field});
        continue;
      }
      if (!copyChild(childOf(kind, field), field, data, position, out, depth))
        return false;
      continue;
    }
    default:
      return fail("expected a field of a known wire type", start);
    }
    if (position > end)
      return fail("the file ends inside a field", start);
    out.append(file.data() + start, position - start);
  }
  return true;
}

FailureOr<InlineData> ModelFile::inlineData(const pb::TensorProto &tensor) {
  const std::string &record = tensor.raw_data();
  if (record.size() != 24)
    return failure();
  InlineData data;
  data.offset = llvm::support::endian::read64le(record.data());
  data.size = llvm::support::endian::read64le(record.data() + 8);
  data.field = llvm::support::endian::read64le(record.data() + 16);
  return data;
}

StringRef ModelFile::name() const { return llvm::sys::path::filename(filePath); }

LogicalResult ModelFile::load(EmitError emitError) {
  if (contents.empty())
    return emitError() << "the file is empty";
  if (contents.size() > (uint64_t(1) << 31))
    return emitError() << "the file is larger than 2 GiB, which ONNX does not allow; save the weights as external data";
  Stripper stripper(contents);
  std::string stripped;
  if (!stripper.strip(Message::Model, 0, contents.size(), stripped))
    return emitError() << "not an ONNX model, or damaged: " << stripper.reason << " (byte " << stripper.errorOffset
                       << ")";
  if (!proto.ParseFromArray(stripped.data(), static_cast<int>(stripped.size())))
    return emitError() << "not an ONNX model, or damaged: Protobuf cannot parse it";
  if (!proto.has_ir_version() || !proto.has_graph())
    return emitError() << "not an ONNX model: it has no " << (proto.has_graph() ? "ir_version" : "graph");
  return success();
}

FailureOr<std::unique_ptr<ModelFile>> ModelFile::open(StringRef path, EmitError emitError) {
  bool isDirectory = false;
  if (!llvm::sys::fs::is_directory(path, isDirectory) && isDirectory)
    return emitError() << "is a folder, expected an ONNX file";
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status) && status.type() != llvm::sys::fs::file_type::regular_file)
    return emitError() << "is no regular file";
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return emitError() << "cannot read the file: " << buffer.getError().message();
  StringRef contents = (*buffer)->getBuffer();
  FailureOr<std::unique_ptr<ModelFile>> file = parse(contents, path, emitError);
  if (succeeded(file))
    (*file)->buffer = std::move(*buffer);
  return file;
}

FailureOr<std::unique_ptr<ModelFile>> ModelFile::parse(StringRef bytes, StringRef path, EmitError emitError) {
  auto file = std::make_unique<ModelFile>();
  file->contents = bytes;
  file->filePath = path.str();
  StringRef folder = llvm::sys::path::parent_path(path);
  file->fileFolder = folder.empty() ? "." : folder.str();
  if (failed(file->load(emitError)))
    return failure();
  return std::move(file);
}
