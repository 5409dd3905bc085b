// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Owners of the runtime's C objects.
#ifndef QUIRE_RUNTIME_SERVING_ENGINE_H
#define QUIRE_RUNTIME_SERVING_ENGINE_H

#include "quire/runtime.h"

#include <memory>

namespace quire::serving {

struct Destroy {
  void operator()(quire_model *model) const { quire_model_destroy(model); }
  void operator()(quire_pool *pool) const { quire_pool_destroy(pool); }
  void operator()(quire_executor *executor) const { quire_executor_destroy(executor); }
};

using ModelPointer = std::unique_ptr<quire_model, Destroy>;
using PoolPointer = std::unique_ptr<quire_pool, Destroy>;
using ExecutorPointer = std::unique_ptr<quire_executor, Destroy>;

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_ENGINE_H
