// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The `kv` dialect: attention with KV state, in value semantics.
#ifndef QUIRE_DIALECTS_KV_DIALECT
#define QUIRE_DIALECTS_KV_DIALECT

include "mlir/IR/OpBase.td"

def KV_Dialect : Dialect {
  let name = "kv";
  let summary = "attention with KV state, value semantics";
  let description = [{
    The level of meaning: what the exported graph computes, free of how its exporter spelt it. One `!kv.state` value is the K and V rows
    of one layer over all sequences of a step. States are *linear*: each value has at most one consumer, and its readers all come before
    it (`kv-verify-linear`), so that an append in place is legal by construction.

    One step processes the new tokens of several sequences, one sequence after the other: a *ragged batch*, described by `!kv.batch`.
    The rows of its tensors are tokens.
  }];
  let cppNamespace = "::quire::kv";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif // QUIRE_DIALECTS_KV_DIALECT
