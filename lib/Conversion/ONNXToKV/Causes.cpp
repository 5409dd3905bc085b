// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Finds the cause of a refusal where the analysis only meets its consequences.
#include "lib/Conversion/ONNXToKV/Causes.h"

#include "dialects/ONNX/ONNXOps.h"

#include "llvm/ADT/SmallPtrSet.h"

#include <map>

using namespace mlir;

namespace quire {

namespace {
class CauseFinder {
public:
  CauseFinder(func::FuncOp source, ArrayRef<std::string> inputNames, ArrayRef<InputRole> roles) : source(source), inputNames(inputNames), roles(roles) {}

  std::vector<std::string> run() {
    source.walk([&](Operation *op) {
      if (op->use_empty())
        return;
      if (isa<onnx::MSPagedAttentionOp>(op))
        found(op, "not implemented: " + nameOf(op) + ", whose cache is in pages already");
      else if (auto past = pastOf(op))
        foundRecurrent(op, *past);
      else if (isa<onnx::MSMoEOp, onnx::MSQMoEOp>(op) || choosesExperts(op))
        found(op, "not implemented: mixtures of experts, which " + nameOf(op) + (isa<onnx::TopKOp>(op) ? " chooses" : " is"));
    });
    for (BlockArgument argument : source.getArguments())
      lookAtInput(argument);
    std::vector<std::string> causes;
    for (auto &[why, nodes] : nodesOf) {
      std::string others = nodes.size() > 1 ? " (and " + std::to_string(nodes.size() - 1) + " more of its kind)" : "";
      causes.push_back("node '" + nodes.front() + "': " + why + others);
    }
    causes.insert(causes.end(), ofInputs.begin(), ofInputs.end());
    return causes;
  }

private:
  static std::string nameOf(Operation *op) {
    StringRef name = op->getName().stripDialect();
    name.consume_front("ms.");
    return name.str();
  }
  void found(Operation *op, const std::string &why) {
    auto name = op->getLoc()->findInstanceOf<NameLoc>();
    nodesOf[why].push_back(name ? name.getName().str() : nameOf(op));
  }

  /// The state that a recurrent operator takes: its result depends on all earlier tokens through a fixed number of numbers.
  static std::optional<Value> pastOf(Operation *op) {
    if (auto conv = dyn_cast<onnx::CausalConvWithStateOp>(op))
      return conv.getPastState();
    if (auto conv = dyn_cast<onnx::MSCausalConvWithStateOp>(op))
      return conv.getPastState();
    if (auto linear = dyn_cast<onnx::LinearAttentionOp>(op))
      return linear.getPastState();
    if (auto linear = dyn_cast<onnx::MSLinearAttentionOp>(op))
      return linear.getPastState();
    return std::nullopt;
  }
  void foundRecurrent(Operation *op, Value past) {
    if (isa<NoneType>(past.getType()))
      return found(op, "not implemented: " + nameOf(op) + ", which takes a state from token to token");
    found(op, "not implemented: recurrent states, which " + nameOf(op) + " replaces in every call");
  }

  /// A choice among a fixed number of things, on which a product depends. Keys that are chosen are as many as there are positions, and a choice of
  /// tokens only leaves the graph.
  static bool choosesExperts(Operation *op) {
    auto choice = dyn_cast<onnx::TopKOp>(op);
    auto scores = choice ? dyn_cast<RankedTensorType>(op->getOperand(0).getType()) : RankedTensorType();
    if (!scores || scores.getRank() == 0)
      return false;
    int64_t axis = choice.getAxis() < 0 ? choice.getAxis() + scores.getRank() : choice.getAxis();
    if (axis < 0 || axis >= scores.getRank() || scores.isDynamicDim(axis))
      return false;
    SmallVector<Operation *> worklist{op};
    SmallPtrSet<Operation *, 16> seen;
    while (!worklist.empty())
      for (Operation *user : worklist.pop_back_val()->getUsers()) {
        if (isProduct(user))
          return true;
        if (seen.insert(user).second)
          worklist.push_back(isa<onnx::YieldOp>(user) ? user->getParentOp() : user);
      }
    return false;
  }

  /// Hidden states are multiplied by weights; rows of a cache are not, they were already.
  void lookAtInput(BlockArgument argument) {
    if (roles[argument.getArgNumber()] != InputRole::State)
      return;
    SmallVector<Value> worklist{argument};
    SmallPtrSet<Operation *, 16> seen;
    while (!worklist.empty())
      for (Operation *user : worklist.pop_back_val().getUsers()) {
        if (!seen.insert(user).second)
          continue;
        if (isProduct(user) && llvm::any_of(user->getOperands(), isWeight)) {
          bool hasIds = llvm::is_contained(roles, InputRole::InputIds);
          ofInputs.push_back("input '" + inputNames[argument.getArgNumber()] + "': " +
                             (hasIds ? "not implemented: hidden states of another model, as for cross attention" : "not implemented: hidden states in place of token ids"));
          return;
        }
        if (isa<onnx::CastOp, onnx::IdentityOp, onnx::ReshapeOp, onnx::TransposeOp, onnx::SqueezeOp, onnx::UnsqueezeOp>(user))
          llvm::append_range(worklist, user->getResults());
        if (auto yield = dyn_cast<onnx::YieldOp>(user))
          llvm::append_range(worklist, yield->getParentOp()->getResults());
      }
  }
  static bool isProduct(Operation *op) { return isa<onnx::MatMulOp, onnx::GemmOp, onnx::MSFusedMatMulOp, onnx::MSMatMulNBitsOp>(op); }
  static bool isWeight(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (isa<onnx::WeightOp, onnx::ConstantOp>(op))
        return true;
      if (!isa<onnx::CastOp, onnx::IdentityOp, onnx::TransposeOp, onnx::DequantizeLinearOp>(op))
        return false;
      value = op->getOperand(0);
    }
    return false;
  }

  func::FuncOp source;
  ArrayRef<std::string> inputNames;
  ArrayRef<InputRole> roles;
  std::map<std::string, std::vector<std::string>> nodesOf; // by reason
  std::vector<std::string> ofInputs;
};
} // namespace

std::vector<std::string> causesOfRefusal(func::FuncOp source, ArrayRef<std::string> inputNames, ArrayRef<InputRole> roles) {
  return CauseFinder(source, inputNames, roles).run();
}

} // namespace quire
