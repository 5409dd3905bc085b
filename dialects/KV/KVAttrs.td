// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts of KV state: a new layout is a new attribute with this interface, never a new op.
#ifndef QUIRE_DIALECTS_KV_ATTRS
#define QUIRE_DIALECTS_KV_ATTRS

include "dialects/KV/KVDialect.td"
include "dialects/KV/KVInterfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class KV_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<KV_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def KV_ContiguousAttr : KV_Attr<"Contiguous", "contiguous", [DeclareAttrInterfaceMethods<KVLayoutAttrInterface>]> {
  let summary = "all rows of a sequence side by side, as the exported graph has them";
  let description = [{
    ```mlir
    !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.contiguous>
    ```
  }];
  let assemblyFormat = "";
}

def KV_PagedAttr : KV_Attr<"Paged", "paged", [DeclareAttrInterfaceMethods<KVLayoutAttrInterface>]> {
  let summary = "rows in blocks of a fixed number of tokens, found through a block table";
  let description = [{
    `block` is the number of tokens of a block, a power of two. `group` names the block table: states of one group share it.

    ```mlir
    !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 16>>
    ```
  }];
  let parameters = (ins "int64_t":$block, DefaultValuedParameter<"int64_t", "0">:$group);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // QUIRE_DIALECTS_KV_ATTRS
