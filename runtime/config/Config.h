// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The configuration of a run: one YAML file, read strictly, printed again, compared and reloaded.
#ifndef QUIRE_RUNTIME_CONFIG_CONFIG_H
#define QUIRE_RUNTIME_CONFIG_CONFIG_H

#include "core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::config {

// Choices, in the order of their names in the table of keys.
enum class SlowKind { None, Memory, File, Throttled };
enum class Checksum { Xxh3, None };
enum class AutoBlock { Off, L2, Io, Waste };
enum class ReplacePolicy { Lru, Scan, Importance, Arc };
enum class ChainOrder { TailFirst };
enum class PrefetchStrategy { None, Sequential, Hotspot, Hybrid };
enum class Predictor { Digest, LayerAhead, SeedHotspot };
enum class CompressionMethod { None, Pruning };
enum class PageImportance { Tfidf, None };
enum class Quant { None, Int8, Int4, Fp8 };
enum class SparseIndex { Bitmap, Index };
enum class TenantSalt { Required };

/// Values by section and key of the file; units, ranges and defaults are in the
/// table of keys (Keys.cpp), which also makes a new Config.
struct Config {
  Config();

  struct {
    uint64_t fastBytes;
    struct {
      SlowKind kind;
      std::string path;
      uint64_t bytes;
      Checksum checksum;
      int64_t latency;
      uint64_t bandwidth;
    } slow;
    std::vector<std::string> slower; // "WHERE SIZE"
    double reserveRatio;
    bool stableVa;
  } memory;
  struct {
    int64_t tokens;
    int64_t layersPerBlock;
    AutoBlock automatic;
    struct {
      uint64_t base;
      int64_t doubleEvery;
      uint64_t max;
    } adaptive;
  } block;
  struct {
    ReplacePolicy policy;
    ChainOrder chainOrder;
  } replace;
  struct {
    int64_t windowSize;
    PrefetchStrategy strategy;
    int64_t topk;
    Predictor predictor;
    uint64_t maxInflight;
  } prefetch;
  struct {
    int64_t recentTurns;
    int64_t recentPages;
    std::vector<int64_t> importantPages;
    double pinBudget;
    struct {
      CompressionMethod method;
      double ratio;
    } compression;
  } dialogue;
  struct {
    uint64_t chapterPage;
    uint64_t paragraphPage;
    PageImportance importance;
    bool unloadProcessed;
  } document;
  struct {
    Quant quant;
    struct {
      int64_t ratio;
      SparseIndex index;
    } sparse;
    int64_t afterIdleSteps;
  } compress;
  struct {
    bool prefixCache;
  } share;
  struct {
    TenantSalt tenantSalt;
    bool zeroOnFree;
    int64_t ttl;
  } security;
  struct {
    double pageTableMax;
    double minHit;
    double fragMax;
  } doctor;
  struct {
    int64_t maxBatch;
    int64_t prefillChunk;
    int64_t mixedChunk;
    int64_t threads;
  } serving;

  std::string blockTokensPlace;   // "NAME:LINE:COLUMN" of the value of block.tokens; "": no file says it
  std::string layersPerBlockPlace; // the same of block.layers_per_block
};

/// Which keys of the table a text may have and a print shows.
enum class Keys {
  Implemented, ///< those of a run: the others are refused, with the reason
  All          ///< also those of pages of several sizes, which no run has: for quire/config.h
};

/// Reads a whole file's text; `name` comes first in errors: "NAME:LINE:COLUMN:
/// expected X, but got Y". Keys that do not occur have their defaults. On failure
/// (QUIRE_INVALID_ARGUMENT) `out` is unchanged.
runtime::Status parseConfig(std::string_view text, const std::string &name, Config &out, Keys keys = Keys::Implemented);

/// The same from a file; also QUIRE_IO_ERROR.
runtime::Status readConfig(const std::string &path, Config &out, Keys keys = Keys::Implemented);

/// YAML text that parseConfig reads back as the same values.
std::string printConfig(const Config &config, Keys keys = Keys::Implemented);

struct Change {
  std::string key; // "prefetch.window_size"
  std::string before, after;
  bool reloadable = false;
};

/// Keys with different values, in the order of the table.
std::vector<Change> diff(const Config &before, const Config &after);

struct Reload {
  Config config;               // the current one with those changes that are reloadable
  std::vector<Change> changes; // all; those that are not reloadable need a new run
  Config file;                 // what the file says now
};

/// Reads the file again, which said `before`. A key that is another one in the current
/// configuration was given otherwise, and stays. A file that is not valid is an error, and the
/// current configuration goes on.
runtime::Status reload(const std::string &path, const Config &before, const Config &current, Reload &out, Keys keys = Keys::Implemented);

/// The table of all keys for the documentation, in Markdown.
std::string keyTable();
/// The same for a terminal, in lines of at most 100 characters.
std::string keyText();

} // namespace quire::config

#endif // QUIRE_RUNTIME_CONFIG_CONFIG_H
