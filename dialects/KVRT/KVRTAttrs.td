// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attributes and enums of the `kvrt` dialect.
#ifndef QUIRE_KVRT_ATTRS_TD
#define QUIRE_KVRT_ATTRS_TD

include "dialects/KVRT/KVRTDialect.td"

class KVRT_Attr<string name, string attrMnemonic> : AttrDef<KVRT_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def KVRT_PanelsAttr : KVRT_Attr<"Panels", "panels"> {
  let summary = "layout of a packed weight: panels of nr columns";
  let description = [{
    A weight [K, N] is stored as `[ceil(N / nr)][K][nr]`; columns past N are zero. Example: `#kvrt.panels<nr = 16>`.
  }];
  let parameters = (ins "int64_t":$nr);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

// Arrays of the step structure that code may read. The value is the index of the field in `quire_step`.
def KVRT_Field : I32Enum<"Field", "an array of the step structure", [
    I32EnumCase<"ids", 0>, I32EnumCase<"positions", 1>, I32EnumCase<"sequence_of", 2>, I32EnumCase<"query_starts", 3>,
    I32EnumCase<"past_lens", 4>, I32EnumCase<"selected", 5>, I32EnumCase<"places", 16>]> {
  let cppNamespace = "::quire::kvrt";
}

// Extents of a step. The value is the index of the field in `quire_step`.
def KVRT_Extent : I32Enum<"Extent", "an extent of the step", [
    I32EnumCase<"tokens", 11>, I32EnumCase<"sequences", 12>, I32EnumCase<"table_stride", 13>, I32EnumCase<"selected", 14>,
    I32EnumCase<"threads", 15>]> {
  let cppNamespace = "::quire::kvrt";
}

// Functions of the runtime. The value is the index of the entry in `quire_runtime_table`.
def KVRT_RuntimeEntry : I32Enum<"RuntimeEntry", "an entry of the runtime's table", [
    I32EnumCase<"parallel", 2>, I32EnumCase<"acquire", 3>, I32EnumCase<"release", 4>, I32EnumCase<"prefetch", 5>]> {
  let cppNamespace = "::quire::kvrt";
}

#endif // QUIRE_KVRT_ATTRS_TD
