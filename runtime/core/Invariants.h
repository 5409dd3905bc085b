// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What debug builds do after every operation that changes something.
#ifndef QUIRE_RUNTIME_CORE_INVARIANTS_H
#define QUIRE_RUNTIME_CORE_INVARIANTS_H

#include "core/Status.h"

#include <cstdio>
#include <cstdlib>

namespace quire::runtime {

/// Under QUIRE_CHECK_INVARIANTS the process ends with what validate() finds broken; elsewhere nothing is asked.
template <typename Checked> void expectInvariants([[maybe_unused]] const Checked &checked) {
#ifdef QUIRE_CHECK_INVARIANTS
  Status status = checked.validate();
  if (!status.ok()) {
    std::fprintf(stderr, "quire runtime: %s\n", status.text().c_str());
    std::abort();
  }
#endif
}

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_CORE_INVARIANTS_H
