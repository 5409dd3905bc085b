// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs transfers one by one, with the plan's faults before and after.
#include "tier/FaultTier.h"

#include "core/Random.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace quire::runtime {

FaultTier::FaultTier(std::unique_ptr<Tier> inner, StoredSlots *stored, FaultPlan plan, Clock &clock)
    : Tier("faults over " + inner->name(), inner->slots().total(), inner->pageBytes()), inner_(std::move(inner)),
      stored_(stored), plan_(std::move(plan)), clock_(clock), randomState_(plan_.seed), old_(stored->storedBytes()),
      other_(stored->storedBytes()) {
  active_.reserve(plan_.faults.size());
}

void FaultTier::add(Fault fault) {
  fault.first += seen_[static_cast<size_t>(fault.on)];
  plan_.faults.push_back(fault);
  active_.reserve(plan_.faults.size());
}

uint64_t FaultTier::random() { return splitMix(randomState_); }

void FaultTier::run(Transfer *const *transfers, size_t count) {
  for (size_t i = 0; i < count; ++i)
    runOne(*transfers[i]);
}

bool FaultTier::hits(const Fault &fault, const Transfer &transfer, uint64_t index) {
  if (fault.on != transfer.kind || index < fault.first || index - fault.first >= fault.count)
    return false;
  return fault.probability >= 1 || static_cast<double>(random() >> 11) * 0x1p-53 < fault.probability;
}

void FaultTier::runOne(Transfer &transfer) {
  uint64_t index = seen_[static_cast<size_t>(transfer.kind)]++;
  active_.clear();
  for (const Fault &fault : plan_.faults)
    if (hits(fault, transfer, index)) {
      active_.push_back(&fault);
      injected_[static_cast<size_t>(fault.kind)].fetch_add(1);
    }
  for (const Fault *fault : active_)
    if (!before(*fault, transfer))
      return;
  Transfer *one = &transfer;
  inner_->run(&one, 1);
  if (transfer.status.ok() && transfer.kind == Transfer::Kind::Store)
    for (const Fault *fault : active_)
      after(*fault, transfer);
}

void FaultTier::fail(Transfer &transfer, Status status) {
  if (transfer.kind == Transfer::Kind::Load)
    std::memset(transfer.page, 0xa5, pageBytes());
  if (transfer.kind == Transfer::Kind::Store) {
    Transfer erase;
    erase.kind = Transfer::Kind::Erase;
    erase.slot = transfer.slot;
    Transfer *one = &erase;
    inner_->run(&one, 1);
  }
  transfer.status = std::move(status);
}

/// False: the transfer ends here.
bool FaultTier::before(const Fault &fault, Transfer &transfer) {
  Status status;
  switch (fault.kind) {
  case Fault::Kind::IoError:
    status = failure(QUIRE_IO_ERROR, "planned input/output error");
    break;
  case Fault::Kind::ShortTransfer:
    status = failure(QUIRE_IO_ERROR, "planned short transfer");
    break;
  case Fault::Kind::NoSpace:
    status = failure(QUIRE_NO_SPACE, "planned lack of space");
    break;
  case Fault::Kind::Delay:
    clock_.sleepUntil(clock_.now() + fault.ns);
    break;
  case Fault::Kind::Stuck:
    status = standStill(fault);
    break;
  case Fault::Kind::FlipPage:
  case Fault::Kind::FlipHeader:
    if (transfer.kind == Transfer::Kind::Load)
      flip(transfer.slot, fault.kind == Fault::Kind::FlipHeader);
    break;
  case Fault::Kind::TornStore:
    (void)stored_->readStored(transfer.slot, old_.data());
    break;
  case Fault::Kind::SwapSlots:
    break;
  }
  if (status.ok())
    return true;
  fail(transfer, std::move(status));
  return false;
}

Status FaultTier::standStill(const Fault &fault) {
  constexpr int64_t millisecond = 1000000;
  int64_t begin = clock_.now(), end = begin + fault.ns;
  stuck_.store(true);
  bool late = false;
  while (!released_.load() && !late) {
    int64_t now = clock_.now();
    if (fault.ns > 0) // looks for its release less often the longer it stands: few times until the end
      clock_.sleepUntil(std::min(end, now + std::max(millisecond, (now - begin) / 8)));
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    late = fault.ns > 0 && clock_.now() >= end;
  }
  stuck_.store(false);
  return late ? failure(QUIRE_IO_ERROR, "planned standstill") : success();
}

void FaultTier::after(const Fault &fault, const Transfer &transfer) {
  switch (fault.kind) {
  case Fault::Kind::FlipPage:
  case Fault::Kind::FlipHeader:
    flip(transfer.slot, fault.kind == Fault::Kind::FlipHeader);
    break;
  case Fault::Kind::TornStore: {
    (void)stored_->readStored(transfer.slot, other_.data());
    uint64_t kept = 1 + random() % (stored_->storedBytes() - 1);
    std::copy(old_.begin() + static_cast<ptrdiff_t>(kept), old_.end(), other_.begin() + static_cast<ptrdiff_t>(kept));
    (void)stored_->writeStored(transfer.slot, other_.data());
    break;
  }
  case Fault::Kind::SwapSlots:
    swap(transfer.slot);
    break;
  default:
    break;
  }
}

void FaultTier::flip(uint32_t slot, bool header) {
  uint64_t headerBytes = stored_->storedHeaderBytes(), bytes = stored_->storedBytes();
  uint64_t bit = random() % ((header ? headerBytes : pageBytes()) * 8);
  uint64_t byte = (header ? 0 : bytes - pageBytes()) + bit / 8;
  if (!stored_->readStored(slot, other_.data()).ok())
    return;
  other_[byte] = static_cast<char>(other_[byte] ^ (1 << bit % 8));
  (void)stored_->writeStored(slot, other_.data());
}

void FaultTier::swap(uint32_t slot) {
  uint32_t total = slots().total();
  if (total < 2)
    return;
  auto other = static_cast<uint32_t>((slot + 1 + random() % (total - 1)) % total);
  if (!stored_->readStored(slot, old_.data()).ok() || !stored_->readStored(other, other_.data()).ok())
    return;
  (void)stored_->writeStored(slot, other_.data());
  (void)stored_->writeStored(other, old_.data());
}

} // namespace quire::runtime
