// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sizes and places of layers in pages.
#include "residency/PageGeometry.h"

#include <algorithm>

namespace quire::runtime {

Status PageGeometry::make(const quire_model_info &info, int64_t layersPerPage, PageGeometry &out) {
  if (layersPerPage < 1 || layersPerPage > info.layer_count)
    return failure(QUIRE_INVALID_ARGUMENT, "layers of a page: expected 1 to %lld, but got %lld",
                   static_cast<long long>(info.layer_count), static_cast<long long>(layersPerPage));
  PageGeometry made;
  made.blockTokens = info.block_tokens;
  made.layersPerPage = static_cast<uint32_t>(layersPerPage);
  made.groups = static_cast<uint32_t>((info.layer_count + layersPerPage - 1) / layersPerPage);
  uint64_t bytes = 0;
  for (int64_t layer = 0; layer < info.layer_count; ++layer) {
    int64_t window = info.layers[layer].window;
    if (layer % layersPerPage == 0) {
      bytes = 0;
      made.windows.push_back(window);
    }
    int64_t &ofGroup = made.windows.back();
    ofGroup = ofGroup == 0 || window == 0 ? 0 : std::max(ofGroup, window);
    made.layerStart.push_back(bytes);
    bytes += (static_cast<uint64_t>(info.layers[layer].block_bytes) + 63) & ~uint64_t(63);
    made.pageBytes = std::max(made.pageBytes, bytes);
  }
  made.pageStride = made.pageBytes;
  out = std::move(made);
  return success();
}

} // namespace quire::runtime
