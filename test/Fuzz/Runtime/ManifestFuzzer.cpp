// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as a manifest: never a crash, and an accepted one can be described and sized.
#include "model/Manifest.h"
#include "model/ModelInfo.h"
#include "serving/Describe.h"

#include <cstdint>
#include <cstdlib>

using namespace quire::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Manifest manifest;
  Status status = parseManifest("manifest.json", std::string(reinterpret_cast<const char *>(data), size), manifest);
  if (!status.ok()) {
    if (status.text().empty())
      std::abort();
    return 0;
  }
  quire_model_info info = manifest.describe();
  if (!checkModelInfo(info).ok() || blockBytesOf(info) <= 0 || scratchBytes(info, 512, 8) < 0)
    std::abort();
  (void)checkTarget("manifest.json", manifest);
  quire::serving::describeText("m", manifest, uint64_t(256) << 20);
  quire::serving::describeJson("m", manifest, 1);
  return 0;
}
