// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the signature text of an operator; its words are defined at ONNX_Signature in ONNXBase.td.

#include "lib/Import/Signature.h"

#include "dialects/ONNX/ONNXDialect.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace quire::import;

const Signature::Field *Signature::findAttribute(StringRef name) const {
  const Field *found = llvm::find_if(attributes, [&](const Field &field) { return field.name == name; });
  return found == attributes.end() ? nullptr : found;
}

static void addWord(Signature &signature, StringRef word, bool result) {
  auto [kind, rest] = word.split(':');
  auto &slots = result ? signature.results : signature.operands;
  if (kind == "r")
    slots.push_back({rest, Signature::Presence::Required});
  else if (kind == "o")
    slots.push_back({rest, Signature::Presence::Optional});
  else if (kind == "v")
    slots.push_back({rest, Signature::Presence::Variadic});
  else if (kind == "g")
    signature.regions.push_back(rest);
  else {
    auto [name, storage] = rest.split(':');
    signature.attributes.push_back({name, storage, kind == "A"});
  }
}

std::optional<Signature> quire::import::lookupSignature(MLIRContext *context, StringRef domain, StringRef opType) {
  std::string name = domain == "com.microsoft"     ? "onnx.ms."
                     : domain == "ai.onnx.preview" ? "onnx.preview."
                                                   : "onnx.";
  if (!domain.empty() && name == "onnx.")
    return std::nullopt;
  name += opType;
  // The dialect's own operations (onnx.none, ...) begin with a lower-case letter and are no operators.
  if (opType.empty() || !llvm::isUpper(opType.front()) || opType.contains('.') || opType.contains('\0'))
    return std::nullopt;
  std::optional<RegisteredOperationName> registered = RegisteredOperationName::lookup(name, context);
  if (!registered)
    return std::nullopt;
  auto *concept_ = registered->getInterface<quire::onnx::ONNXOpInterface>();
  if (!concept_)
    return std::nullopt;
  Signature signature(*registered);
  auto [inputs, outputs] = concept_->getSignature().split('|');
  SmallVector<StringRef> words;
  inputs.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    addWord(signature, word, false);
  words.clear();
  outputs.split(words, ' ', -1, false);
  for (StringRef word : words)
    addWord(signature, word, true);
  return signature;
}
