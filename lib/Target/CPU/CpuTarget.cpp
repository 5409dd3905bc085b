// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Facts about processors, from LLVM.
#include "lib/Target/CPU/CpuTarget.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"

using namespace quire::cpu;

std::string CpuTarget::featureString() const { return llvm::join(features, ","); }

// Bytes of the widest vector that the subtarget computes with; 16 when it is unknown.
static int64_t vectorBytesOf(const CpuTarget &target) {
  llvm::InitializeNativeTarget();
  std::string error;
  llvm::Triple triple(target.triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return 16;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      backend->createMCSubtargetInfo(triple, target.cpu, target.featureString()));
  if (!subtarget || !triple.isX86())
    return 16;
  if (subtarget->checkFeatures("+avx512f"))
    return 64;
  return subtarget->checkFeatures("+avx2") ? 32 : 16;
}

CpuTarget CpuTarget::host() {
  CpuTarget target;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = llvm::sys::getHostCPUName().str();
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    target.features.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(target.features);
  target.nativeVectorBytes = vectorBytesOf(target);
  return target;
}

CpuTarget CpuTarget::named(llvm::StringRef cpu, llvm::ArrayRef<std::string> extra) {
  CpuTarget target;
  if (cpu == "host") {
    target = host();
  } else {
    target.triple = llvm::sys::getProcessTriple();
    target.cpu = cpu.str();
  }
  target.features.append(extra.begin(), extra.end());
  target.nativeVectorBytes = vectorBytesOf(target);
  return target;
}
