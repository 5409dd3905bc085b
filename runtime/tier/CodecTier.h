// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tier that stores pages encoded.
#ifndef QUIRE_RUNTIME_TIER_CODECTIER_H
#define QUIRE_RUNTIME_TIER_CODECTIER_H

#include "compress/Codec.h"
#include "residency/PageGeometry.h"
#include "tier/Tier.h"

#include <atomic>
#include <memory>
#include <vector>

namespace quire::runtime {

/// Encodes on the way to the inner tier and decodes on the way back, on the mover's
/// thread. What the inner tier checks is the encoded form. A page that the codec
/// refuses is not stored: QUIRE_INVALID_ARGUMENT.
class CodecTier final : public Tier {
public:
  /// Bytes of a slot that takes any page, a multiple of 64. QUIRE_INVALID_ARGUMENT:
  /// the codec cannot take the elements of some layer.
  static Status slotBytes(Codec codec, const quire_model_info &info, const PageGeometry &geometry, uint64_t &out);

  /// `inner` has pages of slotBytes. The slots are those of this object; the inner
  /// tier's are not used.
  CodecTier(std::unique_ptr<Tier> inner, Codec codec, const quire_model_info &info, const PageGeometry &geometry);

  void run(Transfer *const *transfers, size_t count) override;
  Codec codec() const override { return codec_; }
  uint64_t storedPageBytes() const override { return inner_->pageBytes(); }
  CodecError codecError() const override;

private:
  static constexpr size_t batch = 32;
  static constexpr uint64_t sampleEvery = 16; // stores, the first included

  void runSome(Transfer *const *transfers, size_t count);
  PageLayers layersOf(uint32_t group) const;
  char *staging(size_t index) { return staging_.data() + index * inner_->pageBytes(); }
  Status encodePage(const Transfer &transfer, char *out);
  void sample(const Transfer &transfer, const char *encoded);

  std::unique_ptr<Tier> inner_;
  Codec codec_;
  std::vector<quire_model_layer> layers_;
  std::vector<uint64_t> starts_; // [layers]
  uint32_t layersPerPage_;
  int64_t blockTokens_;
  std::vector<char> staging_; // [batch] encoded pages
  std::vector<Transfer> inside_;
  std::vector<Transfer *> list_;

  uint64_t stores_ = 0;
  std::vector<char> decoded_; // a page
  std::vector<float> numbers_, changed_; // of one row
  // Written by the mover's thread only, read by the owner's.
  std::atomic<uint64_t> samples_{0};
  std::atomic<double> difference_{0}, norm_{0}; // sums of squares
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_CODECTIER_H
