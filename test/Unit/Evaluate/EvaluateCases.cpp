// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs backend node tests in ONNX's own format: `evaluate-cases LIST`, where each line is "folder rtol atol" and a
// folder holds model.onnx, input_I.pb and output_I.pb. Prints "pass NAME", "fail NAME: why" or "unimplemented NAME:
// why" a case.
#include "Tools.h"
#include "lib/Import/Messages.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;
using namespace quire::eval;
namespace pb = quire::import::pb;

static std::optional<ElementKind> kindOfDataType(int dataType) {
  switch (dataType) {
  case pb::TensorProto::FLOAT:
    return ElementKind::F32;
  case pb::TensorProto::UINT8:
    return ElementKind::U8;
  case pb::TensorProto::INT8:
    return ElementKind::I8;
  case pb::TensorProto::UINT16:
    return ElementKind::U16;
  case pb::TensorProto::INT16:
    return ElementKind::I16;
  case pb::TensorProto::INT32:
    return ElementKind::I32;
  case pb::TensorProto::INT64:
    return ElementKind::I64;
  case pb::TensorProto::BOOL:
    return ElementKind::Bool;
  case pb::TensorProto::FLOAT16:
    return ElementKind::F16;
  case pb::TensorProto::DOUBLE:
    return ElementKind::F64;
  case pb::TensorProto::UINT32:
    return ElementKind::U32;
  case pb::TensorProto::UINT64:
    return ElementKind::U64;
  case pb::TensorProto::BFLOAT16:
    return ElementKind::BF16;
  case pb::TensorProto::FLOAT8E4M3FN:
    return ElementKind::F8E4M3FN;
  case pb::TensorProto::FLOAT8E4M3FNUZ:
    return ElementKind::F8E4M3FNUZ;
  case pb::TensorProto::FLOAT8E5M2:
    return ElementKind::F8E5M2;
  case pb::TensorProto::FLOAT8E5M2FNUZ:
    return ElementKind::F8E5M2FNUZ;
  case pb::TensorProto::UINT4:
    return ElementKind::U4;
  case pb::TensorProto::INT4:
    return ElementKind::I4;
  case 23: // FLOAT4E2M1
    return ElementKind::F4E2M1;
  case 24: // FLOAT8E8M0
    return ElementKind::F8E8M0;
  case 25: // UINT2
    return ElementKind::U2;
  case 26: // INT2
    return ElementKind::I2;
  default:
    return std::nullopt;
  }
}

/// A tensor whose data is raw, as the driver writes them.
static Result readTensor(StringRef path) {
  auto file = MemoryBuffer::getFile(path, false, false);
  if (!file)
    return fail("cannot read '" + path + "'");
  pb::TensorProto proto;
  if (!proto.ParseFromArray((*file)->getBufferStart(), static_cast<int>((*file)->getBufferSize())))
    return fail("not implemented: a value that is no tensor");
  std::optional<ElementKind> kind = kindOfDataType(proto.data_type());
  if (!kind)
    return fail("not implemented: elements of ONNX type " + Twine(proto.data_type()));
  Shape shape(proto.dims().begin(), proto.dims().end());
  Tensor tensor = Tensor::zeros(*kind, shape);
  if (proto.raw_data().size() != static_cast<size_t>(tensor.byteCount()))
    return fail("expected " + Twine(tensor.byteCount()) + " bytes of raw data, but got " +
                Twine(proto.raw_data().size()));
  std::memcpy(tensor.writableBytes(), proto.raw_data().data(), proto.raw_data().size());
  return tensor;
}

static std::string difference(const Tensor &got, const Tensor &want, double rtol, double atol) {
  if (got.kind() != want.kind() || got.shape() != want.shape())
    return ("expected " + nameOf(want.kind()) + textOf(want.shape()) + ", but got " + nameOf(got.kind()) +
            textOf(got.shape()))
        .str();
  if (!isFloat(want.kind())) {
    Numbers<int64_t> a(got), b(want);
    for (size_t i = 0; i < a.size(); ++i)
      if (a[static_cast<int64_t>(i)] != b[static_cast<int64_t>(i)])
        return ("element " + Twine(i) + ": expected " + Twine(b[static_cast<int64_t>(i)]) + ", but got " +
                Twine(a[static_cast<int64_t>(i)]))
            .str();
    return {};
  }
  // Narrow formats may differ by two units in the last place: the references round intermediate results, we round once.
  double units = want.kind() == ElementKind::BF16 ? 0x1p-6 : want.kind() == ElementKind::F16 ? 0x1p-9 : 0.0;
  rtol = std::max(rtol, units);
  Numbers<double> a(got), b(want);
  for (size_t at = 0; at < a.size(); ++at) {
    auto i = static_cast<int64_t>(at);
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    if (!(std::fabs(a[i] - b[i]) <= atol + rtol * std::fabs(b[i])))
      return "element " + std::to_string(i) + ": expected " + std::to_string(b[i]) + ", but got " +
             std::to_string(a[i]);
  }
  return {};
}

static std::string runCase(StringRef folder, double rtol, double atol) {
  auto context = makeContext();
  ImportedModel model(*context);
  auto path = [&](const Twine &name) { return (folder + "/" + name).str(); };
  if (Error error = model.load(path("model.onnx")))
    return toString(std::move(error));
  SmallVector<Tensor> arguments;
  for (unsigned i = 0; i < model.evaluator().function().getNumArguments(); ++i) {
    if (!sys::fs::exists(path("input_" + Twine(i) + ".pb")))
      return "not implemented: a value that is no tensor";
    Result tensor = readTensor(path("input_" + Twine(i) + ".pb"));
    if (!tensor)
      return toString(tensor.takeError());
    arguments.push_back(*tensor);
  }
  auto results = model.evaluator().run(arguments);
  if (!results)
    return toString(results.takeError());
  for (auto [i, result] : enumerate(*results)) {
    if (!sys::fs::exists(path("output_" + Twine(i) + ".pb")))
      return "not implemented: a value that is no tensor";
    Result want = readTensor(path("output_" + Twine(i) + ".pb"));
    if (!want)
      return toString(want.takeError());
    std::string text = difference(result, *want, rtol, atol);
    if (!text.empty())
      return "output " + std::to_string(i) + ": " + text;
  }
  return {};
}

int main(int argc, char **argv) {
  if (argc != 2) {
    errs() << "usage: evaluate-cases LIST\n";
    return 1;
  }
  auto list = MemoryBuffer::getFile(argv[1]);
  if (!list) {
    errs() << "cannot read '" << argv[1] << "'\n";
    return 1;
  }
  SmallVector<StringRef> lines;
  (*list)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    auto [folder, tolerances] = line.split(' ');
    auto [relative, absolute] = tolerances.split(' ');
    double rtol = 0, atol = 0;
    relative.getAsDouble(rtol);
    absolute.getAsDouble(atol);
    std::string problem = runCase(folder, rtol, atol);
    StringRef name = sys::path::filename(folder);
    if (problem.empty())
      outs() << "pass " << name << "\n";
    else
      outs() << (StringRef(problem).contains("not implemented") || StringRef(problem).contains("expected operator set")
                     ? "unimplemented "
                     : "fail ")
             << name << ": " << problem << "\n";
    outs().flush();
  }
  return 0;
}
