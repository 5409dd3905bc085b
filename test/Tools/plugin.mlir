// A stock mlir-opt runs the project's passes.
// REQUIRES: plugin
// RUN: mlir-opt --load-dialect-plugin=%build/lib/QuirePlugin.so --load-pass-plugin=%build/lib/QuirePlugin.so \
// RUN:   --pass-pipeline='builtin.module(paginate{block-tokens=8})' %s | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK-SAME: layout = #kv.paged<block = 8>
func.func @step(%batch: !kv.batch, %s: !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>)
    -> !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous> {
  return %s : !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
}
