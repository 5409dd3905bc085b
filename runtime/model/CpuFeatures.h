// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What this machine's CPU and operating system can run, by LLVM's feature names.
#ifndef QUIRE_RUNTIME_MODEL_CPUFEATURES_H
#define QUIRE_RUNTIME_MODEL_CPUFEATURES_H

#include <string>
#include <vector>

namespace quire::runtime {

enum class FeatureSupport { Unknown, Missing, Present };

FeatureSupport cpuFeature(const std::string &name);

/// The known features that this machine has, sorted as in the feature table.
std::vector<std::string> cpuFeatures();

/// Architecture of this build, as the first part of an LLVM triple.
const char *hostArchitecture();

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_MODEL_CPUFEATURES_H
