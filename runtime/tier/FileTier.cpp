// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches of slots in phases, each of which ends before the next begins.
#include "tier/FileTier.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstring>
#include <thread>

#include <sys/stat.h>

namespace quire::runtime {

/// Address space for staging at most; it takes memory only where pages must be copied.
static constexpr uint64_t stagingBytes = uint64_t(32) << 20;

FileTier::FileTier(const FileTierOptions &options, const FileGeometry &geometry)
    : Tier("file", options.slots, options.pageBytes), geometry_(geometry), checksum_(options.checksum),
      held_(options.slots, options.mode == SlotFile::Mode::Create ? Held::Zeros : Held::Content) {}

std::unique_ptr<FileTier> FileTier::open(const FileTierOptions &options, Status &status) {
  FileGeometry geometry = {options.pageBytes, options.geometry, options.slots};
  if (!geometry.valid()) {
    status = failure(QUIRE_INVALID_ARGUMENT, "expected slots of a size that a file can have, but got %" PRIu32 " with pages of %" PRIu64 " bytes", options.slots, options.pageBytes);
    return nullptr;
  }
  if (options.slots * (BlockAllocator::bytesPerBlock() + sizeof(Held)) > physicalMemory()) {
    status = failure(QUIRE_OUT_OF_MEMORY, "expected a slow tier whose tables fit into memory, but got %" PRIu32 " slots", options.slots);
    return nullptr;
  }
  std::unique_ptr<FileTier> tier(new FileTier(options, geometry));
  status = tier->start(options);
  return status.ok() ? std::move(tier) : nullptr;
}

Status FileTier::start(const FileTierOptions &options) {
  QUIRE_TRY(file_.open(options.path, options.mode, geometry_));
  if (options.keep || options.mode == SlotFile::Mode::Existing)
    file_.keep();
  direct_ = options.direct && file_.setDirect();
  uint64_t depth = std::min<uint64_t>(options.depth, stagingBytes / slotBytes());
  depth = std::clamp<uint64_t>(depth, 1, 4096);
  Status status;
  io_ = createFileIo(options.io, file_.descriptor(), static_cast<unsigned>(depth), status);
  QUIRE_TRY(status);
  if (options.wrapIo)
    io_ = options.wrapIo(std::move(io_));
  QUIRE_TRY(staging_.map(depth * slotBytes() + sectorBytes, MappedMemory::Pages::Small));
  works_.resize(depth);
  for (uint64_t i = 0; i < depth; ++i)
    works_[i].staging = staging_.data() + i * slotBytes();
  requests_.reserve(depth);
  active_.reserve(depth);
  return success();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

void FileTier::aim(Work &work, IoRequest::Kind kind, uint64_t begin, uint64_t end) {
  work.request.kind = kind;
  work.begin = begin;
  work.end = end;
  work.attempts = 0;
}

/// The parts of the request, for what is left of it.
void FileTier::gather(Work &work) const {
  IoRequest &request = work.request;
  request.offset = geometry_.slotOffset(work.slot) + work.begin;
  request.bytes = work.end - work.begin;
  request.partCount = 0;
  auto add = [&request](char *data, uint64_t bytes) {
    if (bytes)
      request.parts[request.partCount++] = {data, bytes};
  };
  uint64_t inHeader = work.page ? std::min(work.end, geometry_.pageOffset()) : work.end;
  if (request.kind == IoRequest::Kind::Punch)
    return;
  if (work.zeroSector)
    return add(staging_.data() + works_.size() * slotBytes() + work.begin, request.bytes);
  if (work.begin < inHeader)
    add(work.staging + work.begin, inHeader - work.begin);
  uint64_t from = std::max(work.begin, inHeader);
  if (from < work.end)
    add(work.page + (from - geometry_.pageOffset()), work.end - from);
}

/// Runs the first `count` works that are aimed at something, until none is.
void FileTier::perform(size_t count) {
  for (;;) {
    requests_.clear();
    active_.clear();
    int attempts = 0;
    for (size_t i = 0; i < count; ++i) {
      Work &work = works_[i];
      if (work.begin == work.end)
        continue;
      gather(work);
      attempts = std::max(attempts, work.attempts);
      requests_.push_back(&work.request);
      active_.push_back(&work);
    }
    if (requests_.empty())
      return;
    if (attempts)
      std::this_thread::sleep_for(std::chrono::microseconds(50 << attempts));
    io_->run(requests_.data(), requests_.size());
    for (Work *work : active_)
      conclude(*work);
  }
}

/// After a request: what is left of it, whether to repeat it, or its status.
void FileTier::conclude(Work &work) {
  const IoRequest &request = work.request;
  bool punch = request.kind == IoRequest::Kind::Punch;
  if (punch ? request.result == 0 : request.result >= static_cast<int64_t>(request.bytes)) {
    work.begin = work.end;
    return;
  }
  if (punch && (request.result == -EOPNOTSUPP || request.result == -EINVAL || request.result == -ENOSYS)) {
    punches_ = work.punched = false;
    work.begin = work.end;
    return;
  }
  // Direct I/O goes on at a whole sector only.
  uint64_t moved = static_cast<uint64_t>(std::max<int64_t>(0, request.result));
  moved -= direct_ ? moved % sectorBytes : 0;
  work.begin += moved;
  work.attempts = moved ? 0 : work.attempts + 1;
  bool ended = request.kind == IoRequest::Kind::Read && request.result == 0;
  bool transient = request.result >= 0 || request.result == -EIO || request.result == -EAGAIN || request.result == -EINTR;
  if (transient && !ended && work.attempts < maxAttempts) {
    repeated_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  work.status = explain(work);
  work.begin = work.end;
}

/// Of a request that is given up.
Status FileTier::explain(const Work &work) const {
  const IoRequest &request = work.request;
  const char *what = request.kind == IoRequest::Kind::Read ? "read" : request.kind == IoRequest::Kind::Write ? "write" : "erase";
  int64_t result = request.result;
  if (result >= 0 && request.kind == IoRequest::Kind::Read) {
    struct stat info;
    if (::fstat(file_.descriptor(), &info) == 0 && static_cast<uint64_t>(info.st_size) < geometry_.slotOffset(work.slot) + slotBytes())
      return failure(QUIRE_PAGE_LOST, "slot %" PRIu32 ": the file ends before the slot", work.slot);
  }
  if (result >= 0)
    return failure(QUIRE_IO_ERROR, "slot %" PRIu32 ": cannot %s: %" PRIi64 " of %" PRIu64 " bytes, %d times", work.slot, what, result, request.bytes, work.attempts);
  bool full = result == -ENOSPC || result == -EDQUOT || result == -EFBIG;
  return failure(full ? QUIRE_NO_SPACE : QUIRE_IO_ERROR, "slot %" PRIu32 ": cannot %s: %s", work.slot, what, std::strerror(static_cast<int>(-result)));
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

void FileTier::run(Transfer *const *transfers, size_t count) {
  for (size_t at = 0; at < count; at += works_.size())
    runSome(transfers + at, std::min(works_.size(), count - at));
}

void FileTier::runSome(Transfer *const *transfers, size_t count) {
  for (size_t i = 0; i < count; ++i)
    prepare(works_[i], *transfers[i]);
  if (!checksum_)
    zeroFirstSectors(count);
  moveBodies(count);
  finishWriting(count);
  for (size_t i = 0; i < count; ++i) {
    settle(works_[i]);
    transfers[i]->status = std::move(works_[i].status);
  }
}

void FileTier::prepare(Work &work, Transfer &transfer) {
  work.transfer = &transfer;
  work.slot = transfer.slot;
  work.begin = work.end = 0;
  work.punched = true;
  work.zeroSector = false;
  work.status = success();
  if (transfer.slot >= geometry_.slots) {
    work.status = failure(QUIRE_INVALID_ARGUMENT, "expected a slot below %" PRIu32 ", but got %" PRIu32, geometry_.slots, transfer.slot);
    return;
  }
  if (transfer.kind == Transfer::Kind::Load && held_[transfer.slot] != Held::Content)
    work.status = failure(QUIRE_PAGE_LOST, "slot %" PRIu32 " of tier %s holds no content", transfer.slot, name().c_str());
  bool aligned = geometry_.pageOffset() % sectorBytes == 0 && reinterpret_cast<uintptr_t>(transfer.page) % sectorBytes == 0;
  work.page = direct_ && !aligned ? nullptr : transfer.page;
  if (transfer.kind != Transfer::Kind::Store)
    return;
  SlotHeader header = sealSlot(geometry_, work.slot, transfer.tag, transfer.page, checksum_);
  std::memset(work.staging, 0, geometry_.pageOffset());
  std::memcpy(work.staging, &header, sizeof(header));
  if (!work.page)
    std::memcpy(work.staging + geometry_.pageOffset(), transfer.page, geometry_.pageBytes);
}

/// Without checksums a slot that may have content stops having any before it is
/// overwritten.
void FileTier::zeroFirstSectors(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Work &work = works_[i];
    if (!work.status.ok() || work.transfer->kind != Transfer::Kind::Store || held_[work.slot] == Held::Zeros)
      continue;
    work.zeroSector = true;
    aim(work, IoRequest::Kind::Write, 0, sectorBytes);
  }
  perform(count);
  for (size_t i = 0; i < count; ++i)
    works_[i].zeroSector = false;
}

void FileTier::moveBodies(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Work &work = works_[i];
    if (!work.status.ok())
      continue;
    switch (work.transfer->kind) {
    case Transfer::Kind::Load:
      aim(work, IoRequest::Kind::Read, 0, slotBytes());
      break;
    case Transfer::Kind::Store:
      aim(work, IoRequest::Kind::Write, checksum_ ? 0 : sectorBytes, slotBytes());
      break;
    case Transfer::Kind::Erase:
      if (held_[work.slot] == Held::Zeros)
        break;
      work.punched = punches_;
      if (punches_)
        aim(work, IoRequest::Kind::Punch, 0, slotBytes());
      break;
    }
  }
  perform(count);
}

/// Zeros where no hole could be punched; without checksums, the first sectors.
void FileTier::finishWriting(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Work &work = works_[i];
    if (!work.status.ok())
      continue;
    if (!work.punched) {
      work.page = nullptr;
      std::memset(work.staging, 0, slotBytes());
      aim(work, IoRequest::Kind::Write, 0, slotBytes());
    } else if (work.transfer->kind == Transfer::Kind::Store && !checksum_) {
      aim(work, IoRequest::Kind::Write, 0, sectorBytes);
    }
  }
  perform(count);
}

void FileTier::settle(Work &work) {
  if (work.slot >= geometry_.slots)
    return;
  Held &held = held_[work.slot];
  switch (work.transfer->kind) {
  case Transfer::Kind::Load:
    if (held == Held::Content && work.status.ok())
      work.status = settleLoad(work);
    if (held == Held::Content && work.status.code() == QUIRE_PAGE_LOST) {
      held = Held::Lost;
      quarantined_.fetch_add(1, std::memory_order_relaxed);
    }
    break;
  case Transfer::Kind::Store:
    held = work.status.ok() ? Held::Content : Held::Lost;
    if (!work.status.ok())
      invalidate(work);
    break;
  case Transfer::Kind::Erase:
    held = work.status.ok() ? Held::Zeros : Held::Lost;
    break;
  }
}

Status FileTier::settleLoad(Work &work) {
  SlotHeader header;
  std::memcpy(&header, work.staging, sizeof(header));
  const char *page = work.page ? work.page : work.staging + geometry_.pageOffset();
  QUIRE_TRY(checkSlot(geometry_, work.slot, &work.transfer->tag, header, page));
  if (!work.page)
    std::memcpy(work.transfer->page, page, geometry_.pageBytes);
  return success();
}

/// One attempt, so that what a failed store left is not found by a later process. This process
/// refuses it in any case.
void FileTier::invalidate(Work &work) {
  work.zeroSector = true;
  aim(work, IoRequest::Kind::Write, 0, sectorBytes);
  gather(work);
  IoRequest *request = &work.request;
  io_->run(&request, 1);
  work.zeroSector = false;
  work.begin = work.end;
}

//===----------------------------------------------------------------------===//
// Recovery, and stored bytes
//===----------------------------------------------------------------------===//

uint32_t FileTier::recover(std::vector<Entry> &out) {
  out.clear();
  uint32_t unread = 0;
  for (uint32_t slot = 0; slot < geometry_.slots;) {
    auto count = static_cast<uint32_t>(std::min<uint64_t>(works_.size(), geometry_.slots - slot));
    unread += recoverSome(slot, count, out);
    slot += count;
  }
  return unread;
}

uint32_t FileTier::recoverSome(uint32_t first, uint32_t count, std::vector<Entry> &out) {
  for (uint32_t i = 0; i < count; ++i) {
    Work &work = works_[i];
    work.transfer = nullptr;
    work.slot = first + i;
    work.page = nullptr;
    work.zeroSector = false;
    work.status = success();
    aim(work, IoRequest::Kind::Read, 0, slotBytes());
  }
  perform(count);
  uint32_t unread = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Work &work = works_[i];
    Held &held = held_[work.slot];
    SlotHeader header;
    std::memcpy(&header, work.staging, sizeof(header));
    if (work.status.code() == QUIRE_IO_ERROR) {
      ++unread;
      continue;
    }
    if (held == Held::Content && work.status.ok() &&
        checkSlot(geometry_, work.slot, nullptr, header, work.staging + geometry_.pageOffset()).ok()) {
      out.push_back({work.slot, header.tag});
      continue;
    }
    bool zeros = work.status.ok() && std::all_of(work.staging, work.staging + slotBytes(), [](char c) { return c == 0; });
    held = zeros ? Held::Zeros : Held::Lost;
  }
  return unread;
}

/// Through the staging of the first work; no repetition.
Status FileTier::moveStored(uint32_t slot, IoRequest::Kind kind) {
  Work &work = works_[0];
  work.slot = slot;
  work.page = nullptr;
  aim(work, kind, 0, slotBytes());
  gather(work);
  work.begin = work.end;
  IoRequest *request = &work.request;
  io_->run(&request, 1);
  return request->result == static_cast<int64_t>(slotBytes()) ? success() : explain(work);
}

Status FileTier::readStored(uint32_t slot, char *out) {
  QUIRE_TRY(moveStored(slot, IoRequest::Kind::Read));
  std::memcpy(out, works_[0].staging, slotBytes());
  return success();
}

Status FileTier::writeStored(uint32_t slot, const char *bytes) {
  std::memcpy(works_[0].staging, bytes, slotBytes());
  held_[slot] = Held::Content;
  return moveStored(slot, IoRequest::Kind::Write);
}

} // namespace quire::runtime
