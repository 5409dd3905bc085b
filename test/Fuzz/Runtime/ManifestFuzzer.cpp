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
  quire_slow_tier_options slow = {};
  slow.struct_size = sizeof(slow);
  slow.where = "memory";
  slow.bytes = uint64_t(1) << 30;
  for (const quire_slow_tier_options *given : {static_cast<const quire_slow_tier_options *>(nullptr), static_cast<const quire_slow_tier_options *>(&slow)}) {
    quire::serving::Budget budget;
    Status read = quire::serving::readBudget(manifest, uint64_t(256) << 20, given, false, budget);
    if (!read.ok() && (!given || read.text().empty()))
      std::abort();
    if (!read.ok())
      continue;
    quire::serving::describeText("m", manifest, budget);
    quire::serving::describeJson("m", manifest, budget);
  }
  return 0;
}
