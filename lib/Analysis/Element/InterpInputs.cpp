// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensors of the graph's inputs under the reference semantics.

#include "lib/Analysis/Element/ConstantTables.h"
#include "lib/Analysis/Element/Interp.h"

using namespace llvm;
using namespace mlir;

namespace quire {

Expr Interp::inputSymbol(unsigned input, unsigned axis) {
  return ctx.symbol("?" + inputName(input) + "." + std::to_string(axis));
}

void Interp::bindInputs() {
  for (unsigned i = 0, e = fn.getNumArguments(); i < e; ++i)
    bindInput(i);
}


void Interp::bindInput(unsigned i) {
  BlockArgument arg = fn.getArgument(i);
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  if (!type)
    return;
  InputRole role = roles[i];
  SymbolicTensor t;
  t.type = elementTypeOf(type);
  for (auto [axis, n] : llvm::enumerate(type.getShape())) {
    Expr symbol = inputSymbol(i, axis);
    auto it = bindings.find(symbol);
    t.extents.push_back(!ShapedType::isDynamic(n) ? ctx.num(n)
                        : it == bindings.end()    ? symbol
                                                  : it->second);
  }
  unsigned rank = t.rank();
  bool fixedBatch = rank && !type.isDynamicDim(0);
  Expr batch = fixedBatch ? t.extents[0] : B;
  bool isRows = role == InputRole::InputIds || role == InputRole::PositionIds;
  bool isRow = role == InputRole::CachePosition && rank == 1;
  if ((isRows && rank == 2) || isRow) {
    unsigned axis = rank - 1;
    if (!type.isDynamicDim(axis) && L != t.extents[axis]) {
      if (!pending) {
        pending.var = ctx.L();
        pending.value = t.extents[axis];
      }
      return;
    }
    if (isRow)
      t.extents = {L};
    else
      t.extents = {batch, L};
  } else if (rank >= 1 && (role == InputRole::AttentionMask ||
                           role == InputRole::EncoderMask)) {
    t.extents[0] = batch;
  }
  SmallVector<Expr, 4> idx = generic(t.extents);
  std::string name = inputName(i);
  switch (role) {
  case InputRole::InputIds:
    if (rank == 0)
      t.element = ctx.bad("input '" + name + "' is a scalar");
    else
      t.element = dataLeaf(label(arg), t.type, idx[rank >= 2 ? 1 : 0],
                           rank >= 2 ? idx[0] : ctx.num(0), t.extents);
    break;
  case InputRole::PositionIds:
    t.element = ctx.add(P, rank ? idx.back() : ctx.num(0));
    break;
  case InputRole::AttentionMask:
  case InputRole::EncoderMask:
    t.element = t.type == ElementType::Bool ? ctx.boolean(true) : ctx.num(1);
    break;
  case InputRole::CachePosition:
    t.element = rank == 1 ? ctx.add(P, index(0, L))
                          : ctx.bad("input '" + name + "' is no vector");
    break;
  case InputRole::PastLengths:
    t.extents = {batch};
    t.element = P;
    break;
  case InputRole::TotalLengths:
    t.extents = {batch};
    t.element = ctx.add(P, L);
    break;
  case InputRole::LastPositions:
    t.extents[0] = batch;
    t.element = ctx.add(ctx.add(P, L), ctx.num(-1));
    break;
  case InputRole::TotalLength:
    t.element = ctx.add(P, L);
    flag("scalar input '" + name + "' is one length for the whole batch");
    break;
  case InputRole::PastLength:
    t.element = P;
    flag("scalar input '" + name + "' is one past length for the whole batch");
    break;
  case InputRole::UseCacheBranch:
    t.element = ctx.boolean(true);
    break;
  case InputRole::State:
    for (StateInput &s : states) {
      if (s.arg != arg)
        continue;
      if (s.axis >= 0 && s.axis < int(rank) && type.isDynamicDim(s.axis))
        t.extents[s.axis] =
            s.growth == Growth::Concat ? P : ctx.symbol("S");
      s.extents = t.extents;
    }
    t.element = ctx.past(name, generic(t.extents));
    break;
  case InputRole::CallerMask:
    t.element = ctx.bad("input '" + name +
                        "' is a mask that the caller supplies: it has no "
                        "meaning in the graph");
    if (rank == 4)
      t.extents = {batch, ctx.num(1), L, ctx.add(P, L)};
    break;
  case InputRole::PrefixLength:
    t.element = ctx.bad("input '" + name +
                        "' is a scalar of the whole batch with no known "
                        "meaning");
    break;
  case InputRole::Unused:
  case InputRole::Unknown:
    if (rank == 2)
      t.extents[0] = batch;
    t.element = ctx.bad("input '" + name + "' has no known role");
    break;
  }
  env[arg] = std::make_unique<SymbolicTensor>(std::move(t));
}

} // namespace quire
