// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A step of kernels, compiled as the compiler would and run by the runtime.
#ifndef QUIRE_BENCHMARKS_KERNELS_KERNELMODEL_H
#define QUIRE_BENCHMARKS_KERNELS_KERNELMODEL_H

#include "quire/runtime.h"

#include <cstdint>
#include <string>
#include <vector>

namespace quire::bench {

/// `count` products in a row, each with a weight [k, n] of its own, so that all weights together are larger than any cache.
struct ProductShape {
  std::string element; // of the weight
  int64_t k, n, count;
  int64_t panelColumns; // of this machine's kernels
  int64_t weightBytes() const;
};
std::string productModule(const ProductShape &shape, int64_t maxRows);

/// `layers` times attention over what is stored, so that one sequence of 1024 tokens is larger than the caches.
struct AttendShape {
  std::string element; // of K and V
  int64_t heads, kvHeads, features, blockTokens, lanes, layers;
  int64_t tokenBytes() const; // over all layers
};
std::string attendModule(const AttendShape &shape, int64_t maxRows);

class KernelModel {
public:
  /// Compiles `text`; `maxTokens` and `sequences` bound a step, `kvTokens` is what all sequences together store. Ends the program with a message
  /// when something fails: a benchmark has nothing to go on with. Blocks are handed out in a random order, or one after the other.
  KernelModel(const std::string &text, int64_t maxTokens, int64_t sequences, int64_t kvTokens, int64_t threads, bool shuffle = true);
  ~KernelModel();
  KernelModel(const KernelModel &) = delete;
  KernelModel &operator=(const KernelModel &) = delete;

  /// Sequences of `length` stored tokens each, with random contents.
  void fill(int64_t count, int64_t length);
  /// One step of `rows` new tokens for each of `sequences`; cut back to the stored length afterwards.
  void step(int64_t rows);
  quire_executor *executor() const { return executor_; }

private:
  void *library_ = nullptr;
  const quire_model_info *info_ = nullptr;
  std::vector<char> weights_;
  quire_model *model_ = nullptr;
  quire_pool *pool_ = nullptr;
  quire_executor *executor_ = nullptr;
  std::vector<quire_sequence> sequences_;
  std::vector<int64_t> counts_, tokens_;
  int64_t length_ = 0;
};

/// Columns of a panel and tokens side by side in K, as kernels for this machine have them.
int64_t panelColumnsHere();
int64_t lanesHere();

} // namespace quire::bench

#endif // QUIRE_BENCHMARKS_KERNELS_KERNELMODEL_H
