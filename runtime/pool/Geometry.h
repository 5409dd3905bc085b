// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How large a block should be: by cache, by measured transfers, by waste, growing with its sequence, and in two sizes.
#ifndef QUIRE_RUNTIME_POOL_GEOMETRY_H
#define QUIRE_RUNTIME_POOL_GEOMETRY_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace quire::runtime {

constexpr uint64_t leastBlockBytes = uint64_t(4) << 10;
constexpr uint64_t mostBlockBytes = uint64_t(4) << 20;

/// The largest power of two that is not above `value`, but within [least, most], which
/// are powers of two.
uint64_t clampPow2(uint64_t value, uint64_t least = leastBlockBytes, uint64_t most = mostBlockBytes);

/// clampPow2(L2 / (2 * concurrency)): half of a sequence's share of the cache, so that a
/// block is read while the next one comes. 0 if the cache is unknown (0) or there are no
/// sequences. L2 is that of one core.
uint64_t blockBytesByCache(uint64_t l2Bytes, int64_t concurrency, uint64_t least = leastBlockBytes,
                           uint64_t most = mostBlockBytes);

/// Bytes of the second-level data cache of one core, from sysconf or else from sysfs; 0
/// if unknown.
uint64_t level2CacheBytes();
/// The same from a folder like /sys/devices/system/cpu/cpu0/cache.
uint64_t level2CacheBytesFrom(const std::string &folder);

/// Speed of transfers of one size.
struct SizeRate {
  uint64_t bytes = 0;
  double bytesPerSecond = 0;
};
/// The smallest size that reaches `share` of the best speed in the table; 0 if the table
/// is empty. TransferRates.h measures tables.
uint64_t blockBytesByTransfer(const SizeRate *rates, size_t count, double share = 0.8);

/// Slots without a token that a sequence of random length has in its last block, on
/// average: (B - 1) / 2.
double expectedWasteTokens(int64_t blockTokens);
/// The largest block whose expected waste is at most `share` of the allocated slots:
/// w / (mean + w) <= share. At least 1.
int64_t blockTokensByWaste(double meanTokens, double share);
/// The smallest block of which `metadataBytes` are at most `share`.
uint64_t blockBytesByMetadata(uint64_t metadataBytes, double share = 0.05);

enum class GeometryRule : uint8_t { Least, Cache, Transfer, Waste, Metadata, Lanes };
const char *geometryRuleName(GeometryRule rule);

struct GeometryRequest {
  uint64_t tokenBytes = 0;         // of one token in a page: K and V of the page's layers
  int64_t lanes = 1;               // block_tokens is a multiple of it
  uint64_t l2Bytes = 0;            // 0: unknown, no rule
  int64_t concurrency = 1;         // sequences at the same time
  const SizeRate *rates = nullptr; // [rateCount]; none: no rule
  size_t rateCount = 0;
  double transferShare = 0.8;
  double meanTokens = 0; // of a sequence; 0: unknown, no rule
  double wasteShare = 0.10;
  uint64_t metadataBytes = 24; // that tables take a block
  double metadataShare = 0.05;
};
struct GeometryChoice {
  int64_t blockTokens = 1;
  uint64_t blockBytes = 0; // blockTokens * tokenBytes
  GeometryRule decided = GeometryRule::Least;
  // What each rule alone asks for, in tokens; 0: it has no opinion.
  int64_t byCache = 0;
  int64_t byTransfer = 0;
  int64_t byWaste = 0;
  int64_t byMetadata = 0;
};
/// All rules, in tokens that are powers of two. Transfers and metadata ask for a size at
/// least: their larger one is taken, or the cache's where transfers are not known. Waste
/// allows a size at most and goes before all of these, because unused memory is what
/// blocks are there to save; only `lanes` goes before it. The cache gives way to
/// transfers: a block that is moved slowly costs more than one that does not fit.
GeometryChoice chooseGeometry(const GeometryRequest &request);

/// min(cap, base * 2^(length / doubleEvery)): bytes of the next block of a sequence of
/// this length. Never overflows.
uint64_t adaptiveBlockBytes(uint64_t base, uint64_t cap, int64_t length, int64_t doubleEvery = 1024);

/// Two sizes of pages for documents.
struct PageClasses {
  uint64_t chapter = uint64_t(1) << 20;
  uint64_t paragraph = uint64_t(64) << 10;
};
/// Whole tokens in a page: bytes / tokenBytes, the rest is lost. With K and V of one
/// layer in f16, 40 heads of 128 have 20,480 bytes a token, so that a chapter holds 51
/// and a paragraph 3; 8 heads of 128 have 4,096, which gives 256 and 16.
int64_t tokensInPage(uint64_t pageBytes, uint64_t tokenBytes);
/// Size of the next page when `tokens` more are to come: a chapter, unless paragraphs
/// hold them in fewer bytes.
uint64_t documentPageBytes(const PageClasses &classes, uint64_t tokenBytes, int64_t tokens);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_GEOMETRY_H
