/%x = onnx.Add %x0, %pos/{
i\
  %type = onnx.constant dense<2> : tensor<i64>
i\
  %types = onnx.Expand %type, %ishape : (tensor<i64>, tensor<2xi64>) -> tensor<?x?xi64>
i\
  %of_type = onnx.Gather %embed, %types {axis = 0 : i64} : (tensor<6x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
i\
  %typed = onnx.Add %x0, %of_type : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
s/%x0/%typed/
}
/%logits = onnx.MatMul %o2, %wo/{
i\
  %eight = onnx.constant dense<8> : tensor<1xi64>
i\
  %row_shape = onnx.Concat %ishape, %eight {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
i\
  %row = onnx.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
i\
  %rows = onnx.Expand %row, %row_shape : (tensor<8xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
i\
  %number = onnx.constant dense<0.5> : tensor<f32>
i\
  %numbers = onnx.Expand %number, %row_shape : (tensor<f32>, tensor<3xi64>) -> tensor<?x?x8xf32>
i\
  %filled = onnx.ConstantOfShape %row_shape {value = dense<1.5> : tensor<1xf32>} : (tensor<3xi64>) -> tensor<?x?x8xf32>
i\
  %o3 = onnx.Add %o2, %rows : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
i\
  %o4 = onnx.Mul %o3, %numbers : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
i\
  %o5 = onnx.Mul %o4, %filled : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
s/%o2/%o5/
}
