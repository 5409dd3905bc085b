// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The analysis of a whole model, with one retry for one-token graphs.

#include "lib/Analysis/StatePairing/Pairing.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;
using namespace mlir;

namespace quire {

namespace {
/// Maps the files that initializers name.
class WeightFiles {
public:
  explicit WeightFiles(std::string folder) : folder(std::move(folder)) {}

  std::optional<ArrayRef<char>> read(onnx::InitializerOp op) {
    auto [it, isNew] = files.insert({op.getFile().str(), nullptr});
    if (isNew) {
      SmallString<128> path(folder);
      sys::path::append(path, op.getFile());
      if (auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false))
        it->second = std::move(*buffer);
    }
    if (!it->second)
      return std::nullopt;
    uint64_t size = it->second->getBufferSize(), from = op.getOffset(),
             bytes = op.getBytes();
    if (from > size || bytes > size - from)
      return std::nullopt;
    return ArrayRef<char>(it->second->getBufferStart() + from, bytes);
  }

private:
  std::string folder;
  std::map<std::string, std::unique_ptr<MemoryBuffer>> files;
};
} // namespace

static RaisedModel analyzeOnce(func::FuncOp fn, const AnalysisOptions &options,
                               bool oneToken) {
  InterpOptions how;
  how.inputRoles = options.inputRoles;
  how.oneToken = oneToken;
  how.maxRestarts = options.maxRestarts;
  if (!options.weightFolder.empty())
    how.readWeight = [files = std::make_shared<WeightFiles>(
                          options.weightFolder)](onnx::InitializerOp op) {
      return files->read(op);
    };
  auto interp = std::make_shared<Interp>(fn, std::move(how));
  bool done = interp->run();
  RaisedModel model;
  model.adopt(interp);
  if (done) {
    Pairing(*interp, model).run();
  } else {
    model.inputRoles = interp->roles;
    model.reasons.push_back(interp->refusal);
    model.restarts = interp->restarts;
    model.assumptions = interp->assumptions;
  }
  model.oneTokenOnly = oneToken;
  return model;
}

FailureOr<RaisedModel> analyzeModel(func::FuncOp fn,
                                    const AnalysisOptions &options) {
  if (fn.isExternal() || !fn.getBody().hasOneBlock())
    return fn.emitError() << "expected a function with one block", failure();
  RaisedModel model = analyzeOnce(fn, options, /*oneToken=*/false);
  if (model.raised())
    return model;
  // A cached branch that was traced with one token sees every key.
  bool retry = llvm::any_of(model.reasons, [](StringRef r) {
    return r.contains("every key of the call") || r.contains("extents") ||
           r.contains("CumSum");
  });
  if (retry) {
    RaisedModel one = analyzeOnce(fn, options, /*oneToken=*/true);
    if (one.raised()) {
      one.flags.push_back("right for calls of one token only: " +
                          model.reasons.front());
      return one;
    }
  }
  return model;
}

} // namespace quire
