// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The `onnx` dialect: its types, constraints, attribute kinds and the base classes of its operators.

#ifndef QUIRE_DIALECTS_ONNX_ONNXBASE_TD
#define QUIRE_DIALECTS_ONNX_ONNXBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def ONNX_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::quire::onnx";
  let summary = "ONNX graphs as exported, in the form of the newest operator set";
  let description = [{
    One typed operation per ONNX operator, with the operands, results and attributes of its specification, in its order and
    under its names. Operators of the domain `com.microsoft` are `onnx.ms.<Name>`; what the dialect does not know is
    `onnx.custom`.

    An absent optional operand is the result of `onnx.none`, so operand i is always input i. An absent optional result has
    type `none`. Attributes that hold an ONNX element type (`to`, `dtype`, `output_dtype`, `softmax_precision`) are type
    attributes. Constants above 1 KiB are symbols (`onnx.initializer`) whose bytes stay in their file.
  }];
  let hasConstantMaterializer = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
  private:
    void addAttentionOps();
    void addControlOps();
    void addLogicOps();
    void addMathOps();
    void addNormOps();
    void addQuantOps();
    void addReduceOps();
    void addSequenceOps();
    void addShapeOps();
    void addTypes();

  public:
  }];
}

//===-- Types -------------------------------------------------------------------------------------------------===//

class ONNX_Type<string name, string typeMnemonic, list<Trait> traits = []> : TypeDef<ONNX_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def ONNX_StringType : ONNX_Type<"String", "string"> {
  let summary = "the element type of string tensors";
  let description = [{
    Example: `tensor<2x!onnx.string>`.
  }];
}

def ONNX_UnknownType : ONNX_Type<"Unknown", "unknown"> {
  let summary = "an element type that the file does not state and the importer could not infer";
  let description = [{
    Only results of operators that the dialect does not know have it. Example: `tensor<*x!onnx.unknown>`.
  }];
}

def ONNX_SequenceType : ONNX_Type<"Sequence", "seq"> {
  let summary = "a sequence of values of one type";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

def ONNX_OptionalType : ONNX_Type<"Optional", "opt"> {
  let summary = "a value that may be missing at run time";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
}

//===-- Constraints -------------------------------------------------------------------------------------------===//

// What a required operand or result may be.
def ONNX_Value : AnyTypeOf<[AnyTensor, ONNX_SequenceType, ONNX_OptionalType], "tensor, sequence or optional">;

// What an optional operand or result may be.
class ONNX_OptionalValue : AnyTypeOf<[ONNX_Value, NoneType], "tensor, sequence, optional or none">;
def ONNX_Optional : ONNX_OptionalValue;

//===-- Attribute kinds ---------------------------------------------------------------------------------------===//

def ONNX_Int : TypedSignlessIntegerAttrBase<I64, "int64_t", "64-bit integer attribute"> {
  let convertFromStorage = "$_self.getInt()";
}

def ONNX_Float : FloatAttrBase<F32, "32-bit float attribute"> {
  let returnType = "float";
  let convertFromStorage = "$_self.getValue().convertToFloat()";
  let constBuilderCall = "$_builder.getF32FloatAttr($0)";
}

class ONNX_IntOr<string value> : DefaultValuedAttr<ONNX_Int, value>;
class ONNX_FloatOr<string value> : DefaultValuedAttr<ONNX_Float, value>;
class ONNX_StrOr<string value> : DefaultValuedStrAttr<StrAttr, value>;

//===-- Interface ---------------------------------------------------------------------------------------------===//

def ONNX_OpInterface : OpInterface<"ONNXOpInterface"> {
  let cppNamespace = "::quire::onnx";
  let description = [{
    Which ONNX operator an operation stands for.
  }];
  let methods = [
    InterfaceMethod<"The operator's name in the specification, such as `MatMul`.",
                    "::llvm::StringRef", "getOnnxName">,
    InterfaceMethod<"The operator's domain; empty for the standard one.", "::llvm::StringRef", "getOnnxDomain">,
    InterfaceMethod<"The version of the operator set in which the operator got its present form.",
                    "int64_t", "getSinceVersion">,
    StaticInterfaceMethod<"Names of operands, attributes, subgraphs and results; the words are defined at `ONNX_Signature`.",
                          "::llvm::StringRef", "getSignature">
  ];
}

//===-- Base classes ------------------------------------------------------------------------------------------===//

// What an operator takes and gives, one word each: `r:name` required, `o:name` optional, `v:name` variadic operand or
// result, `a:name:storage` attribute (`A:` where the file must give it), `g:name` subgraph; `|` before the results.
class ONNX_ValueWord<Constraint value, string name> {
  string text = !if(!isa<Variadic>(value), "v:", !if(!isa<ONNX_OptionalValue>(value), "o:", "r:")) # name;
}

class ONNX_AttributeWord<Attr attribute, string name> {
  bit required = !not(!or(!isa<OptionalAttr>(attribute), !isa<DefaultValuedAttr>(attribute)));
  string text = !if(required, "A:", "a:") # name # ":" # !subst(" ", "", !subst("::mlir::", "", attribute.storageType));
}

class ONNX_ArgumentWord<Constraint argument, string name> {
  string text = !if(!isa<Attr>(argument), ONNX_AttributeWord<!cast<Attr>(argument), name>.text,
                    ONNX_ValueWord<argument, name>.text);
}

class ONNX_Signature<dag arguments, dag results, dag regions> {
  list<string> ins = !foreach(i, !range(!size(arguments)),
    ONNX_ArgumentWord<!getdagarg<Constraint>(arguments, i), !getdagname(arguments, i)>.text);
  list<string> outs = !foreach(i, !range(!size(results)),
    ONNX_ValueWord<!getdagarg<Constraint>(results, i), !getdagname(results, i)>.text);
  list<string> graphs = !foreach(i, !range(!size(regions)), "g:" # !getdagname(regions, i));
  string text = !interleave(!listconcat(ins, graphs, ["|"], outs), " ");
}

class ONNX_OperatorOp<string mnemonic, string onnxName, string onnxDomain, int sinceVersion, list<Trait> traits>
    : Op<ONNX_Dialect, mnemonic, !listconcat(traits, [ONNX_OpInterface])> {
  let extraClassDeclaration = [{
    static ::llvm::StringRef getOnnxName() { return "}] # onnxName # [{"; }
    static ::llvm::StringRef getOnnxDomain() { return "}] # onnxDomain # [{"; }
    static int64_t getSinceVersion() { return }] # sinceVersion # [{; }
    static ::llvm::StringRef getSignature() {
      return "}] # ONNX_Signature<arguments, results, regions>.text # [{";
    }
  }];
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// An operator of the standard domain.
class ONNX_Op<string name, int sinceVersion, list<Trait> traits = []>
    : ONNX_OperatorOp<name, name, "", sinceVersion, traits>;

// An operator of the domain com.microsoft.
class ONNX_MSOp<string name, int sinceVersion, list<Trait> traits = []>
    : ONNX_OperatorOp<"ms." # name, name, "com.microsoft", sinceVersion, traits>;

#endif // QUIRE_DIALECTS_ONNX_ONNXBASE_TD
