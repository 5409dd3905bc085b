// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each input of a graph is for, by what it feeds.

#include "dialects/ONNX/ONNXOps.h"
#include "lib/Analysis/Element/Interp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <deque>

using namespace llvm;
using namespace mlir;

namespace quire {

namespace {
struct Use {
  Operation *op;
  unsigned operand;
  unsigned distance;
};

enum Candidate : unsigned {
  AsTable = 1, // indexes a table: ids or positions
  AsIds = 2,
  AsPositions = 4,
  AsMask = 8,
  AsShape = 16,
};
} // namespace

/// Shape-like and integer operators that a role shines through.
static bool passesOn(Operation *op) {
  return isa<onnx::CastOp, onnx::UnsqueezeOp, onnx::SqueezeOp, onnx::ReshapeOp,
             onnx::IdentityOp, onnx::ExpandOp, onnx::SliceOp, onnx::TransposeOp,
             onnx::FlattenOp, onnx::AddOp, onnx::SubOp, onnx::CastLikeOp,
             onnx::MaxOp, onnx::MinOp, onnx::WhereOp, onnx::ClipOp,
             onnx::TileOp, onnx::MulOp, onnx::ConcatOp, onnx::QuantizeLinearOp,
             onnx::DequantizeLinearOp>(op);
}

static SmallVector<Use> usesOf(Value v) {
  SmallVector<Use> out;
  llvm::DenseSet<Value> seen{v};
  std::deque<std::pair<Value, unsigned>> todo{{v, 0}};
  while (!todo.empty() && out.size() < 400) {
    auto [x, distance] = todo.front();
    todo.pop_front();
    // Uses are listed last to first.
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : x.getUses())
      uses.push_back(&use);
    for (OpOperand *use : llvm::reverse(uses)) {
      Operation *op = use->getOwner();
      out.push_back({op, use->getOperandNumber(), distance});
      if (distance >= 8 || !passesOn(op))
        continue;
      for (Value r : op->getResults())
        if (seen.insert(r).second)
          todo.push_back({r, distance + 1});
    }
  }
  return out;
}

static bool isConstant(Value v) {
  return isa_and_nonnull<onnx::ConstantOp, onnx::WeightOp>(v.getDefiningOp());
}

static std::optional<SmallVector<int64_t>> constantInts(Value v) {
  auto c = v.getDefiningOp<onnx::ConstantOp>();
  auto dense = c ? dyn_cast<DenseIntElementsAttr>(c.getValue())
                 : DenseIntElementsAttr();
  if (!dense || dense.getNumElements() > 64)
    return std::nullopt;
  SmallVector<int64_t> out;
  for (APInt x : dense.getValues<APInt>())
    out.push_back(x.getSExtValue());
  return out;
}

/// Rows of this table are the cosine or sine operand of a rotation.
static bool reachesRotation(Value v, unsigned depth = 4) {
  for (OpOperand &use : v.getUses()) {
    Operation *op = use.getOwner();
    unsigned k = use.getOperandNumber();
    if (isa<onnx::RotaryEmbeddingOp>(op) && (k == 1 || k == 2))
      return true;
    if (depth &&
        isa<onnx::UnsqueezeOp, onnx::CastOp, onnx::SliceOp, onnx::ConcatOp,
            onnx::SqueezeOp, onnx::ReshapeOp, onnx::MulOp, onnx::IdentityOp>(
            op) &&
        llvm::any_of(op->getResults(), [&](Value r) {
          return reachesRotation(r, depth - 1);
        }))
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Axes of a value in terms of the state's axes; -1: a new axis.
using AxisMap = SmallVector<int>;

static int wrap(int64_t axis, size_t rank) {
  return int(axis < 0 ? axis + int64_t(rank) : axis);
}

/// Walks forward to the op that appends or writes rows.
static std::pair<int, Growth> findGrowth(BlockArgument arg, unsigned rank) {
  AxisMap identity;
  for (unsigned a = 0; a < rank; ++a)
    identity.push_back(int(a));
  std::deque<std::pair<Value, AxisMap>> todo{{arg, identity}};
  llvm::DenseSet<Value> seen;
  while (!todo.empty()) {
    auto [v, axes] = todo.front();
    todo.pop_front();
    if (!seen.insert(v).second)
      continue;
    auto axisAt = [&, &axes = axes](int64_t a) {
      int q = wrap(a, axes.size());
      return q >= 0 && q < int(axes.size()) ? axes[q] : -1;
    };
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : v.getUses())
      uses.push_back(&use);
    for (OpOperand *use : llvm::reverse(uses)) {
      Operation *op = use->getOwner();
      unsigned k = use->getOperandNumber();
      if (auto concat = dyn_cast<onnx::ConcatOp>(op)) {
        if (concat.getInputs().size() == 1)
          todo.push_back({concat.getResult(), axes});
        else if (concat.getInputs().size() == 2 && axisAt(concat.getAxis()) >= 0)
          return {axisAt(concat.getAxis()), Growth::Concat};
      } else if (auto s = dyn_cast<onnx::TensorScatterOp>(op); s && k == 0) {
        return {axisAt(s.getAxis()), Growth::Scatter};
      } else if (auto s = dyn_cast<onnx::ScatterElementsOp>(op); s && k == 0) {
        return {axisAt(s.getAxis()), Growth::Scatter};
      } else if (isa<onnx::ScatterNDOp>(op) && k == 0) {
        // The component of the index that varies decides; see the rule.
        return {axes[0] >= 0 ? axes[0] : -1, Growth::Scatter};
      } else if (isa<onnx::IdentityOp, onnx::CastOp, onnx::MulOp>(op)) {
        todo.push_back({op->getResult(0), axes});
      } else if (auto split = dyn_cast<onnx::SplitOp>(op)) {
        for (Value r : split.getOutputs())
          todo.push_back({r, axes});
      } else if (auto t = dyn_cast<onnx::TransposeOp>(op)) {
        AxisMap out;
        if (auto perm = t.getPerm())
          for (int64_t q : *perm)
            out.push_back(axisAt(q));
        else
          out.assign(axes.rbegin(), axes.rend());
        todo.push_back({t.getResult(), out});
      } else if (auto g = dyn_cast<onnx::GatherOp>(op); g && k == 0) {
        auto type = dyn_cast<RankedTensorType>(g.getIndices().getType());
        if (!constantInts(g.getIndices()) || !type || type.getRank() != 0)
          continue;
        AxisMap out = axes;
        int q = wrap(g.getAxis(), axes.size());
        if (q >= 0 && q < int(out.size()))
          out.erase(out.begin() + q);
        todo.push_back({g.getResult(), out});
      } else if (isa<onnx::SqueezeOp, onnx::UnsqueezeOp>(op) && k == 0) {
        auto at = constantInts(op->getOperand(1));
        if (!at)
          continue;
        bool squeeze = isa<onnx::SqueezeOp>(op);
        size_t r = squeeze ? axes.size() : axes.size() + at->size();
        SmallVector<bool> marked(r, false);
        for (int64_t a : *at)
          if (int q = wrap(a, r); q >= 0 && q < int(r))
            marked[q] = true;
        AxisMap out;
        size_t next = 0;
        for (size_t q = 0; q < r; ++q) {
          if (squeeze) {
            if (!marked[q])
              out.push_back(axes[q]);
          } else {
            out.push_back(marked[q] || next >= axes.size() ? -1
                                                           : axes[next++]);
          }
        }
        todo.push_back({op->getResult(0), out});
      }
    }
  }
  return {-1, Growth::None};
}

//===----------------------------------------------------------------------===//
// Small inputs
//===----------------------------------------------------------------------===//

static unsigned candidatesOf(BlockArgument arg, ArrayRef<Use> uses) {
  unsigned c = 0;
  for (const Use &u : uses) {
    Operation *op = u.op;
    unsigned d = u.distance;
    if (auto g = dyn_cast<onnx::GatherOp>(op); g && u.operand == 1) {
      Value table = g.getData();
      auto type = dyn_cast<RankedTensorType>(table.getType());
      bool weight = isConstant(table);
      if (weight && type && type.getRank() == 2 && d <= 3)
        c |= AsTable;
      if (!weight && table != arg && d <= 1)
        c |= AsTable;
      if (!weight && d > 1 && d <= 3)
        c |= AsPositions;
      if (reachesRotation(g.getResult()))
        c |= AsPositions;
    }
    if (isa<onnx::MSGatherBlockQuantizedOp>(op) && u.operand == 1)
      c |= AsIds;
    if (isa<onnx::MSEmbedLayerNormalizationOp>(op))
      c |= u.operand == 0   ? AsIds
           : u.operand == 8 ? AsPositions
           : u.operand == 7 ? AsMask
                            : 0;
    if (isa<onnx::RotaryEmbeddingOp, onnx::MSRotaryEmbeddingOp, onnx::MatMulOp,
            onnx::CosOp, onnx::SinOp, onnx::GatherElementsOp>(op))
      c |= AsPositions;
    if (isa<onnx::CumSumOp, onnx::ReduceSumOp, onnx::EqualOp, onnx::SoftmaxOp>(
            op))
      c |= AsMask;
    if (auto cast = dyn_cast<onnx::CastOp>(op);
        cast && d <= 3 && cast.getTo().isInteger(1))
      c |= AsMask;
    if (isa<onnx::AndOp, onnx::WhereOp, onnx::GatherNDOp>(op) && d <= 4)
      c |= AsMask;
    if (isa<onnx::SubOp>(op) && u.operand == 1)
      c |= AsMask;
    if ((isa<onnx::AttentionOp>(op) && u.operand == 3) ||
        (isa<onnx::MSAttentionOp>(op) && u.operand == 3) ||
        (isa<onnx::MSMultiHeadAttentionOp>(op) && u.operand == 4))
      c |= AsMask;
    if (isa<onnx::ShapeOp>(op) && d == 0)
      c |= AsShape;
  }
  return c;
}

namespace {
class RoleFinder {
public:
  RoleFinder(Interp &in, const InterpOptions &options)
      : in(in), fn(in.function()), options(options) {}

  void run() {
    in.roles.assign(fn.getNumArguments(), InputRole::Unknown);
    for (unsigned i = 0; i < fn.getNumArguments(); ++i) {
      auto it = options.inputRoles.find(in.inputName(i));
      if (it != options.inputRoles.end())
        overridden(i, it->second);
      else
        classify(i);
    }
    resolveTables();
    breakTies();
  }

private:
  static unsigned rankOf(Value v) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    return type ? unsigned(type.getRank()) : 0;
  }

  void addState(unsigned i, int axis, Growth growth) {
    BlockArgument arg = fn.getArgument(i);
    in.roles[i] = InputRole::State;
    in.states.push_back({arg, in.inputName(i), axis, growth, {}});
  }

  void overridden(unsigned i, InputRole role) {
    if (role == InputRole::State) {
      auto [axis, growth] = findGrowth(fn.getArgument(i), rankOf(fn.getArgument(i)));
      addState(i, axis, growth);
    } else {
      in.roles[i] = role;
    }
  }

  void classify(unsigned i) {
    BlockArgument arg = fn.getArgument(i);
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type)
      return;
    unsigned rank = unsigned(type.getRank());
    Type e = type.getElementType();
    if (rank >= 3) {
      bool storable = isa<FloatType>(e) || e.isInteger(8);
      auto [axis, growth] = findGrowth(arg, rank);
      bool maskLike = rank == 4 && type.getShape()[1] == 1 && axis < 0;
      if (storable && !maskLike)
        addState(i, axis, growth);
      else
        in.roles[i] = InputRole::CallerMask;
      return;
    }
    SmallVector<Use> uses = usesOf(arg);
    auto feeds = [&](auto pred) { return llvm::any_of(uses, pred); };
    if (rank <= 1 && e.isInteger(1) && feeds([](const Use &u) {
          return isa<onnx::IfOp>(u.op) && u.operand == 0;
        })) {
      in.roles[i] = InputRole::UseCacheBranch;
      return;
    }
    auto scatters = [](const Use &u) {
      return isa<onnx::ScatterNDOp, onnx::ScatterElementsOp,
                 onnx::TensorScatterOp>(u.op);
    };
    if (rank == 0) {
      bool start = feeds([](const Use &u) {
        return isa<onnx::RangeOp>(u.op) && u.operand == 0;
      });
      if (start || feeds(scatters))
        in.roles[i] = InputRole::PastLength;
      else
        ties.push_back(i);
      return;
    }
    if (rank == 1) {
      classifyVector(i, uses, feeds(scatters));
      return;
    }
    candidates.push_back({i, candidatesOf(arg, uses)});
  }

  void classifyVector(unsigned i, ArrayRef<Use> uses, bool scatters) {
    auto feeds = [&](auto pred) { return llvm::any_of(uses, pred); };
    if (feeds([](const Use &u) {
          return isa<onnx::AttentionOp>(u.op) && u.operand == 6;
        }))
      in.roles[i] = InputRole::TotalLengths;
    else if (feeds([](const Use &u) {
               return isa<onnx::TensorScatterOp>(u.op) && u.operand == 2;
             }) &&
             !feeds([](const Use &u) { return isa<onnx::CosOp>(u.op); }))
      in.roles[i] = InputRole::PastLengths;
    else if (scatters || feeds([](const Use &u) {
               return isa<onnx::ShapeOp, onnx::LessOrEqualOp,
                          onnx::GreaterOrEqualOp, onnx::LessOp,
                          onnx::GreaterOp>(u.op);
             }))
      in.roles[i] = InputRole::CachePosition;
    else
      ties.push_back(i);
  }

  /// Ids and positions both index a table; a lone table input is the ids.
  void resolveTables() {
    SmallVector<unsigned> tables;
    for (auto [i, c] : candidates) {
      unsigned s = c & ~unsigned(AsShape);
      InputRole &role = in.roles[i];
      if (s == AsIds)
        role = InputRole::InputIds;
      else if (s == AsMask)
        role = InputRole::AttentionMask;
      else if (s == AsTable)
        tables.push_back(i);
      else if ((s & AsPositions) && !(s & AsMask))
        role = InputRole::PositionIds;
      else if ((s & AsMask) && !(s & (AsTable | AsPositions)))
        role = InputRole::AttentionMask;
      else if (!s)
        role = (c & AsShape) ? InputRole::AttentionMask : InputRole::Unused;
      else
        ties.push_back(i);
    }
    if (tables.size() == 1)
      in.roles[tables[0]] = llvm::is_contained(in.roles, InputRole::InputIds)
                                ? InputRole::PositionIds
                                : InputRole::InputIds;
    else
      ties.insert(ties.begin(), tables.begin(), tables.end());
  }

  void breakTies() {
    for (unsigned i : ties) {
      std::string name = StringRef(in.inputName(i)).lower();
      StringRef n = name;
      bool scalar = rankOf(fn.getArgument(i)) < 2;
      InputRole role;
      if (n.contains("encoder"))
        role = InputRole::EncoderMask;
      else if (n.contains("input_id") || n == "input1")
        role = InputRole::InputIds;
      else if (n.contains("position_id"))
        role = InputRole::PositionIds;
      else if (n.contains("mask"))
        role = InputRole::AttentionMask;
      else if (n.contains("past") || n.contains("cumulative"))
        role = InputRole::PastLength;
      else if (n.contains("prefix"))
        role = InputRole::PrefixLength;
      else if (n.contains("cache_pos"))
        role = InputRole::CachePosition;
      else if (scalar)
        role = InputRole::Unused;
      else
        role = InputRole::Unknown; // its use refuses, and names it
      in.roles[i] = role;
      in.roleTies.push_back(in.inputName(i));
    }
  }

  Interp &in;
  func::FuncOp fn;
  const InterpOptions &options;
  SmallVector<std::pair<unsigned, unsigned>> candidates;
  SmallVector<unsigned> ties;
};
} // namespace

void findInputRoles(Interp &interp, const InterpOptions &options) {
  RoleFinder(interp, options).run();
}

} // namespace quire
