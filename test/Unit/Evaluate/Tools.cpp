// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Importing, and NumPy's file format as far as the tests need it.
#include "Tools.h"
#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Import/Import.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace quire::eval {

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registry.insert<onnx::ONNXDialect, func::FuncDialect>();
  registerEvaluateExternalModels(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

llvm::Error ImportedModel::load(StringRef path) {
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += (said.empty() ? "" : "; ") + diagnostic.str();
    return success();
  });
  auto imported = importOnnx(path, context);
  if (failed(imported))
    return fail("import: " + said);
  module = std::move(*imported);
  StringRef folder = llvm::sys::path::parent_path(path);
  interpreter = std::make_unique<Evaluator>(*module, folder.empty() ? "." : folder);
  return llvm::Error::success();
}

namespace {
struct NpyType {
  const char *descr;
  ElementKind kind;
};
constexpr NpyType npyTypes[] = {{"<f4", ElementKind::F32},
                                {"<f2", ElementKind::F16},
                                {"<i8", ElementKind::I64},
                                {"<i4", ElementKind::I32},
                                {"|b1", ElementKind::Bool}};
} // namespace

llvm::Error writeNpy(StringRef path, const Tensor &tensor) {
  const auto *type = llvm::find_if(npyTypes, [&](const NpyType &each) { return each.kind == tensor.kind(); });
  if (type == std::end(npyTypes))
    return fail("not implemented: .npy files of " + nameOf(tensor.kind()));
  std::error_code code;
  llvm::raw_fd_ostream out(path, code);
  if (code)
    return fail("cannot write '" + path + "': " + code.message());
  std::string header = std::string("{'descr': '") + type->descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : tensor.shape())
    header += std::to_string(extent) + ", ";
  header += "), }";
  while ((10 + header.size() + 1) % 64)
    header += ' ';
  header += '\n';
  out << StringRef("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size() & 255)
      << static_cast<char>(header.size() >> 8) << header;
  out.write(tensor.bytes(), static_cast<size_t>(tensor.byteCount()));
  return llvm::Error::success();
}

Result readNpy(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return fail("cannot read '" + path + "': " + file.getError().message());
  StringRef bytes = (*file)->getBuffer();
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12)
    return fail("expected a .npy file, but got '" + path + "'");
  size_t wide = bytes[6] > 1 ? 4 : 2, length = 0;
  for (size_t i = 0; i < wide; ++i)
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[8 + i])) << (8 * i);
  StringRef header = bytes.substr(8 + wide, length);
  auto quoted = [&](StringRef key) { return header.split(("'" + key + "': '").str()).second.split('\'').first; };
  const auto *type = llvm::find_if(npyTypes, [&](const NpyType &each) { return quoted("descr") == each.descr; });
  if (type == std::end(npyTypes) || header.contains("'fortran_order': True"))
    return fail("not implemented: this form of '" + path + "'");
  Shape shape;
  SmallVector<StringRef> extents;
  header.split("'shape': (").second.split(')').first.split(extents, ',');
  for (StringRef extent : extents) {
    int64_t value = 0;
    if (!extent.trim().empty() && !extent.trim().getAsInteger(10, value))
      shape.push_back(value);
  }
  Tensor tensor = Tensor::zeros(type->kind, shape);
  StringRef data = bytes.drop_front(8 + wide + length);
  if (data.size() < static_cast<size_t>(tensor.byteCount()))
    return fail("expected " + Twine(tensor.byteCount()) + " bytes in '" + path + "'");
  std::memcpy(tensor.writableBytes(), data.data(), static_cast<size_t>(tensor.byteCount()));
  return tensor;
}

} // namespace quire::eval
