// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for block sizes, as arithmetic, and the size of the cache.
#include "pool/Geometry.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <fstream>

#include <unistd.h>

namespace quire::runtime {
namespace {

constexpr int64_t mostTokens = int64_t(1) << 24; // as the model's description allows

uint64_t floorPow2(uint64_t value) { return value == 0 ? 0 : uint64_t(1) << (63 - __builtin_clzll(value)); }

int64_t tokensAtMost(uint64_t bytes, uint64_t tokenBytes) {
  return static_cast<int64_t>(std::clamp<uint64_t>(floorPow2(bytes / tokenBytes), 1, mostTokens));
}

int64_t tokensAtLeast(uint64_t bytes, uint64_t tokenBytes) {
  uint64_t tokens = std::max<uint64_t>(1, bytes / tokenBytes + (bytes % tokenBytes != 0));
  uint64_t power = floorPow2(tokens);
  return static_cast<int64_t>(std::min<uint64_t>(power == tokens ? power : 2 * power, mostTokens));
}

/// "1024K", "2M" or bytes, as sysfs writes them; 0 if it is something else.
uint64_t readSize(const std::string &path) {
  std::ifstream file(path);
  uint64_t number = 0;
  char unit = 0;
  if (!(file >> number))
    return 0;
  if (!(file >> unit))
    return number;
  int shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : -1;
  return shift < 0 || number > (UINT64_MAX >> 30) ? 0 : number << shift;
}

} // namespace

uint64_t clampPow2(uint64_t value, uint64_t least, uint64_t most) {
  assert(least == floorPow2(least) && most == floorPow2(most) && least >= 1 && least <= most);
  return std::clamp(floorPow2(value), least, most);
}

uint64_t blockBytesByCache(uint64_t l2Bytes, int64_t concurrency, uint64_t least, uint64_t most) {
  if (l2Bytes == 0 || concurrency < 1)
    return 0;
  return clampPow2(l2Bytes / 2 / static_cast<uint64_t>(concurrency), least, most);
}

uint64_t level2CacheBytesFrom(const std::string &folder) {
  for (int index = 0; index < 16; ++index) {
    std::string cache = folder + "/index" + std::to_string(index);
    int level = 0;
    std::string type;
    if (std::ifstream(cache + "/level") >> level && level == 2 && std::ifstream(cache + "/type") >> type &&
        type != "Instruction")
      return readSize(cache + "/size");
  }
  return 0;
}

uint64_t level2CacheBytes() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0)
    return static_cast<uint64_t>(bytes);
#endif
  return level2CacheBytesFrom("/sys/devices/system/cpu/cpu0/cache");
}

uint64_t blockBytesByTransfer(const SizeRate *rates, size_t count, double share) {
  double best = 0;
  for (size_t i = 0; i < count; ++i)
    best = std::max(best, rates[i].bytesPerSecond);
  uint64_t smallest = 0;
  for (size_t i = 0; i < count; ++i)
    if (rates[i].bytesPerSecond >= share * best && (smallest == 0 || rates[i].bytes < smallest))
      smallest = rates[i].bytes;
  return smallest;
}

double expectedWasteTokens(int64_t blockTokens) { return static_cast<double>(blockTokens - 1) / 2; }

int64_t blockTokensByWaste(double meanTokens, double share) {
  if (!(meanTokens > 0) || !(share > 0))
    return 1;
  if (share >= 1)
    return mostTokens;
  double tokens = 1 + 2 * share * meanTokens / (1 - share);
  return static_cast<int64_t>(std::min(tokens + 1e-9, static_cast<double>(mostTokens)));
}

uint64_t blockBytesByMetadata(uint64_t metadataBytes, double share) {
  assert(share > 0);
  return static_cast<uint64_t>(std::ceil(static_cast<double>(metadataBytes) / share - 1e-9));
}

const char *geometryRuleName(GeometryRule rule) {
  switch (rule) {
  case GeometryRule::Least:
    return "least";
  case GeometryRule::Cache:
    return "cache";
  case GeometryRule::Transfer:
    return "transfer";
  case GeometryRule::Waste:
    return "waste";
  case GeometryRule::Metadata:
    return "metadata";
  case GeometryRule::Lanes:
    return "lanes";
  }
  return "unknown rule";
}

GeometryChoice chooseGeometry(const GeometryRequest &request) {
  assert(request.tokenBytes > 0 && request.lanes > 0);
  GeometryChoice choice;
  auto take = [&](int64_t tokens, GeometryRule rule) {
    choice.blockTokens = tokens;
    choice.decided = rule;
  };
  if (uint64_t bytes = blockBytesByCache(request.l2Bytes, request.concurrency))
    choice.byCache = tokensAtMost(bytes, request.tokenBytes);
  if (uint64_t bytes = blockBytesByTransfer(request.rates, request.rateCount, request.transferShare))
    choice.byTransfer = tokensAtLeast(bytes, request.tokenBytes);
  if (request.metadataBytes > 0)
    choice.byMetadata =
        tokensAtLeast(blockBytesByMetadata(request.metadataBytes, request.metadataShare), request.tokenBytes);
  if (request.meanTokens > 0)
    choice.byWaste = static_cast<int64_t>(
        floorPow2(static_cast<uint64_t>(blockTokensByWaste(request.meanTokens, request.wasteShare))));

  if (choice.byTransfer > 0)
    take(choice.byTransfer, GeometryRule::Transfer);
  else if (choice.byCache > 0)
    take(choice.byCache, GeometryRule::Cache);
  if (choice.byMetadata > choice.blockTokens)
    take(choice.byMetadata, GeometryRule::Metadata);
  if (choice.byWaste > 0 && choice.byWaste < choice.blockTokens)
    take(choice.byWaste, GeometryRule::Waste);
  if (int64_t rest = choice.blockTokens % request.lanes)
    take(choice.blockTokens + request.lanes - rest, GeometryRule::Lanes);
  choice.blockBytes = static_cast<uint64_t>(choice.blockTokens) * request.tokenBytes;
  return choice;
}

uint64_t adaptiveBlockBytes(uint64_t base, uint64_t cap, int64_t length, int64_t doubleEvery) {
  assert(length >= 0 && doubleEvery > 0);
  int64_t doublings = length / doubleEvery;
  if (doublings >= 64 || base > (cap >> doublings))
    return cap;
  return base << doublings;
}

int64_t tokensInPage(uint64_t pageBytes, uint64_t tokenBytes) { return static_cast<int64_t>(pageBytes / tokenBytes); }

uint64_t documentPageBytes(const PageClasses &classes, uint64_t tokenBytes, int64_t tokens) {
  int64_t inParagraph = tokensInPage(classes.paragraph, tokenBytes);
  if (inParagraph == 0)
    return classes.chapter;
  uint64_t paragraphs = static_cast<uint64_t>((tokens + inParagraph - 1) / inParagraph);
  return paragraphs < classes.chapter / classes.paragraph ? classes.paragraph : classes.chapter;
}

} // namespace quire::runtime
