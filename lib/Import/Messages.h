// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ONNX messages under a name that the dialect's namespace does not hide.

#ifndef QUIRE_LIB_IMPORT_MESSAGES_H
#define QUIRE_LIB_IMPORT_MESSAGES_H

#include "onnx-ml.pb.h"

namespace quire::import {
namespace pb = ::onnx;
} // namespace quire::import

#endif // QUIRE_LIB_IMPORT_MESSAGES_H
