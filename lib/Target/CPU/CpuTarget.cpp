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

// What LLVM says of a processor of the triple; null when there is no back end for it.
static std::unique_ptr<llvm::MCSubtargetInfo> subtargetOf(llvm::StringRef tripleText, llvm::StringRef cpu,
                                                          llvm::StringRef features) {
  llvm::InitializeNativeTarget();
  std::string error;
  llvm::Triple triple(tripleText);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  return std::unique_ptr<llvm::MCSubtargetInfo>(backend ? backend->createMCSubtargetInfo(triple, cpu, features)
                                                        : nullptr);
}

bool CpuTarget::isKnown(llvm::StringRef cpu) {
  if (cpu == "host")
    return true;
  auto subtarget = subtargetOf(llvm::sys::getProcessTriple(), "", "");
  if (!subtarget || !subtarget->isCPUStringValid(cpu))
    return false;
  auto named = subtargetOf(llvm::sys::getProcessTriple(), cpu, "");
  return !llvm::Triple(llvm::sys::getProcessTriple()).isX86() || named->checkFeatures("+64bit");
}

// Features that code for a named processor may use, and that a loader can look for.
static void recordFeatures(CpuTarget &target) {
  auto subtarget = subtargetOf(target.triple, target.cpu, target.featureString());
  if (!subtarget || !llvm::Triple(target.triple).isX86())
    return;
  for (const char *name :
       {"sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "movbe",
        "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512bf16", "avx512vnni", "avx512fp16",
        "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512ifma", "avx512vpopcntdq", "avxvnni", "amx-tile",
        "amx-int8", "amx-bf16"})
    if (subtarget->checkFeatures(std::string("+") + name) && !llvm::is_contained(target.features, std::string("+") + name))
      target.features.push_back(std::string("+") + name);
}

// Bytes of the widest vector that the subtarget computes with; 16 when it is unknown.
static int64_t vectorBytesOf(const CpuTarget &target) {
  auto subtarget = subtargetOf(target.triple, target.cpu, target.featureString());
  if (!subtarget || !llvm::Triple(target.triple).isX86())
    return 16;
  if (subtarget->checkFeatures("+avx512f"))
    return 64;
  return subtarget->checkFeatures("+avx2") ? 32 : 16;
}

bool CpuTarget::convertsHalf() const {
  auto subtarget = subtargetOf(triple, cpu, featureString());
  return subtarget && (!llvm::Triple(triple).isX86() || subtarget->checkFeatures("+f16c"));
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
  recordFeatures(target);
  target.nativeVectorBytes = vectorBytesOf(target);
  return target;
}
