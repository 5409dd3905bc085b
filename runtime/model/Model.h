// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loaded model: its code, its weights in memory, and what it says of itself.
#ifndef QUIRE_RUNTIME_MODEL_MODEL_H
#define QUIRE_RUNTIME_MODEL_MODEL_H

#include "core/MappedMemory.h"
#include "core/Status.h"

#include <memory>
#include <string>

namespace quire::runtime {

/// Immutable once made.
class Model {
public:
  Model() = default;
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;
  ~Model();

  static Status load(const std::string &folder, std::shared_ptr<Model> &out);
  static Status wrap(const quire_model_info &info, const void *weights, std::shared_ptr<Model> &out);

  const quire_model_info &info() const { return *info_; }
  const char *weights() const { return weights_; }

private:
  const quire_model_info *info_ = nullptr;
  const char *weights_ = nullptr;
  MappedMemory weightMemory_;
  void *library_ = nullptr; // of dlopen
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_MODEL_MODEL_H
