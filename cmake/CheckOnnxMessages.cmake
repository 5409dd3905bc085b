# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Refuses a folder QUIRE_ONNX_PROTO_DIR whose onnx-ml.proto is missing or too old. Also runs alone: cmake -DQUIRE_ONNX_PROTO_DIR=... -P.
set(proto ${QUIRE_ONNX_PROTO_DIR}/onnx-ml.proto)
if(NOT EXISTS ${proto})
  message(FATAL_ERROR "QUIRE_ONNX_PROTO_DIR: no onnx-ml.proto in '${QUIRE_ONNX_PROTO_DIR}'; run scripts/setup, or give the folder of the Python package onnx")
endif()
foreach(element "FLOAT8E5M2 = 19" "INT4 = 22")
  file(STRINGS ${proto} found REGEX "${element}")
  if(NOT found)
    message(FATAL_ERROR "QUIRE_ONNX_PROTO_DIR: '${proto}' is older than onnx 1.16 (it lacks '${element}'); run scripts/setup")
  endif()
endforeach()
