// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a model's layers are cut into pages.
#ifndef QUIRE_RUNTIME_RESIDENCY_PAGEGEOMETRY_H
#define QUIRE_RUNTIME_RESIDENCY_PAGEGEOMETRY_H

#include "core/Status.h"

#include <cstdint>
#include <vector>

namespace quire::runtime {

/// `layersPerPage` consecutive layers form a group; a page is one block of one
/// group. All pages have one size, the largest group's, so that any slot takes
/// any page: where layers differ, the smaller ones waste the difference.
struct PageGeometry {
  uint32_t groups = 0;
  uint32_t layersPerPage = 1;
  int64_t blockTokens = 0;
  uint64_t pageBytes = 0;           // a multiple of 64
  uint64_t pageStride = 0;          // from a page of the fast tier to the next, which is what a page takes of its budget
  std::vector<uint64_t> layerStart; // [layers] bytes from the start of a page
  std::vector<int64_t> windows;     // [groups] keys that a row sees at most, its own included; 0: all

  int64_t layers() const { return static_cast<int64_t>(layerStart.size()); }
  uint32_t groupOf(int64_t layer) const { return static_cast<uint32_t>(layer) / layersPerPage; }
  int64_t blocksFor(int64_t tokens) const { return (tokens + blockTokens - 1) / blockTokens; }
  /// The first block that a row at `position`, or one after it, sees in any layer of the group.
  int64_t firstBlock(uint32_t group, int64_t position) const { return firstInWindow(windows[group], position); }
  /// The same of a layer with this window; 0: none.
  int64_t firstInWindow(int64_t window, int64_t position) const {
    return window == 0 || position < window ? 0 : (position - window + 1) / blockTokens;
  }

  /// Fails if there are no layers, or not 1 to their number in a page.
  static Status make(const quire_model_info &info, int64_t layersPerPage, PageGeometry &out);
  /// Each page of the fast tier has whole pages of the system to itself.
  void separate(uint64_t systemPage) { pageStride = (pageBytes + systemPage - 1) / systemPage * systemPage; }
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_PAGEGEOMETRY_H
