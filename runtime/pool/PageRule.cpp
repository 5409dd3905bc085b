// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages of several numbers of layers, compared.
#include "pool/PageRule.h"

#include "pool/TransferRates.h"
#include "residency/PageGeometry.h"
#include "tier/CodecTier.h"

namespace quire::runtime {

/// Demands in one batch of the mover, at most.
static constexpr uint64_t batchPages = 32;

std::vector<int64_t> layerChoices(const quire_model_info &info) {
  std::vector<int64_t> choices;
  for (int64_t layers = 1; layers < info.layer_count; layers *= 2)
    choices.push_back(layers);
  choices.push_back(info.layer_count);
  return choices;
}

Status layersByCache(const quire_model_info &info, uint64_t l2Bytes, int64_t concurrency, int64_t &out) {
  uint64_t most = blockBytesByCache(l2Bytes, concurrency);
  out = 1;
  for (int64_t layers : layerChoices(info)) {
    PageGeometry geometry;
    QUIRE_TRY(PageGeometry::make(info, layers, geometry));
    if (geometry.pageBytes <= most)
      out = layers;
  }
  return success();
}

Status layersByTransfer(const quire_model_info &info, Codec codec, const Clock &clock,
                        const std::function<std::unique_ptr<Tier>(uint64_t pageBytes, uint64_t pages)> &make, int64_t &out) {
  std::vector<int64_t> choices = layerChoices(info);
  std::vector<SizeRate> rates, one;
  for (int64_t layers : choices) {
    PageGeometry geometry;
    QUIRE_TRY(PageGeometry::make(info, layers, geometry));
    uint64_t bytes = geometry.pageBytes;
    if (codec != Codec::None)
      QUIRE_TRY(CodecTier::slotBytes(codec, info, geometry, bytes));
    RateOptions options;
    options.bytes = batchPages * bytes;
    QUIRE_TRY(measureTier({bytes}, options, clock, [&](uint64_t size) { return make(size, batchPages); }, one));
    rates.push_back(one.front());
  }
  uint64_t wanted = blockBytesByTransfer(rates.data(), rates.size());
  out = choices.back();
  for (size_t i = choices.size(); i-- > 0;)
    if (rates[i].bytes >= wanted)
      out = choices[i];
  return success();
}

} // namespace quire::runtime
