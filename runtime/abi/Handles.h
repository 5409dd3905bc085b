// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The opaque structures of the C interface, and the wall that keeps exceptions behind it.
#ifndef QUIRE_RUNTIME_ABI_HANDLES_H
#define QUIRE_RUNTIME_ABI_HANDLES_H

#include "exec/Executor.h"
#include "model/Model.h"
#include "pool/Pool.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

struct quire_model {
  std::shared_ptr<quire::runtime::Model> model;
};

struct quire_pool {
  std::shared_ptr<quire::runtime::Pool> pool;
  std::string text; // of the last report
};

struct quire_executor {
  std::unique_ptr<quire::runtime::Executor> executor;
};

namespace quire::runtime {

/// Keeps the text of a failure for quire_last_error and gives its code.
quire_status report(const Status &status) noexcept;

inline quire_status nullArgument(const char *name) {
  return report(failure(QUIRE_INVALID_ARGUMENT, "expected %s, but got null", name));
}

/// Runs an operation that returns Status.
template <typename Operation>
quire_status guarded(Operation operation) noexcept {
  try {
    return report(operation());
  } catch (const std::bad_alloc &) {
    return report(Status(QUIRE_OUT_OF_MEMORY, {}));
  } catch (const std::exception &) {
    return report(Status(QUIRE_INVARIANT_BROKEN, {}));
  }
}

/// Copies the part of an option structure that the caller's header knows.
/// False if its size cannot be right.
template <typename Options>
bool readOptions(const Options *given, Options &out) {
  out = Options();
  if (!given)
    return true;
  if (given->struct_size < sizeof(size_t) || given->struct_size > 4096)
    return false;
  std::memcpy(static_cast<void *>(&out), given, std::min(given->struct_size, sizeof(Options)));
  return true;
}

/// Writes the part of a result structure that the caller's header knows.
template <typename Result>
bool writeResult(Result value, Result *out) {
  size_t size = out->struct_size;
  if (size < sizeof(size_t) || size > 4096)
    return false;
  value.struct_size = size;
  std::memcpy(static_cast<void *>(out), &value, std::min(size, sizeof(Result)));
  return true;
}

inline Status badStructSize() { return failure(QUIRE_INVALID_ARGUMENT, "struct_size is not set"); }

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_ABI_HANDLES_H
