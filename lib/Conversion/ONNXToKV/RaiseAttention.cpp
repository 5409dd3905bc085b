// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The raise-attention pass: decompose on a copy, analyse, prove, and only then replace the model's function.
#include "lib/Conversion/ONNXToKV/RaiseAttention.h"

#include "dialects/KV/KVDialect.h"
#include "dialects/ONNX/ONNXOps.h"
#include "lib/Analysis/Element/FusedOperandRoles.h"
#include "lib/Conversion/ONNXToKV/Causes.h"
#include "lib/Conversion/ONNXToKV/StepBuilder.h"
#include "lib/Transforms/ONNX/DecomposeAttention.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

namespace quire {
#define GEN_PASS_DEF_RAISEATTENTIONPASS
#include "lib/Conversion/ONNXToKV/Passes.h.inc"
} // namespace quire

using namespace mlir;

namespace quire {

static StringRef maskName(MaskKind kind) {
  switch (kind) {
  case MaskKind::Causal:
    return "causal";
  case MaskKind::Window:
    return "window";
  case MaskKind::Chunked:
    return "chunked";
  case MaskKind::Full:
    return "full";
  case MaskKind::Prefix:
    return "prefix";
  case MaskKind::Other:
    return "custom";
  }
  return "custom";
}

/// Meanings that the step cannot say yet.
static std::string unsupported(const AttentionSite &site, const RaisedModel &model) {
  if (site.mask == MaskKind::Full || site.mask == MaskKind::Prefix || site.mask == MaskKind::Other)
    return ("not implemented: a mask of kind " + maskName(site.mask)).str();
  if (site.biasKind == BiasKind::Region) {
    bool isRounded = false; // by a cast to a type that does not have every position
    ExprContext::walk(site.bias, [&](Expr e) { isRounded |= e->isCall(Fn::Named) && e->name == "rounded"; });
    return (isRounded ? "not implemented: a bias of rounded positions: " : "not implemented: a bias that is no ALiBi slope: ") + model.context().str(site.bias).substr(0, 200);
  }
  for (auto [head, kvHead] : llvm::enumerate(site.kvHeadOfQueryHead))
    if (site.kvHeads == 0 || site.heads % site.kvHeads != 0 || kvHead != int(head / (site.heads / site.kvHeads)))
      return "query heads do not map to KV heads by h / (heads / kv heads)";
  for (unsigned state : {site.keyState, site.valueState})
    if (!model.states[state].newRows)
      return "the new rows of state '" + model.states[state].name + "' are not a value of the graph";
  return {};
}

static LayerReport layerReport(const AttentionSite &site, const RaisedModel &model, const AttentionOrigins &origins) {
  LayerReport layer;
  auto name = site.result.value ? site.result.value.getLoc()->findInstanceOf<NameLoc>() : NameLoc();
  layer.node = name ? name.getName().str() : site.node;
  layer.idiom = site.idiom;
  if (auto origin = site.softmax ? origins.find(site.softmax) : origins.end(); origin != origins.end())
    layer.idiom = origin->second.str();
  layer.positions = site.positions;
  layer.maskKind = site.visible ? maskName(site.mask).str() : "";
  layer.window = site.mask == MaskKind::Window ? site.maskSize : 0;
  layer.chunk = site.mask == MaskKind::Chunked ? site.maskSize : 0;
  layer.alibi = site.biasKind == BiasKind::Alibi;
  layer.sinks = site.hasSinks;
  layer.softcap = site.softcap;
  layer.scale = site.scale;
  layer.heads = site.heads;
  layer.kvHeads = site.kvHeads;
  layer.keyDim = site.keyDim;
  layer.valueDim = site.valueDim;
  if (site.keyState != AttentionSite::noState)
    layer.keyState = model.states[site.keyState].name;
  if (site.valueState != AttentionSite::noState)
    layer.valueState = model.states[site.valueState].name;
  layer.reason = site.reason;
  return layer;
}

static void describe(const RaisedModel &model, const AttentionOrigins &origins, onnx::EntryOp entry, func::FuncOp source, RaiseReport &report) {
  for (BlockArgument argument : source.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::string type;
    llvm::raw_string_ostream(type) << argument.getType();
    StringRef name = index < entry.getInputs().size() ? cast<StringAttr>(entry.getInputs()[index]).getValue() : StringRef();
    InputRole role = index < model.inputRoles.size() ? model.inputRoles[index] : InputRole::Unknown;
    report.inputs.push_back({name.str(), type, stringifyInputRole(role).str()});
  }
  report.assumptions = model.assumptions;
  llvm::append_range(report.assumptions, model.flags);
  report.maxPositions = model.maxPositions > 0 ? model.maxPositions : -1;
  for (const State &state : model.states) {
    StateReport entry;
    entry.name = state.name;
    entry.input = state.input.getArgNumber();
    entry.output = state.outputIndex;
    entry.bufferRows = state.bufferRows;
    for (auto [axis, role] : llvm::enumerate(state.axes)) {
      if (role.kind == AxisKind::Key)
        entry.rowAxis = axis;
      entry.shape.push_back(role.kind == AxisKind::Key ? -1 : role.extent);
    }
    report.states.push_back(std::move(entry));
  }
  for (auto [index, output] : llvm::enumerate(model.outputs))
    if (output.kind == OutputKind::TokenWise || output.kind == OutputKind::LastToken) {
      report.logitsOutput = index;
      report.lastTokenOnly = output.kind == OutputKind::LastToken;
    }
  for (const AttentionSite &site : model.sites) {
    LayerReport layer = layerReport(site, model, origins);
    if (layer.reason.empty())
      layer.reason = unsupported(site, model);
    if (!layer.reason.empty() && site.reason.empty())
      report.reasons.push_back("node '" + site.node + "': " + layer.reason);
    report.layers.push_back(std::move(layer));
  }
  llvm::append_range(report.reasons, model.reasons);
  if (model.oneTokenOnly)
    report.reasons.push_back("the cached branch of the graph is right for calls of one token only");
  if (report.reasons.empty() && report.layers.empty())
    report.reasons.push_back("no attention with KV state was found");
}

LogicalResult raiseModel(ModuleOp module, const RaiseOptions &options, RaiseReport &report) {
  auto source = module.lookupSymbol<func::FuncOp>("main");
  auto entries = module.getOps<onnx::EntryOp>();
  if (!source || entries.empty()) { // without the module, which a diagnostic of its own would print
    bool isRaised = !module.getOps<kv::EntryOp>().empty();
    return emitError(module.getLoc()) << "expected an imported model with @main and onnx.entry" << (isRaised ? ", but got one that is raised already: say its phase by compile-from" : "");
  }
  onnx::EntryOp entry = *entries.begin();
  AnalysisOptions analysis;
  analysis.weightFolder = options.weightFolder;
  for (StringRef text : options.inputRoles) {
    auto [name, roleText] = text.rsplit('=');
    auto names = llvm::map_range(entry.getInputs(), [](Attribute a) { return cast<StringAttr>(a).getValue(); });
    if (text.contains('=') && !llvm::is_contained(names, name))
      return emitError(module.getLoc()) << "the model has no input '" << name << "': expected one of " << llvm::join(names, ", ") << " in NAME=ROLE, but got '" << text
                                << "'";
    std::optional<InputRole> role = parseInputRole(roleText);
    if (!role)
      return emitError(module.getLoc()) << "expected NAME=ROLE with a role of " << inputRoleNames() << ", but got '" << text << "'";
    analysis.inputRoles[name] = *role;
  }
  addRolesOfFusedOperands(source, analysis.inputRoles);

  // Everything happens on a copy in a module of its own, so that a refusal leaves no trace.
  OwningOpRef<ModuleOp> work(cast<ModuleOp>(module->clone()));
  auto copy = work->lookupSymbol<func::FuncOp>("main");
  AttentionOrigins origins;
  std::string why;
  if (failed(decomposeAttention(copy, origins, why))) {
    report.reasons.push_back(why);
    return success();
  }
  FailureOr<RaisedModel> model = analyzeModel(copy, analysis);
  if (failed(model))
    return failure();
  describe(*model, origins, entry, source, report);
  auto causes = [&] {
    SmallVector<std::string> names = llvm::map_to_vector(report.inputs, [](const InputReport &input) { return input.name; });
    return causesOfRefusal(source, names, model->inputRoles);
  };
  if (!report.reasons.empty()) {
    if (std::vector<std::string> found = causes(); !found.empty())
      report.reasons = std::move(found);
    return success();
  }
  StepBuilder builder(copy, *model);
  func::FuncOp step = builder.build();
  if (!step) {
    if (report.reasons = causes(); !report.reasons.empty())
      return success();
    report.reasons.push_back(builder.reason().str());
    for (LayerReport &layer : report.layers)
      layer.reason = builder.reason().str();
    return success();
  }
  report.raised = true;
  report.tokenLimit = builder.tokenLimit() > 0 ? builder.tokenLimit() : cast<ShapedType>(step.getResultTypes()[0]).getDimSize(1);

  OpBuilder insert(source);
  step->remove();
  insert.insert(step);
  kv::EntryOp::create(insert, entry.getLoc(), "step", report.tokenLimit, report.maxPositions);
  if (!options.keepSource) {
    source.erase();
    entry.erase();
  }
  return success();
}

namespace {
struct RaiseAttention : impl::RaiseAttentionPassBase<RaiseAttention> {
  using RaiseAttentionPassBase::RaiseAttentionPassBase;
  RaiseAttention(const RaiseOptions &options, std::shared_ptr<RaiseReport> report) : options(options), report(std::move(report)) {}
  RaiseAttention(const RaiseAttention &other) : RaiseAttentionPassBase(other), options(other.options), report(other.report) {}

  void runOnOperation() override {
    RaiseOptions used = options;
    if (!weightFolder.empty())
      used.weightFolder = weightFolder;
    used.inputRoles.insert(used.inputRoles.end(), inputRoles.begin(), inputRoles.end());
    RaiseReport local;
    RaiseReport &result = report ? *report : local;
    if (failed(raiseModel(getOperation(), used, result)))
      return signalPassFailure();
    if (result.raised) {
      for (const LayerReport &layer : result.layers)
        remark::passed(getOperation().getLoc(), remark::RemarkOpts::name("raised").category("kv"))
            << "attention '" << layer.node << "' is raised: " << layer.maskKind;
      return;
    }
    for (const std::string &reason : result.reasons)
      emitError(getOperation().getLoc()) << "not raised: " << reason;
    signalPassFailure();
  }

  RaiseOptions options;
  std::shared_ptr<RaiseReport> report;
};
} // namespace

std::unique_ptr<Pass> createRaiseAttentionPass(const RaiseOptions &options, std::shared_ptr<RaiseReport> report) {
  return std::make_unique<RaiseAttention>(options, std::move(report));
}

} // namespace quire
