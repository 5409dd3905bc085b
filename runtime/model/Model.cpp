// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading in the order that lets no unchecked byte run: manifest, machine, sizes, checksums, then code.
#include "model/Model.h"

#include "model/FileReader.h"
#include "model/Manifest.h"
#include "model/ModelInfo.h"

#include <climits>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <sys/stat.h>

namespace quire::runtime {

Model::~Model() {
  if (library_)
    ::dlclose(library_);
}

/// A file that the manifest lists but that cannot be opened is damage.
static Status openListed(const std::string &path, const Manifest::File &listed, FileReader &file) {
  Status opened = file.open(path);
  if (!opened.ok())
    return failure(QUIRE_BAD_ARTEFACT, "%s", opened.text().c_str());
  if (file.size() != listed.bytes)
    return failure(QUIRE_BAD_ARTEFACT, "%s: expected %llu bytes, but got %llu: the file is %s", path.c_str(),
                   static_cast<unsigned long long>(listed.bytes), static_cast<unsigned long long>(file.size()),
                   file.size() < listed.bytes ? "truncated" : "not the one that was written");
  return success();
}

static Status checkHash(const std::string &path, const Manifest::File &listed, uint64_t hash) {
  if (hash == listed.hash)
    return success();
  return failure(QUIRE_BAD_ARTEFACT, "%s: checksum %016llx, but the manifest says %016llx: the file was changed",
                 path.c_str(), static_cast<unsigned long long>(hash), static_cast<unsigned long long>(listed.hash));
}

static Status checkAgreement(const std::string &path, const quire_model_info &code, const quire_model_info &manifest) {
  struct Pair {
    const char *name;
    int64_t code, manifest;
  };
  const Pair pairs[] = {
      {"vocabulary", code.vocabulary, manifest.vocabulary},
      {"token_limit", code.token_limit, manifest.token_limit},
      {"max_positions", code.max_positions, manifest.max_positions},
      {"block_tokens", code.block_tokens, manifest.block_tokens},
      {"number of layers", code.layer_count, manifest.layer_count},
      {"size of weights.bin", code.weights_bytes, manifest.weights_bytes},
      {"scratch.fixed", code.scratch_fixed, manifest.scratch_fixed},
      {"scratch.per_token", code.scratch_per_token, manifest.scratch_per_token},
      {"scratch.per_selected", code.scratch_per_selected, manifest.scratch_per_selected},
  };
  for (const Pair &pair : pairs)
    if (pair.code != pair.manifest)
      return failure(QUIRE_BAD_ARTEFACT, "%s: %s is %lld in the manifest, but %lld in model.so", path.c_str(),
                     pair.name, static_cast<long long>(pair.manifest), static_cast<long long>(pair.code));
  for (int64_t layer = 0; layer < code.layer_count; ++layer)
    if (std::memcmp(&code.layers[layer], &manifest.layers[layer], sizeof(quire_model_layer)) != 0)
      return failure(QUIRE_BAD_ARTEFACT, "%s: layer %lld differs from the one in model.so", path.c_str(),
                     static_cast<long long>(layer));
  return success();
}

static Status openCode(const std::string &path, void *&library, const quire_model_info *&info) {
  library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return failure(QUIRE_BAD_ARTEFACT, "%s: cannot be loaded: %s", path.c_str(), ::dlerror());
  auto query = reinterpret_cast<quire_model_query_fn>(::dlsym(library, "quire_model_query"));
  if (!query)
    return failure(QUIRE_BAD_ARTEFACT, "%s: has no quire_model_query", path.c_str());
  info = query(QUIRE_MODEL_ABI_VERSION);
  if (!info)
    return failure(QUIRE_WRONG_VERSION, "%s: does not speak version %d of the model interface; compile the model again",
                   path.c_str(), QUIRE_MODEL_ABI_VERSION);
  if (info->abi_version != QUIRE_MODEL_ABI_VERSION ||
      info->struct_size < static_cast<int64_t>(sizeof(quire_model_info)))
    return failure(QUIRE_WRONG_VERSION, "%s: speaks version %lld of the model interface, but this program speaks %d",
                   path.c_str(), static_cast<long long>(info->abi_version), QUIRE_MODEL_ABI_VERSION);
  return success();
}

static Status checkQueried(const std::string &path, const quire_model_info &info) {
  Status status = checkModelInfo(info);
  if (status.ok() && !info.step)
    status = failure(QUIRE_BAD_ARTEFACT, "step: missing");
  return status.ok() ? status : failure(status.code(), "%s: %s", path.c_str(), status.text().c_str());
}

Status Model::load(const std::string &folder, std::shared_ptr<Model> &out) {
  // dlopen takes a name without a slash for a library of the system, and a
  // relative one may change its meaning.
  char resolved[PATH_MAX];
  std::string base = ::realpath(folder.c_str(), resolved) ? resolved : folder;
  std::string manifestPath = base + "/manifest.json";
  Manifest manifest;
  QUIRE_TRY(readManifest(base, manifest));
  QUIRE_TRY(checkTarget(manifestPath, manifest));

  // All sizes come before the long work of reading.
  FileReader files[3];
  for (size_t i = 0; i < manifest.files.size(); ++i)
    QUIRE_TRY(openListed(base + "/" + manifest.files[i].name, manifest.files[i], files[i]));
  auto model = std::make_shared<Model>();
  QUIRE_TRY(model->weightMemory_.map(static_cast<size_t>(manifest.files[Manifest::Weights].bytes),
                                     MappedMemory::Pages::Huge));
  for (size_t i = 0; i < manifest.files.size(); ++i) {
    char *into = i == Manifest::Weights ? model->weightMemory_.data() : nullptr;
    uint64_t hash;
    QUIRE_TRY(files[i].readAndHash(into, hash));
    QUIRE_TRY(checkHash(base + "/" + manifest.files[i].name, manifest.files[i], hash));
  }

  std::string codePath = base + "/" + manifest.files[Manifest::Code].name;
  QUIRE_TRY(openCode(codePath, model->library_, model->info_));
  QUIRE_TRY(checkQueried(codePath, *model->info_));
  QUIRE_TRY(checkAgreement(manifestPath, *model->info_, manifest.describe()));
  model->weights_ = model->weightMemory_.data();
  out = std::move(model);
  return success();
}

Status Model::wrap(const quire_model_info &info, const void *weights, std::shared_ptr<Model> &out) {
  if (info.abi_version != QUIRE_MODEL_ABI_VERSION)
    return failure(QUIRE_WRONG_VERSION,
                   "the model speaks version %lld of the model interface, but this program speaks %d",
                   static_cast<long long>(info.abi_version), QUIRE_MODEL_ABI_VERSION);
  QUIRE_TRY(checkQueried("model", info));
  if (info.weights_bytes > 0 && !weights)
    return failure(QUIRE_INVALID_ARGUMENT, "expected weights, but got null");
  auto model = std::make_shared<Model>();
  model->info_ = &info;
  model->weights_ = static_cast<const char *>(weights);
  out = std::move(model);
  return success();
}

} // namespace quire::runtime
