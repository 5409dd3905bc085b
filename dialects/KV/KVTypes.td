// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// KV state and the description of a step.
#ifndef QUIRE_DIALECTS_KV_TYPES
#define QUIRE_DIALECTS_KV_TYPES

include "dialects/KV/KVAttrs.td"

class KV_Type<string name, string typeMnemonic, list<Trait> traits = []> : TypeDef<KV_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def KV_StateType : KV_Type<"State", "state"> {
  let summary = "K and V rows of one layer, over all sequences of a step";
  let description = [{
    `heads` KV heads, rows of `key` and `value` elements of type `element`; i8 and i4 stand for codes of 8 and 4 bits with a scale and a zero for each group of up
    to 128 elements of a row. The type is not tensor-like and never meets bufferization.

    ```mlir
    !kv.state<heads = 8, key = 128, value = 128, element = f16, layout = #kv.paged<block = 16>>
    ```
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$key, "int64_t":$value, "::mlir::Type":$element, "::quire::kv::KVLayoutAttrInterface":$layout);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def KV_BatchType : KV_Type<"Batch", "batch"> {
  let summary = "one step: its sequences, their new tokens, past lengths and block tables";
  let description = [{
    Gives `sequences`, `query_starts[sequences + 1]`, `past_lens[sequences]` and one block table per cache group. There is no
    length that holds for the whole batch.

    ```mlir
    func.func private @takes_a_step(!kv.batch)
    ```
  }];
}

#endif // QUIRE_DIALECTS_KV_TYPES
