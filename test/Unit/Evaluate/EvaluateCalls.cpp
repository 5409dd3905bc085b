// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Single calls of models, for drivers that know what to feed: reads lines "MODEL INPUTS OUTPUTS" from standard input.
// Both folders hold names.txt, one name a line, and I.npy for the name in line I. Answers "ok" or "error: why" a line.
#include "Tools.h"
#include "llvm/Support/raw_ostream.h"
#include <iostream>

using namespace llvm;
using namespace quire::eval;

static Error runCall(ImportedModel &model, StringRef inputs, StringRef outputs) {
  auto listing = MemoryBuffer::getFile((inputs + "/names.txt").str());
  if (!listing)
    return fail("cannot read '" + inputs + "/names.txt'");
  SmallVector<StringRef> names;
  (*listing)->getBuffer().split(names, '\n', -1, /*KeepEmpty=*/false);
  StringMap<Tensor> values;
  for (auto [index, name] : enumerate(names)) {
    Result value = readNpy((inputs + "/" + Twine(index) + ".npy").str());
    if (!value)
      return value.takeError();
    values[name] = *value;
  }
  auto results = model.evaluator().run(values);
  if (!results)
    return results.takeError();
  std::error_code code;
  raw_fd_ostream out((outputs + "/names.txt").str(), code);
  if (code)
    return fail("cannot write in '" + outputs + "'");
  for (auto [index, name] : enumerate(model.evaluator().outputNames())) {
    out << name << "\n";
    if (Error error = writeNpy((outputs + "/" + Twine(index) + ".npy").str(), results->lookup(name)))
      return error;
  }
  return Error::success();
}

int main() {
  auto context = makeContext();
  StringMap<std::unique_ptr<ImportedModel>> models;
  for (std::string line; std::getline(std::cin, line);) {
    SmallVector<StringRef, 3> words;
    StringRef(line).split(words, ' ');
    if (words.size() != 3) {
      outs() << "error: expected MODEL INPUTS OUTPUTS\n";
      continue;
    }
    StringRef path = words[0], inputs = words[1], outputs = words[2];
    auto &model = models[path];
    auto answer = [&]() -> Error {
      if (!model) {
        model = std::make_unique<ImportedModel>(*context);
        if (Error error = model->load(path))
          return error;
      }
      return runCall(*model, inputs, outputs);
    };
    if (Error error = answer())
      outs() << "error: " << toString(std::move(error)) << "\n";
    else
      outs() << "ok\n";
    outs().flush();
  }
  return 0;
}
