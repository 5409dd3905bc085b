// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads tensors: raw, typed, external and sparse data of every element type.

#include "lib/Import/TensorData.h"

#include "lib/Import/ElementTypes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <cstring>

using namespace mlir;
using namespace quire::import;

// Sparse tensors become dense at import; beyond this the dense form would not fit an attribute.
static constexpr int64_t maxDenseBytes = int64_t(4) << 20;

std::optional<int64_t> quire::import::rawBytes(RankedTensorType type) {
  int64_t bits = rawBits(type.getElementType());
  for (int64_t extent : type.getShape())
    if (llvm::MulOverflow(bits, extent, bits) || bits > (int64_t(1) << 62))
      return std::nullopt;
  return (bits + 7) / 8;
}

//===----------------------------------------------------------------------===//
// Attributes from bytes
//===----------------------------------------------------------------------===//

static ElementsAttr fromBits(RankedTensorType type, StringRef raw, unsigned width) {
  SmallVector<APInt> bits;
  int64_t count = type.getNumElements();
  bits.reserve(count);
  uint64_t mask = (uint64_t(1) << width) - 1;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t first = static_cast<uint64_t>(i) * width;
    uint64_t value = static_cast<uint8_t>(raw[first / 8]) >> (first % 8);
    // Six-bit elements reach into the next byte.
    if (first % 8 + width > 8)
      value |= static_cast<uint64_t>(static_cast<uint8_t>(raw[first / 8 + 1])) << (8 - first % 8);
    bits.push_back(APInt(width, value & mask));
  }
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element)
    return DenseElementsAttr::get(type, bits);
  SmallVector<APFloat> floats;
  for (const APInt &value : bits)
    floats.push_back(APFloat(element.getFloatSemantics(), value));
  return DenseElementsAttr::get(type, floats);
}

ElementsAttr quire::import::elementsFromRaw(RankedTensorType type, StringRef raw) {
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  Type element = type.getElementType();
  if (element.isInteger(1)) {
    SmallVector<bool> values;
    for (char byte : raw)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, values);
  }
  unsigned width = rawBits(element);
  if (width < 8)
    return fromBits(type, raw, width);
  // One repeated element is stored once.
  StringRef first = raw.take_front(width / 8);
  bool splat = raw.size() == first.size() || raw.drop_front(first.size()) == raw.drop_back(first.size());
  StringRef kept = splat ? first : raw;
  return DenseElementsAttr::getFromRawBuffer(type, ArrayRef(kept.data(), kept.size()));
}

//===----------------------------------------------------------------------===//
// Typed data
//===----------------------------------------------------------------------===//

template <typename Target, typename List>
static std::string packed(const List &list) {
  std::string raw(list.size() * sizeof(Target), '\0');
  char *out = raw.data();
  for (auto value : list) {
    Target target = static_cast<Target>(value);
    std::memcpy(out, &target, sizeof(target));
    out += sizeof(target);
  }
  return raw;
}

FailureOr<ElementsAttr> TensorReader::readTyped(const pb::TensorProto &tensor, RankedTensorType type,
                                                EmitError emitError) {
  Type element = type.getElementType();
  if (tensor.data_type() == pb::TensorProto::STRING) {
    if (tensor.string_data_size() != type.getNumElements())
      return emitError() << "expected " << type.getNumElements() << " strings, but got " << tensor.string_data_size();
    SmallVector<StringRef> strings(tensor.string_data().begin(), tensor.string_data().end());
    return ElementsAttr(DenseStringElementsAttr::get(type, strings));
  }
  std::string raw;
  unsigned width = rawBits(element);
  switch (tensor.data_type()) {
  case pb::TensorProto::FLOAT:
  case pb::TensorProto::COMPLEX64:
    raw = packed<float>(tensor.float_data());
    break;
  case pb::TensorProto::DOUBLE:
  case pb::TensorProto::COMPLEX128:
    raw = packed<double>(tensor.double_data());
    break;
  case pb::TensorProto::INT64:
    raw = packed<int64_t>(tensor.int64_data());
    break;
  case pb::TensorProto::UINT64:
    raw = packed<uint64_t>(tensor.uint64_data());
    break;
  case pb::TensorProto::UINT32:
    raw = packed<uint32_t>(tensor.uint64_data());
    break;
  default:
    raw = width == 32   ? packed<int32_t>(tensor.int32_data())
          : width == 16 ? packed<uint16_t>(tensor.int32_data())
                        : packed<uint8_t>(tensor.int32_data());
  }
  int64_t expected = *rawBytes(type);
  if (static_cast<int64_t>(raw.size()) != expected)
    return emitError() << "expected data of " << expected << " bytes for " << type << ", but got " << raw.size()
                       << " in the typed field";
  return elementsFromRaw(type, raw);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> TensorReader::readType(const pb::TensorProto &tensor, EmitError emitError) {
  Type element = elementType(context, tensor.data_type());
  if (!element)
    return emitError() << "expected a known element type, but got " << tensor.data_type();
  SmallVector<int64_t> shape;
  int64_t count = 1;
  for (int64_t extent : tensor.dims()) {
    if (extent < 0)
      return emitError() << "expected non-negative extents, but got " << extent;
    if (llvm::MulOverflow(count, extent, count))
      return emitError() << "expected extents whose product fits 64 bits";
    shape.push_back(extent);
  }
  if (tensor.has_segment())
    return emitError() << "not implemented: tensors in segments";
  auto type = RankedTensorType::get(shape, element);
  if (!rawBytes(type))
    return emitError() << "expected a tensor that fits a file, but got " << type;
  return type;
}

FailureOr<TensorData> TensorReader::read(const pb::TensorProto &tensor, EmitError emitError) {
  FailureOr<RankedTensorType> type = readType(tensor, emitError);
  if (failed(type))
    return failure();
  if (tensor.data_location() == pb::TensorProto::EXTERNAL)
    return readExternal(tensor, *type, emitError);
  return readInline(tensor, *type, emitError);
}

FailureOr<TensorData> TensorReader::readInline(const pb::TensorProto &tensor, RankedTensorType type,
                                               EmitError emitError) {
  TensorData data;
  data.type = type;
  if (type.getNumElements() == 0) {
    data.value = DenseElementsAttr::get(type, ArrayRef<Attribute>());
    return data;
  }
  if (!tensor.has_raw_data()) {
    FailureOr<ElementsAttr> value = readTyped(tensor, type, emitError);
    if (failed(value))
      return failure();
    data.value = *value;
    return data;
  }
  FailureOr<InlineData> place = ModelFile::inlineData(tensor);
  if (failed(place))
    return emitError() << "damaged data";
  if (tensor.data_type() == pb::TensorProto::STRING)
    return emitError() << "expected strings in string_data, but got raw data";
  bool single = tensor.data_type() == pb::TensorProto::FLOAT || tensor.data_type() == pb::TensorProto::COMPLEX64;
  bool twofold = tensor.data_type() == pb::TensorProto::DOUBLE || tensor.data_type() == pb::TensorProto::COMPLEX128;
  if ((place->field == InlineData::floatData && !single) || (place->field == InlineData::doubleData && !twofold))
    return emitError() << "expected data in the field of " << dataTypeName(tensor.data_type())
                       << ", but got another typed field";
  data.bytes = *rawBytes(type);
  if (static_cast<int64_t>(place->size) != data.bytes)
    return emitError() << "expected data of " << data.bytes << " bytes for " << type << ", but got " << place->size;
  data.file = file.name().str();
  data.offset = static_cast<int64_t>(place->offset);
  if (data.bytes <= maxConstantBytes)
    data.value = elementsFromRaw(type, file.bytes(*place));
  return data;
}

FailureOr<ElementsAttr> TensorReader::valueOf(const TensorData &data, EmitError emitError) {
  if (data.value)
    return data.value;
  SmallString<128> path(file.folder());
  llvm::sys::path::append(path, data.file);
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, data.bytes, data.offset);
  if (!buffer)
    return emitError() << "cannot read '" << data.file << "': " << buffer.getError().message();
  StringRef raw = (*buffer)->getBuffer();
  if (static_cast<int64_t>(raw.size()) != data.bytes)
    return emitError() << "cannot read '" << data.file << "': expected " << data.bytes << " bytes at " << data.offset;
  return elementsFromRaw(data.type, raw);
}

FailureOr<ElementsAttr> TensorReader::readValue(const pb::TensorProto &tensor, EmitError emitError) {
  FailureOr<TensorData> data = read(tensor, emitError);
  if (failed(data))
    return failure();
  if (!data->value && data->bytes > maxDenseBytes)
    return emitError() << "not implemented: an attribute of " << data->bytes << " bytes";
  if (!data->value && tensor.data_location() != pb::TensorProto::EXTERNAL)
    return elementsFromRaw(data->type, file.bytes(*ModelFile::inlineData(tensor)));
  return valueOf(*data, emitError);
}

//===----------------------------------------------------------------------===//
// External data
//===----------------------------------------------------------------------===//

// Whether `path` is `folder` or lies below it; both are resolved.
static bool isInside(StringRef path, StringRef folder) {
  return path.consume_front(folder) && (path.empty() || folder.ends_with("/") || path.front() == '/');
}

FailureOr<TensorReader::ExternalFile> TensorReader::openExternal(StringRef location, EmitError emitError) {
  auto known = externals.find(location);
  if (known != externals.end())
    return known->second;
  if (location.empty() || location.contains('\0'))
    return emitError() << "expected external data to name a file";
  if (llvm::sys::path::is_absolute(location))
    return emitError() << "expected external data in the model's folder, but got '" << location << "'";
  SmallString<128> path(file.folder()), realFolder, realPath;
  llvm::sys::path::append(path, location);
  std::error_code error = llvm::sys::fs::real_path(file.folder(), realFolder);
  if (!error)
    error = llvm::sys::fs::real_path(path, realPath);
  if (error)
    return emitError() << "cannot find external data '" << location << "': " << error.message();
  if (!isInside(realPath, realFolder))
    return emitError() << "expected external data in the model's folder, but '" << location << "' leads out of it";
  llvm::sys::fs::file_status status;
  error = llvm::sys::fs::status(realPath, status);
  if (error || status.type() != llvm::sys::fs::file_type::regular_file)
    return emitError() << "expected external data to be a file, but got '" << location << "'";
  SmallString<128> relative(location);
  llvm::sys::path::remove_dots(relative, /*remove_dot_dot=*/false);
  ExternalFile external{realPath.str().str(), relative.str().str(), status.getSize()};
  externals[location] = external;
  return external;
}

FailureOr<TensorData> TensorReader::readExternal(const pb::TensorProto &tensor, RankedTensorType type,
                                                 EmitError emitError) {
  StringRef location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  for (const auto &entry : tensor.external_data()) {
    uint64_t number = 0;
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" || entry.key() == "length") {
      if (StringRef(entry.value()).trim().getAsInteger(10, number))
        return emitError() << "expected a number as " << entry.key() << " of external data, but got '" << entry.value()
                           << "'";
      if (entry.key() == "offset")
        offset = number;
      else
        length = number;
    }
  }
  TensorData data;
  data.type = type;
  if (tensor.data_type() == pb::TensorProto::STRING)
    return emitError() << "expected strings in the model file, but got external data";
  data.bytes = *rawBytes(type);
  if (type.getNumElements() == 0) {
    data.value = DenseElementsAttr::get(type, ArrayRef<Attribute>());
    return data;
  }
  FailureOr<ExternalFile> external = openExternal(location, emitError);
  if (failed(external))
    return failure();
  if (length && *length != static_cast<uint64_t>(data.bytes))
    return emitError() << "expected external data of " << data.bytes << " bytes for " << type << ", but got " << *length;
  if (offset > external->size || external->size - offset < static_cast<uint64_t>(data.bytes))
    return emitError() << "external data ends beyond '" << location << "': " << data.bytes << " bytes at " << offset
                       << ", but the file has " << external->size;
  data.file = external->relative;
  data.offset = static_cast<int64_t>(offset);
  if (data.bytes <= maxConstantBytes) {
    FailureOr<ElementsAttr> value = valueOf(data, emitError);
    if (failed(value))
      return failure();
    data.value = *value;
  }
  return data;
}

//===----------------------------------------------------------------------===//
// Sparse tensors
//===----------------------------------------------------------------------===//

FailureOr<TensorData> TensorReader::read(const pb::SparseTensorProto &tensor, EmitError emitError) {
  pb::TensorProto shape;
  *shape.mutable_dims() = tensor.dims();
  shape.set_data_type(tensor.values().data_type());
  FailureOr<RankedTensorType> type = readType(shape, emitError);
  if (failed(type))
    return failure();
  unsigned width = rawBits(type->getElementType());
  int64_t bytes = *rawBytes(*type);
  if (width < 8 || bytes > maxDenseBytes)
    return emitError() << "not implemented: a sparse tensor of type " << *type;
  FailureOr<ElementsAttr> values = readValue(tensor.values(), emitError);
  if (failed(values))
    return failure();
  FailureOr<ElementsAttr> indices = readValue(tensor.indices(), emitError);
  if (failed(indices))
    return failure();
  auto indexType = cast<RankedTensorType>(indices->getType());
  int64_t count = values->getNumElements(), rank = type->getRank();
  bool linear = indexType.getRank() == 1;
  if (!indexType.getElementType().isInteger(64) || (!linear && indexType.getRank() != 2) ||
      indexType.getNumElements() != (linear ? count : count * rank))
    return emitError() << "expected one index for each of " << count << " sparse values, but got " << indexType;

  SmallVector<Attribute> dense(type->getNumElements());
  Builder builder(context);
  Type element = type->getElementType();
  Attribute zero = isa<ComplexType>(element) ? Attribute() : Attribute(builder.getZeroAttr(element));
  if (!zero)
    return emitError() << "not implemented: a sparse tensor of type " << *type;
  llvm::fill(dense, zero);
  auto index = indices->value_begin<APInt>();
  auto value = values->value_begin<Attribute>();
  for (int64_t i = 0; i < count; ++i, ++value) {
    int64_t position = 0;
    for (int64_t axis = 0; axis < (linear ? 1 : rank); ++axis, ++index) {
      int64_t extent = linear ? type->getNumElements() : type->getDimSize(axis);
      int64_t coordinate = (*index).getSExtValue();
      if (coordinate < 0 || coordinate >= extent)
        return emitError() << "expected indices below " << extent << " in a sparse tensor, but got " << coordinate;
      position = position * extent + coordinate;
    }
    dense[position] = *value;
  }
  TensorData data;
  data.type = *type;
  data.value = DenseElementsAttr::get(*type, dense);
  return data;
}
