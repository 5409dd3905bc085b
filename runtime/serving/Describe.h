// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a model folder says of itself, and what fits into a KV budget.
#ifndef QUIRE_RUNTIME_SERVING_DESCRIBE_H
#define QUIRE_RUNTIME_SERVING_DESCRIBE_H

#include "model/Manifest.h"

#include <cstdint>
#include <string>

namespace quire::serving {

/// For people.
std::string describeText(const std::string &folder, const runtime::Manifest &manifest, uint64_t kvBytes);

/// For programs: one JSON object and a newline.
std::string describeJson(const std::string &folder, const runtime::Manifest &manifest, uint64_t kvBytes);

/// "256 MiB", "1.5 GiB", "300 B".
std::string readableBytes(uint64_t bytes);

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_DESCRIBE_H
