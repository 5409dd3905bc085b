// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// kvrt.model becomes constants and the exported function quire_model_query.
#include "lib/Conversion/KVRTToLLVM/KVRTToLLVM.h"
#include "quire/model.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace quire::kvrt;

static int64_t elementCode(Type element) {
  return llvm::TypeSwitch<Type, int64_t>(element)
      .Case([](Float32Type) { return QUIRE_ELEMENT_F32; })
      .Case([](Float16Type) { return QUIRE_ELEMENT_F16; })
      .Case([](BFloat16Type) { return QUIRE_ELEMENT_BF16; })
      .Case([](Float8E4M3FNType) { return QUIRE_ELEMENT_FP8_E4M3; })
      .Case([](Float8E5M2Type) { return QUIRE_ELEMENT_FP8_E5M2; })
      .Default([](Type type) { return type.isInteger(8) ? QUIRE_ELEMENT_I8 : QUIRE_ELEMENT_I4; });
}

// quire_model_layer[]: structures of 64-bit integers, so an array of them.
static LLVM::GlobalOp emitLayers(OpBuilder &builder, ModelOp model) {
  SmallVector<int64_t> values;
  ArrayRef<int64_t> queryHeads = model.getQueryHeads(), windows = model.getWindows(), places = model.getPlaceIsPosition();
  for (auto [index, type] : llvm::enumerate(model.getLayers().getAsValueRange<TypeAttr>())) {
    auto state = cast<StateType>(type);
    values.append({state.getHeads(), state.getKey(), state.getValue(), elementCode(state.getElement()),
                   state.getLanes(), state.getValueOffset(), state.getBlockBytes(), queryHeads.empty() ? 0 : queryHeads[index],
                   windows.empty() ? 0 : windows[index], places.empty() ? 0 : places[index]});
  }
  static_assert(sizeof(quire_model_layer) == 10 * sizeof(int64_t));
  if (values.empty())
    values.assign(10, 0);
  int64_t count = values.size();
  auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), count);
  auto value = DenseElementsAttr::get(RankedTensorType::get({count}, builder.getI64Type()), ArrayRef(values));
  return LLVM::GlobalOp::create(builder, model.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                "quire_model_layers", value, /*alignment=*/8);
}

// quire_model_info, field by field.
static LLVM::GlobalOp emitInfo(OpBuilder &builder, ModelOp model, LLVM::GlobalOp layers) {
  Location loc = model.getLoc();
  MLIRContext *context = builder.getContext();
  Type i64 = builder.getI64Type(), pointer = LLVM::LLVMPointerType::get(context);
  SmallVector<Type> fields(7, i64);
  fields.push_back(pointer);
  fields.append(4, i64);
  fields.push_back(pointer);
  static_assert(sizeof(quire_model_info) == 13 * 8);
  auto type = LLVM::LLVMStructType::getLiteral(context, fields);
  auto info = LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                     "quire_model_description", Attribute(), /*alignment=*/8);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&info.getInitializerRegion());
  auto number = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, i64, builder.getI64IntegerAttr(value));
  };
  SmallVector<Value> values = {number(sizeof(quire_model_info)),
                               number(QUIRE_MODEL_ABI_VERSION),
                               number(model.getVocabulary()),
                               number(model.getTokenLimit()),
                               number(model.getMaxPositions()),
                               number(model.getBlockTokens()),
                               number(model.getLayers().size()),
                               LLVM::AddressOfOp::create(builder, loc, layers),
                               number(model.getWeightsBytes()),
                               number(model.getScratchFixed()),
                               number(model.getScratchPerToken()),
                               number(model.getScratchPerSelected()),
                               LLVM::AddressOfOp::create(builder, loc, pointer, model.getStep())};
  Value result = LLVM::PoisonOp::create(builder, loc, type);
  for (auto [i, value] : llvm::enumerate(values))
    result = LLVM::InsertValueOp::create(builder, loc, result, value, static_cast<int64_t>(i));
  LLVM::ReturnOp::create(builder, loc, result);
  return info;
}

LogicalResult quire::kvrt::emitModelQuery(ModelOp model) {
  auto module = model->getParentOfType<ModuleOp>();
  auto step = module.lookupSymbol<LLVM::LLVMFuncOp>(model.getStep());
  Type pointer = LLVM::LLVMPointerType::get(model.getContext());
  if (!step || step.getNumArguments() != 1 || step.getArgument(0).getType() != pointer)
    return model.emitOpError("expected a step that takes a batch only");
  Location loc = model.getLoc();
  OpBuilder builder(model);
  LLVM::GlobalOp info = emitInfo(builder, model, emitLayers(builder, model));
  Type i64 = builder.getI64Type();
  auto query = LLVM::LLVMFuncOp::create(builder, loc, "quire_model_query",
                                        LLVM::LLVMFunctionType::get(pointer, {i64}), LLVM::Linkage::External);
  builder.setInsertionPointToStart(query.addEntryBlock(builder));
  Value version = LLVM::ConstantOp::create(builder, loc, i64, builder.getI64IntegerAttr(QUIRE_MODEL_ABI_VERSION));
  Value known = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, query.getArgument(0), version);
  Value address = LLVM::AddressOfOp::create(builder, loc, info);
  Value none = LLVM::ZeroOp::create(builder, loc, pointer);
  LLVM::ReturnOp::create(builder, loc, ValueRange{LLVM::SelectOp::create(builder, loc, known, address, none)});
  model.erase();
  return success();
}
