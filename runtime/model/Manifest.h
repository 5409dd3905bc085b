// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The manifest of a model folder: what its files are and which machine they are for.
#ifndef QUIRE_RUNTIME_MODEL_MANIFEST_H
#define QUIRE_RUNTIME_MODEL_MANIFEST_H

#include "core/Status.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace quire::runtime {

/// Version of the folder's layout and of manifest.json.
constexpr int64_t manifestVersion = 2;

struct Manifest {
  struct File {
    const char *name = "";
    uint64_t bytes = 0;
    uint64_t hash = 0; // XXH3, 64 bits, seed 0
  };
  enum FileIndex { Code, Weights, Report };

  std::string producer;
  std::string triple;
  std::string cpu;
  std::vector<std::string> features;
  std::array<File, 3> files; // by FileIndex
  int64_t kvBytesPerToken = 0;
  std::vector<quire_model_layer> layers;
  /// Everything a quire_model_info says, except `step`; `layers` is not set.
  quire_model_info info = {};

  /// `info` with `layers` pointing into this manifest.
  quire_model_info describe() const;
};

/// Parses the text of a manifest. `path` names it in errors.
Status parseManifest(const std::string &path, const std::string &text, Manifest &out);

/// Reads and checks `folder`/manifest.json alone.
Status readManifest(const std::string &folder, Manifest &out);

/// That this machine can run the code.
Status checkTarget(const std::string &path, const Manifest &manifest);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_MODEL_MANIFEST_H
