// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The `kvrt` dialect: a model's step as calls of the runtime, views of what the step brings along, and kernels over pages.
#ifndef QUIRE_KVRT_DIALECT_TD
#define QUIRE_KVRT_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.td"

def KVRT_Dialect : Dialect {
  let name = "kvrt";
  let cppNamespace = "::quire::kvrt";
  let summary = "handles, views and calls between compiled model code and the runtime";
  let description = [{
    State is a handle here: the pages of a layer belong to the runtime, and a step names them through `!kvrt.state`. Three
    kinds of operations:

    * **calls**: each is one entry of `quire_runtime_table` (`include/quire/model.h`), in both directions;
    * **views**: addressing only. They say where something lies that the step structure, the weights, the scratch arena or a
      page holds. A view of a read-only thing is never written in place by bufferization;
    * **kernels**: whole operations on tensors, later on memrefs, that a target spells: products over packed weights, append
      and attention over pages.

    A state is appended before it is attended in a step. An append after an attend of the same state is an error.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::memref::MemRefDialect"];
}

def KVRT_KVResource : Resource<"::quire::kvrt::KVResource">;
def KVRT_OutputResource : Resource<"::quire::kvrt::OutputResource">;

class KVRT_Op<string mnemonic, list<Trait> traits = []> : Op<KVRT_Dialect, mnemonic, traits>;

// A value that is a tensor before bufferization and a memref after it.
def KVRT_Shaped : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef], "ranked tensor or strided memref">;

#endif // QUIRE_KVRT_DIALECT_TD
