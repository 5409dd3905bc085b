// RUN: quire-opt --share-weights --split-input-file %s | FileCheck %s

// The table of an embedding that is the output projection as well.
onnx.initializer @embedding {file = "w.bin", offset = 0, bytes = 6400} : tensor<100x16xf32>
// CHECK-NOT: kvrt.raw
kvrt.packed @embedding.packed_t {source = @embedding, layout = #kvrt.panels<nr = 32>, transposed, k = 16, n = 100} : tensor<4x16x32xf32>
kvrt.raw @embedding.raw {source = @embedding} : tensor<100x16xf32>

// CHECK-LABEL: func.func @step
// CHECK: %[[panels:.*]] = kvrt.weight %{{.*}}, @embedding.packed_t : tensor<4x16x32xf32>
// CHECK: linalg.generic
// CHECK: %[[row:.*]] = arith.index_cast
// CHECK: %[[k:.*]] = linalg.index 1
// CHECK-DAG: %[[panel:.*]] = arith.divui %[[row]], %c32
// CHECK-DAG: %[[column:.*]] = arith.remui %[[row]], %c32
// CHECK: tensor.extract %[[panels]][%[[panel]], %[[k]], %[[column]]]
func.func @step(%batch: !kvrt.batch, %ids: tensor<?xi64>, %out: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %table = kvrt.weight %batch, @embedding.raw : tensor<100x16xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(t, d) -> (t)>, affine_map<(t, d) -> (t, d)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<?xi64>) outs(%out : tensor<?x16xf32>) {
  ^bb0(%id: i64, %old: f32):
    %row = arith.index_cast %id : i64 to index
    %k = linalg.index 1 : index
    %element = tensor.extract %table[%row, %k] : tensor<100x16xf32>
    linalg.yield %element : f32
  } -> tensor<?x16xf32>
  return %0 : tensor<?x16xf32>
}

// -----

// A whole read keeps the table.
onnx.initializer @w {file = "w.bin", offset = 0, bytes = 6400} : tensor<100x16xf32>
kvrt.packed @w.packed_t {source = @w, layout = #kvrt.panels<nr = 32>, transposed, k = 16, n = 100} : tensor<4x16x32xf32>
// CHECK: kvrt.raw @w.raw
kvrt.raw @w.raw {source = @w} : tensor<100x16xf32>
func.func @whole(%batch: !kvrt.batch) -> tensor<100x16xf32> {
  %table = kvrt.weight %batch, @w.raw : tensor<100x16xf32>
  return %table : tensor<100x16xf32>
}

// -----

// Panels whose columns are not the table's rows.
onnx.initializer @v {file = "w.bin", offset = 0, bytes = 6400} : tensor<100x16xf32>
kvrt.packed @v.packed {source = @v, layout = #kvrt.panels<nr = 32>, k = 100, n = 16} : tensor<1x100x32xf32>
// CHECK: kvrt.raw @v.raw
kvrt.raw @v.raw {source = @v} : tensor<100x16xf32>
func.func @other(%batch: !kvrt.batch, %i: index) -> f32 {
  %table = kvrt.weight %batch, @v.raw : tensor<100x16xf32>
  %element = tensor.extract %table[%i, %i] : tensor<100x16xf32>
  return %element : f32
}
