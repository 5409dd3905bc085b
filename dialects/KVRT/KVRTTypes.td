// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Handles of the `kvrt` dialect.
#ifndef QUIRE_KVRT_TYPES_TD
#define QUIRE_KVRT_TYPES_TD

include "dialects/KVRT/KVRTDialect.td"

class KVRT_Type<string name, string typeMnemonic> : TypeDef<KVRT_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def KVRT_BatchType : KVRT_Type<"Batch", "batch"> {
  let summary = "one step over the new tokens of several sequences";
  let description = "A pointer to `quire_step`. Valid during the step.";
}

def KVRT_StateType : KVRT_Type<"State", "state"> {
  let summary = "the pages of one layer during a step";
  let description = [{
    Where the blocks of one layer lie, and what a block looks like: K as `[heads][block / lanes][key][lanes]`, then, on a 64-byte
    boundary, V as `[heads][block][value]`, padded to 64 bytes.

    ```mlir
    !kvrt.state<heads = 8, key = 128, value = 128, element = f16, block = 32, lanes = 8>
    ```
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$key, "int64_t":$value, "::mlir::Type":$element,
                        "int64_t":$block, "int64_t":$lanes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes from the start of a block to V, and bytes of a block.
    int64_t getValueOffset() const;
    int64_t getBlockBytes() const;
    /// The K part and the V part of one block.
    ::mlir::MemRefType getKeyPageType() const;
    ::mlir::MemRefType getValuePageType() const;
  }];
}

#endif // QUIRE_KVRT_TYPES_TD
