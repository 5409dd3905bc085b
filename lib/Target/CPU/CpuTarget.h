// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which processor code is made for, and the pipeline that makes it.
#ifndef QUIRE_LIB_TARGET_CPU_CPUTARGET_H
#define QUIRE_LIB_TARGET_CPU_CPUTARGET_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace quire::cpu {

struct CpuTarget {
  std::string triple;
  std::string cpu;                            // as for -mcpu
  llvm::SmallVector<std::string, 0> features; // as for -mattr: "+avx2", "-avx512f"
  int64_t nativeVectorBytes = 16;

  /// The processor that runs this program.
  static CpuTarget host();
  /// A processor of the host's architecture by name, or "host"; features are what LLVM says of it, then `extra`.
  static CpuTarget named(llvm::StringRef cpu, llvm::ArrayRef<std::string> extra = {});

  /// False for names that LLVM does not know, and for processors without 64-bit code.
  static bool isKnown(llvm::StringRef cpu);

  /// f32 elements of a native vector: the `lanes` of a state's layout.
  int64_t lanes() const { return nativeVectorBytes / 4; }
  /// Columns of a packed panel.
  int64_t panelWidth() const { return 2 * lanes(); }
  /// Whether f16 becomes f32 by an instruction.
  bool convertsHalf() const;
  /// Features as one string.
  std::string featureString() const;
};

/// Attention over more keys than this is computed in parts and merged.
constexpr int64_t attendPartTokens = 512;

/// From memrefs, kernels of `kvrt`, `scf` and `kvrt.parallel` to the LLVM dialect. `breakAttend` is an error for tests of certificates; see lower-attend.
void buildCpuTargetPipeline(mlir::OpPassManager &passes, const CpuTarget &target, llvm::StringRef breakAttend = {});

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_CPUTARGET_H
