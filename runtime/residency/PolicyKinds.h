// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Policies with a file of their own; createPolicy() chooses.
#ifndef QUIRE_RUNTIME_RESIDENCY_POLICYKINDS_H
#define QUIRE_RUNTIME_RESIDENCY_POLICYKINDS_H

#include "residency/Policy.h"

namespace quire::runtime {

std::unique_ptr<Policy> createImportance(uint32_t pages, uint32_t capacity);
std::unique_ptr<Policy> createArc(uint32_t pages, uint32_t capacity);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_POLICYKINDS_H
