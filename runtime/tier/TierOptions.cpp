// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text form of a slow tier, and the making of tiers.
#include "tier/TierOptions.h"

#include "core/Quantities.h"
#include "tier/FileTier.h"
#include "tier/HostTier.h"

#include <algorithm>
#include <cinttypes>

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

std::unique_ptr<Tier> createTier(const TierOptions &options, uint64_t pageBytes, uint64_t quotaBytes, Clock &clock,
                                 Status &status) {
  status = success();
  if (options.kind == TierOptions::Kind::None)
    return nullptr;
  bool file = options.kind == TierOptions::Kind::File;
  if (pageBytes == 0 || pageBytes > uint64_t(1) << 40 || (options.kind == TierOptions::Kind::Throttled && (options.throttle.latency < 0 || options.throttle.bandwidth == 0))) {
    status = failure(QUIRE_INVALID_ARGUMENT, "expected pages of 1 to 2^40 bytes, a latency that is not negative and a bandwidth that is not 0");
    return nullptr;
  }
  uint64_t outside = file ? sectorBytes : 0;
  uint64_t each = file ? FileGeometry{pageBytes, 0, 1}.slotBytes() : pageBytes;
  if (quotaBytes < outside + each) {
    status = failure(QUIRE_INVALID_ARGUMENT, "expected at least %" PRIu64 " bytes for the slow tier, one page, but got %" PRIu64, outside + each, quotaBytes);
    return nullptr;
  }
  // The last number stands for no slot.
  auto slots = static_cast<uint32_t>(std::min<uint64_t>((quotaBytes - outside) / each, UINT32_MAX - 1));
  if (file)
    return createFile(options, pageBytes, slots, status);
  std::unique_ptr<Tier> memory = createMemory(options, pageBytes, slots, status);
  if (!memory || options.kind == TierOptions::Kind::Memory)
    return memory;
  return std::make_unique<ThrottledTier>(std::move(memory), options.throttle, clock);
}

} // namespace quire::runtime
