// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reader of manifest.json. Unknown keys are ignored; every known one is required and checked.
#include "model/Manifest.h"

#include "core/Json.h"
#include "model/CpuFeatures.h"
#include "model/FileReader.h"
#include "model/ModelInfo.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>

#include <sys/stat.h>

namespace quire::runtime {

using Json = nlohmann::json;

static constexpr uint64_t maxManifestBytes = uint64_t(64) << 20;

namespace {

/// Typed access to members of JSON objects; remembers the first failure and
/// returns neutral values after it.
class Fields {
public:
  explicit Fields(const std::string &path) : path_(path) {}

  const Status &status() const { return status_; }

  const Json &member(const Json &object, const std::string &where, const char *key) {
    static const Json nothing;
    if (!status_.ok())
      return nothing;
    if (!object.is_object()) {
      fail(where, "an object", object);
      return nothing;
    }
    auto found = object.find(key);
    if (found == object.end()) {
      status_ = failure(QUIRE_BAD_ARTEFACT, "%s: missing '%s'", path_.c_str(), name(where, key).c_str());
      return nothing;
    }
    return *found;
  }

  int64_t integer(const Json &object, const std::string &where, const char *key) {
    const Json &value = member(object, where, key);
    if (!status_.ok())
      return 0;
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX))) {
      fail(name(where, key), "an integer", value);
      return 0;
    }
    return value.get<int64_t>();
  }

  std::string text(const Json &object, const std::string &where, const char *key) {
    const Json &value = member(object, where, key);
    if (!status_.ok())
      return {};
    if (!value.is_string()) {
      fail(name(where, key), "a string", value);
      return {};
    }
    return value.get<std::string>();
  }

  const Json &array(const Json &object, const std::string &where, const char *key) {
    const Json &value = member(object, where, key);
    if (status_.ok() && !value.is_array())
      fail(name(where, key), "an array", value);
    return value;
  }

  void fail(const std::string &what, const char *expected, const Json &got) {
    if (!status_.ok())
      return;
    status_ = failure(QUIRE_BAD_ARTEFACT, "%s: %s: expected %s, but got %s", path_.c_str(), what.c_str(), expected,
                      shownJson(got, 60).c_str());
  }

private:
  static std::string name(const std::string &where, const char *key) { return where.empty() ? key : where + "." + key; }

  const std::string &path_;
  Status status_;
};

constexpr const char *fileNames[] = {"model.so", "weights.bin", "report.json"};

} // namespace

static bool parseHash(const std::string &text, uint64_t &out) {
  if (text.size() != 16)
    return false;
  out = 0;
  for (char c : text) {
    const char *digits = "0123456789abcdef";
    const char *found = c ? std::strchr(digits, c) : nullptr;
    if (!found)
      return false;
    out = out << 4 | static_cast<uint64_t>(found - digits);
  }
  return true;
}

static void readFiles(Fields &fields, const Json &root, Manifest &out) {
  const Json &files = fields.member(root, "", "files");
  for (size_t i = 0; i < out.files.size(); ++i) {
    const Json &file = fields.member(files, "files", fileNames[i]);
    std::string where = std::string("files.") + fileNames[i];
    out.files[i].name = fileNames[i];
    int64_t bytes = fields.integer(file, where, "bytes");
    std::string hash = fields.text(file, where, "xxh3_64");
    if (!fields.status().ok())
      return;
    if (bytes < 0)
      fields.fail(where + ".bytes", "a size", bytes);
    if (!parseHash(hash, out.files[i].hash))
      fields.fail(where + ".xxh3_64", "16 hexadecimal digits", hash);
    out.files[i].bytes = static_cast<uint64_t>(bytes);
  }
}

static void readLayers(Fields &fields, const Json &root, Manifest &out) {
  const Json &layers = fields.array(root, "", "layers");
  if (!fields.status().ok())
    return;
  for (size_t i = 0; i < layers.size() && fields.status().ok(); ++i) {
    const Json &layer = layers[i];
    std::string where = "layers[" + std::to_string(i) + "]";
    quire_model_layer read = {};
    read.kv_heads = fields.integer(layer, where, "kv_heads");
    read.key_dim = fields.integer(layer, where, "key_dim");
    read.value_dim = fields.integer(layer, where, "value_dim");
    read.lanes = fields.integer(layer, where, "lanes");
    read.value_offset = fields.integer(layer, where, "value_offset");
    read.block_bytes = fields.integer(layer, where, "block_bytes");
    read.query_heads = fields.integer(layer, where, "query_heads");
    read.window = fields.integer(layer, where, "window");
    read.place_is_position = fields.integer(layer, where, "place_is_position");
    std::string element = fields.text(layer, where, "element");
    if (!fields.status().ok())
      return;
    if (!parseElement(element, read.element))
      fields.fail(where + ".element", "f32, f16, bf16, i8, i4, fp8_e4m3 or fp8_e5m2", element);
    out.layers.push_back(read);
  }
}

static void readTarget(Fields &fields, const Json &root, Manifest &out) {
  const Json &target = fields.member(root, "", "target");
  out.triple = fields.text(target, "target", "triple");
  out.cpu = fields.text(target, "target", "cpu");
  const Json &features = fields.array(target, "target", "features");
  if (!fields.status().ok())
    return;
  for (const Json &feature : features) {
    if (!feature.is_string())
      return fields.fail("target.features", "strings", feature);
    out.features.push_back(feature.get<std::string>());
  }
}

static Status checkSizes(const std::string &path, const Manifest &manifest) {
  quire_model_info info = manifest.describe();
  Status status = checkModelInfo(info);
  if (!status.ok())
    return failure(status.code(), "%s: %s", path.c_str(), status.text().c_str());
  int64_t perBlock;
  if (__builtin_mul_overflow(manifest.kvBytesPerToken, info.block_tokens, &perBlock) || perBlock != blockBytesOf(info))
    return failure(QUIRE_BAD_ARTEFACT,
                   "%s: kv_bytes_per_token times block_tokens: expected %lld, the sum of the layers' block_bytes, "
                   "but got %lld times %lld",
                   path.c_str(), static_cast<long long>(blockBytesOf(info)),
                   static_cast<long long>(manifest.kvBytesPerToken), static_cast<long long>(info.block_tokens));
  return success();
}

quire_model_info Manifest::describe() const {
  quire_model_info result = info;
  result.layers = layers.data();
  result.layer_count = static_cast<int64_t>(layers.size());
  return result;
}

Status parseManifest(const std::string &path, const std::string &text, Manifest &out) {
  Json root;
  std::string error;
  if (!parseJson(text, root, error))
    return failure(QUIRE_BAD_ARTEFACT, "%s: %s", path.c_str(), error.c_str());
  Fields fields(path);
  std::string format = fields.text(root, "", "format");
  if (fields.status().ok() && format != "quire-model")
    fields.fail("format", "\"quire-model\"", format);
  int64_t version = fields.integer(root, "", "version");
  QUIRE_TRY(fields.status());
  if (version != manifestVersion)
    return failure(QUIRE_WRONG_VERSION,
                   "%s: format version %lld, but this program reads version %lld; compile the model again",
                   path.c_str(), static_cast<long long>(version), static_cast<long long>(manifestVersion));
  out = Manifest();
  out.producer = fields.text(root, "", "producer");
  readTarget(fields, root, out);
  readFiles(fields, root, out);
  out.info.struct_size = sizeof(quire_model_info);
  out.info.abi_version = QUIRE_MODEL_ABI_VERSION;
  out.info.block_tokens = fields.integer(root, "", "block_tokens");
  out.info.max_positions = fields.integer(root, "", "max_positions");
  out.info.vocabulary = fields.integer(root, "", "vocabulary");
  out.info.token_limit = fields.integer(root, "", "token_limit");
  out.kvBytesPerToken = fields.integer(root, "", "kv_bytes_per_token");
  readLayers(fields, root, out);
  const Json &scratch = fields.member(root, "", "scratch");
  out.info.scratch_fixed = fields.integer(scratch, "scratch", "fixed");
  out.info.scratch_per_token = fields.integer(scratch, "scratch", "per_token");
  out.info.scratch_per_selected = fields.integer(scratch, "scratch", "per_selected");
  QUIRE_TRY(fields.status());
  out.info.weights_bytes = static_cast<int64_t>(out.files[Manifest::Weights].bytes);
  return checkSizes(path, out);
}

static Status checkFolder(const std::string &folder) {
  struct stat info;
  if (::stat(folder.c_str(), &info) != 0)
    return failure(QUIRE_IO_ERROR, "%s: %s", folder.c_str(), std::strerror(errno));
  if (!S_ISDIR(info.st_mode))
    return failure(QUIRE_IO_ERROR, "%s: expected a model folder, but got a file; quirec makes such folders of ONNX files", folder.c_str());
  return success();
}

Status readManifest(const std::string &folder, Manifest &out) {
  std::string path = folder + "/manifest.json";
  QUIRE_TRY(checkFolder(folder));
  FileReader file;
  QUIRE_TRY(file.open(path));
  if (file.size() > maxManifestBytes)
    return failure(QUIRE_BAD_ARTEFACT, "%s: too large for a manifest", path.c_str());
  std::string text(static_cast<size_t>(file.size()), '\0');
  QUIRE_TRY(file.read(text.data()));
  return parseManifest(path, text, out);
}

Status checkTarget(const std::string &path, const Manifest &manifest) {
  std::string architecture = manifest.triple.substr(0, manifest.triple.find('-'));
  if (architecture != hostArchitecture())
    return failure(QUIRE_UNSUPPORTED_CPU, "%s: the model is for %s, but this machine is %s", path.c_str(),
                   architecture.c_str(), hostArchitecture());
  std::string missing;
  for (const std::string &feature : manifest.features) {
    switch (cpuFeature(feature)) {
    case FeatureSupport::Present:
      continue;
    case FeatureSupport::Unknown:
      return failure(QUIRE_UNSUPPORTED_CPU,
                     "%s: the model needs the cpu feature '%s', which this program does not know", path.c_str(),
                     feature.c_str());
    case FeatureSupport::Missing:
      missing += (missing.empty() ? "" : ", ") + feature;
    }
  }
  if (!missing.empty())
    return failure(
        QUIRE_UNSUPPORTED_CPU,
        "%s: the model was compiled for %s and needs %s, which this machine lacks; compile it for this machine",
        path.c_str(), manifest.cpu.c_str(), missing.c_str());
  return success();
}

} // namespace quire::runtime
