// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Interfaces of the `kvrt` dialect.
#ifndef QUIRE_KVRT_INTERFACES_TD
#define QUIRE_KVRT_INTERFACES_TD

include "mlir/IR/OpBase.td"

def KVRT_RuntimeCallOpInterface : OpInterface<"RuntimeCallOpInterface"> {
  let cppNamespace = "::quire::kvrt";
  let description = "An operation that is a call of one function of the runtime's table.";
  let methods = [
    StaticInterfaceMethod<"The entry of `quire_runtime_table` that the operation calls.", "::quire::kvrt::RuntimeEntry",
                          "getRuntimeEntry">
  ];
}

#endif // QUIRE_KVRT_INTERFACES_TD
