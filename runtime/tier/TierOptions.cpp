// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text form of a slow tier, and the making of tiers.
#include "tier/TierOptions.h"

#include "core/Quantities.h"
#include "tier/FileTier.h"
#include "tier/HostTier.h"
#include "tier/StackedTier.h"

#include <algorithm>
#include <cinttypes>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <sys/statvfs.h>

namespace quire::runtime {

static Status wrong(const char *expected, std::string_view got) {
  return failure(QUIRE_INVALID_ARGUMENT, "expected %s, but got '%.*s'", expected, static_cast<int>(got.size()), got.data());
}

static Status parseThrottle(std::string_view text, Throttle &out) {
  size_t comma = text.find(',');
  if (comma == std::string_view::npos)
    return wrong("LATENCY,BANDWIDTH such as 100us,2GB/s", text);
  std::string_view latency = text.substr(0, comma), bandwidth = text.substr(comma + 1);
  if (!parseDuration(latency, out.latency))
    return wrong("a latency such as 100us (ns, us, ms, s)", latency);
  if (!parseBandwidth(bandwidth, out.bandwidth))
    return wrong("a bandwidth such as 2GB/s", bandwidth);
  if (out.latency > Throttle::mostLatency)
    return wrong("a latency of at most 60s", latency);
  if (out.bandwidth > Throttle::mostBandwidth)
    return wrong("a bandwidth of at most 1TiB/s", bandwidth);
  return success();
}

Status parseTier(std::string_view text, TierOptions &out) {
  size_t colon = std::min(text.find(':'), text.size());
  std::string_view kind = text.substr(0, colon);
  bool more = colon < text.size();
  std::string_view rest = more ? text.substr(colon + 1) : std::string_view();
  TierOptions options = out;
  if (kind == "none")
    options.kind = TierOptions::Kind::None;
  else if (kind == "memory")
    options.kind = TierOptions::Kind::Memory;
  else if (kind == "file")
    options.kind = TierOptions::Kind::File;
  else if (kind == "throttled")
    options.kind = TierOptions::Kind::Throttled;
  else
    return wrong("none, memory, file:PATH or throttled[:LATENCY,BANDWIDTH]", text);
  if (options.kind == TierOptions::Kind::File) {
    if (rest.empty() || rest.find('\0') != std::string_view::npos)
      return wrong("file:PATH", text);
    options.path = rest;
  } else if (options.kind == TierOptions::Kind::Throttled && more) {
    QUIRE_TRY(parseThrottle(rest, options.throttle));
  } else if (more) {
    return wrong("nothing after the name of this tier", rest);
  }
  out = std::move(options);
  return success();
}

static std::unique_ptr<Tier> createMemory(const TierOptions &options, uint64_t pageBytes, uint32_t slots, Status &status) {
  HostTierOptions host;
  host.slots = slots;
  host.pageBytes = pageBytes;
  host.checksum = options.memoryChecksum;
  host.commit = options.commit;
  return HostTier::create(host, status);
}

static std::unique_ptr<Tier> createFile(const TierOptions &options, uint64_t pageBytes, uint32_t slots, Status &status) {
  FileTierOptions file;
  file.path = options.path;
  file.slots = slots;
  file.pageBytes = pageBytes;
  file.geometry = options.geometry;
  file.mode = options.mode;
  file.keep = options.keep;
  file.checksum = options.fileChecksum;
  file.direct = options.direct;
  file.io = options.io;
  return FileTier::open(file, status);
}

/// No machine has so many bytes, and sums of them do not overflow.
static constexpr uint64_t tooMuch = uint64_t(1) << 61;

/// As parseTier() reads it, but without the numbers of a throttle.
static std::string nameOf(const TierOptions &options) {
  switch (options.kind) {
  case TierOptions::Kind::None:
    return "none";
  case TierOptions::Kind::Memory:
    return "memory";
  case TierOptions::Kind::File:
    return "file:" + options.path;
  case TierOptions::Kind::Throttled:
    return "throttled";
  }
  return "";
}

/// Slots are numbered by 32 bits with a sign where they are handed out.
static Status countSlots(const TierOptions &options, uint64_t pageBytes, uint64_t quotaBytes, uint32_t &out) {
  bool file = options.kind == TierOptions::Kind::File;
  if (pageBytes == 0 || pageBytes > uint64_t(1) << 40 || (options.kind == TierOptions::Kind::Throttled && (options.throttle.latency < 0 || options.throttle.bandwidth == 0)))
    return failure(QUIRE_INVALID_ARGUMENT, "expected pages of 1 to 2^40 bytes, a latency that is not negative and a bandwidth that is not 0");
  uint64_t outside = file ? sectorBytes : 0;
  uint64_t each = file ? FileGeometry{pageBytes, 0, 1}.slotBytes() : pageBytes;
  if (quotaBytes < outside + each)
    return failure(QUIRE_INVALID_ARGUMENT, "slow tier '%s': expected at least %" PRIu64 " bytes, which one page%s takes, but got %" PRIu64, nameOf(options).c_str(), outside + each,
                   file ? " with the headers of the file" : "", quotaBytes);
  out = static_cast<uint32_t>(std::min<uint64_t>((quotaBytes - outside) / each, INT32_MAX));
  return success();
}

/// Free space of the file system that the path is or will be on, and that system's number. What a file takes there now
/// counts as free: its content is discarded. False: not known.
static bool freeSpace(const std::string &path, dev_t &device, uint64_t &bytes) {
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::absolute(path, failed).parent_path();
  struct stat info;
  struct statvfs system;
  if (failed || ::stat(folder.c_str(), &info) != 0 || ::statvfs(folder.c_str(), &system) != 0)
    return false;
  device = info.st_dev;
  bytes = uint64_t(system.f_bavail) * system.f_frsize;
  if (::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode))
    bytes += uint64_t(info.st_blocks) * 512;
  return true;
}

/// Of the tier's budget in a configuration.
static const char *keyOf(const std::vector<TierQuota> &tiers, const TierQuota &quota) { return &quota == &tiers.front() ? "memory.slow.bytes" : "memory.slower"; }

Status planTiers(const std::vector<TierQuota> &tiers, uint64_t pageBytes, TierPlan &out) {
  TierPlan plan;
  for (const TierQuota &quota : tiers) {
    uint32_t slots;
    Status counted = countSlots(quota.tier, pageBytes, quota.bytes, slots);
    if (!counted.ok())
      return failure(counted.code(), "%s; raise %s (--slow-bytes)", counted.text().c_str(), keyOf(tiers, quota));
    plan.slots += slots;
    bool file = quota.tier.kind == TierOptions::Kind::File;
    uint64_t pages = file ? 0 : std::min(slots * pageBytes, tooMuch);
    plan.memoryBytes = std::min(plan.memoryBytes + pages + slots * (file ? FileTier::tableBytesPerSlot() : HostTier::tableBytesPerSlot()), tooMuch);
  }
  if (plan.slots > INT32_MAX)
    return failure(QUIRE_INVALID_ARGUMENT, "expected slow tiers of at most %" PRId32 " pages together, but got %" PRIu64 "; lower memory.slow.bytes (--slow-bytes)", INT32_MAX, plan.slots);
  out = plan;
  return success();
}

Status checkFreeSpace(const std::vector<TierQuota> &tiers, uint64_t pageBytes) {
  std::vector<std::pair<dev_t, uint64_t>> files; // bytes, by file system
  for (const TierQuota &quota : tiers) {
    uint32_t slots;
    QUIRE_TRY(countSlots(quota.tier, pageBytes, quota.bytes, slots));
    dev_t device;
    uint64_t free;
    if (quota.tier.kind != TierOptions::Kind::File || !freeSpace(quota.tier.path, device, free))
      continue;
    uint64_t wanted = FileGeometry{pageBytes, 0, slots}.fileBytes(), before = 0;
    for (auto &[other, bytes] : files)
      before += other == device ? bytes : 0;
    if (wanted > free || before > free - wanted) {
      std::string others = before ? ", and " + std::to_string(before) + " of other slow tiers on it" : "";
      return failure(QUIRE_INVALID_ARGUMENT, "%s: expected a file that fits into the %" PRIu64 " bytes that are free on its file system, but got %" PRIu64 " bytes%s; lower %s (--slow-bytes)",
                     quota.tier.path.c_str(), free, wanted, others.c_str(), keyOf(tiers, quota));
    }
    files.emplace_back(device, wanted);
  }
  return success();
}

std::unique_ptr<Tier> createTiers(const std::vector<TierQuota> &tiers, uint64_t pageBytes, Clock &clock, Status &status) {
  std::vector<std::unique_ptr<Tier>> made;
  for (const TierQuota &quota : tiers) {
    made.push_back(createTier(quota.tier, pageBytes, quota.bytes, clock, status));
    if (!made.back())
      return nullptr;
  }
  if (made.size() == 1)
    return std::move(made.front());
  return std::make_unique<StackedTier>(std::move(made));
}

std::unique_ptr<Tier> createTier(const TierOptions &options, uint64_t pageBytes, uint64_t quotaBytes, Clock &clock,
                                 Status &status) {
  status = success();
  if (options.kind == TierOptions::Kind::None)
    return nullptr;
  uint32_t slots;
  status = countSlots(options, pageBytes, quotaBytes, slots);
  if (!status.ok())
    return nullptr;
  if (options.kind == TierOptions::Kind::File)
    return createFile(options, pageBytes, slots, status);
  std::unique_ptr<Tier> memory = createMemory(options, pageBytes, slots, status);
  if (!memory || options.kind == TierOptions::Kind::Memory)
    return memory;
  return std::make_unique<ThrottledTier>(std::move(memory), options.throttle, clock);
}

} // namespace quire::runtime
