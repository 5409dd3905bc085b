// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which pages the pager lets a policy choose.
#ifndef QUIRE_RUNTIME_RESIDENCY_PAGERALLOWED_H
#define QUIRE_RUNTIME_RESIDENCY_PAGERALLOWED_H

#include "residency/Pager.h"

namespace quire::runtime {

/// For a demand any resident page that is not pinned; for a prefetch of `group`
/// only those that the step comes to later than to that group, or not at all.
class Pager::Allowed final : public Evictable {
public:
  Allowed(const Pager &pager, bool demand, uint32_t group) : pager_(pager), demand_(demand), group_(group) {}
  bool mayEvict(uint32_t number) const override;

private:
  const Pager &pager_;
  bool demand_;
  uint32_t group_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_PAGERALLOWED_H
