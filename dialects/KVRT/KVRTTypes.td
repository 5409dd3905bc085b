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

    Elements i8 and i4 are unsigned codes c of numbers `zero + scale * c`. Each 128 features of a row, the last ones fewer, are a group with f32 numbers of its own; they
    follow K and V, each on a 64-byte boundary: `[heads][groups][scale, zero][block]`. Two codes i4 share a byte, so that `key` and `value` are halved above: byte i
    of a group of n features has feature i in its lower half, feature i + ceil(n / 2) in its upper one.

    Elements f8E4M3FN and f8E5M2 have no scale. Numbers that they do not reach are stored as NaN, infinities too.

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
    /// Features that share a scale and a zero.
    static constexpr int64_t groupFeatures = 128;
    /// Elements are codes with scales and zeros.
    bool isQuantized() const { return getElement().isInteger(); }
    /// Elements are codes of 4 bits, two in a byte.
    bool isHalved() const { return getElement().isInteger(4); }
    /// What elements are called in a manifest.
    ::llvm::StringRef getElementName() const;
    /// Bytes from the start of a block to the scales and zeros, and what they look like. Only where elements are codes.
    int64_t getKeyScalesOffset() const;
    int64_t getValueScalesOffset() const;
    ::mlir::MemRefType getKeyScalesType() const;
    ::mlir::MemRefType getValueScalesType() const;
  }];
}

#endif // QUIRE_KVRT_TYPES_TD
