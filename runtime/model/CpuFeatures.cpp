// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CPU features from CPUID and XGETBV (Intel SDM volume 2A, CPUID; volume 1, 13.3) or from the Linux hardware
// capabilities.
#include "model/CpuFeatures.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace quire::runtime {

#if defined(__x86_64__)

const char *hostArchitecture() { return "x86_64"; }

namespace {

enum Register { Eax, Ebx, Ecx, Edx };

/// Register state that the operating system must save, as XCR0 bits.
enum State : uint64_t { Plain = 0, Ymm = 0x6, Zmm = 0xe6, Tile = 0x60000 };

struct Feature {
  const char *name;
  uint32_t leaf, subleaf;
  Register reg;
  unsigned bit;
  State state;
};

constexpr Feature features[] = {
    {"x87", 1, 0, Edx, 0, Plain},
    {"cx8", 1, 0, Edx, 8, Plain},
    {"cmov", 1, 0, Edx, 15, Plain},
    {"mmx", 1, 0, Edx, 23, Plain},
    {"fxsr", 1, 0, Edx, 24, Plain},
    {"sse", 1, 0, Edx, 25, Plain},
    {"sse2", 1, 0, Edx, 26, Plain},
    {"sse3", 1, 0, Ecx, 0, Plain},
    {"pclmul", 1, 0, Ecx, 1, Plain},
    {"ssse3", 1, 0, Ecx, 9, Plain},
    {"fma", 1, 0, Ecx, 12, Ymm},
    {"cx16", 1, 0, Ecx, 13, Plain},
    {"sse4.1", 1, 0, Ecx, 19, Plain},
    {"sse4.2", 1, 0, Ecx, 20, Plain},
    {"crc32", 1, 0, Ecx, 20, Plain},
    {"movbe", 1, 0, Ecx, 22, Plain},
    {"popcnt", 1, 0, Ecx, 23, Plain},
    {"aes", 1, 0, Ecx, 25, Plain},
    {"xsave", 1, 0, Ecx, 26, Plain},
    {"avx", 1, 0, Ecx, 28, Ymm},
    {"f16c", 1, 0, Ecx, 29, Ymm},
    {"rdrnd", 1, 0, Ecx, 30, Plain},
    {"fsgsbase", 7, 0, Ebx, 0, Plain},
    {"sgx", 7, 0, Ebx, 2, Plain},
    {"bmi", 7, 0, Ebx, 3, Plain},
    {"avx2", 7, 0, Ebx, 5, Ymm},
    {"bmi2", 7, 0, Ebx, 8, Plain},
    {"invpcid", 7, 0, Ebx, 10, Plain},
    {"rtm", 7, 0, Ebx, 11, Plain},
    {"avx512f", 7, 0, Ebx, 16, Zmm},
    {"avx512dq", 7, 0, Ebx, 17, Zmm},
    {"rdseed", 7, 0, Ebx, 18, Plain},
    {"adx", 7, 0, Ebx, 19, Plain},
    {"avx512ifma", 7, 0, Ebx, 21, Zmm},
    {"clflushopt", 7, 0, Ebx, 23, Plain},
    {"clwb", 7, 0, Ebx, 24, Plain},
    {"avx512cd", 7, 0, Ebx, 28, Zmm},
    {"sha", 7, 0, Ebx, 29, Plain},
    {"avx512bw", 7, 0, Ebx, 30, Zmm},
    {"avx512vl", 7, 0, Ebx, 31, Zmm},
    {"avx512vbmi", 7, 0, Ecx, 1, Zmm},
    {"pku", 7, 0, Ecx, 4, Plain}, // the operating system has enabled it
    {"waitpkg", 7, 0, Ecx, 5, Plain},
    {"avx512vbmi2", 7, 0, Ecx, 6, Zmm},
    {"shstk", 7, 0, Ecx, 7, Plain},
    {"gfni", 7, 0, Ecx, 8, Plain},
    {"vaes", 7, 0, Ecx, 9, Ymm},
    {"vpclmulqdq", 7, 0, Ecx, 10, Ymm},
    {"avx512vnni", 7, 0, Ecx, 11, Zmm},
    {"avx512bitalg", 7, 0, Ecx, 12, Zmm},
    {"avx512vpopcntdq", 7, 0, Ecx, 14, Zmm},
    {"rdpid", 7, 0, Ecx, 22, Plain},
    {"kl", 7, 0, Ecx, 23, Plain},
    {"cldemote", 7, 0, Ecx, 25, Plain},
    {"movdiri", 7, 0, Ecx, 27, Plain},
    {"movdir64b", 7, 0, Ecx, 28, Plain},
    {"enqcmd", 7, 0, Ecx, 29, Plain},
    {"fsrm", 7, 0, Edx, 4, Plain},
    {"uintr", 7, 0, Edx, 5, Plain},
    {"avx512vp2intersect", 7, 0, Edx, 8, Zmm},
    {"serialize", 7, 0, Edx, 14, Plain},
    {"tsxldtrk", 7, 0, Edx, 16, Plain},
    {"pconfig", 7, 0, Edx, 18, Plain},
    {"amx-bf16", 7, 0, Edx, 22, Tile},
    {"avx512fp16", 7, 0, Edx, 23, Zmm},
    {"amx-tile", 7, 0, Edx, 24, Tile},
    {"amx-int8", 7, 0, Edx, 25, Tile},
    {"sha512", 7, 1, Eax, 0, Ymm},
    {"sm3", 7, 1, Eax, 1, Ymm},
    {"sm4", 7, 1, Eax, 2, Ymm},
    {"raoint", 7, 1, Eax, 3, Plain},
    {"avxvnni", 7, 1, Eax, 4, Ymm},
    {"avx512bf16", 7, 1, Eax, 5, Zmm},
    {"cmpccxadd", 7, 1, Eax, 7, Plain},
    {"amx-fp16", 7, 1, Eax, 21, Tile},
    {"hreset", 7, 1, Eax, 22, Plain},
    {"avxifma", 7, 1, Eax, 23, Ymm},
    {"avxvnniint8", 7, 1, Edx, 4, Ymm},
    {"avxneconvert", 7, 1, Edx, 5, Ymm},
    {"amx-complex", 7, 1, Edx, 8, Tile},
    {"avxvnniint16", 7, 1, Edx, 10, Ymm},
    {"prefetchi", 7, 1, Edx, 14, Plain},
    {"xsaveopt", 0xd, 1, Eax, 0, Plain},
    {"xsavec", 0xd, 1, Eax, 1, Plain},
    {"xsaves", 0xd, 1, Eax, 3, Plain},
    {"ptwrite", 0x14, 0, Ebx, 4, Plain},
    {"sahf", 0x80000001, 0, Ecx, 0, Plain},
    {"lzcnt", 0x80000001, 0, Ecx, 5, Plain},
    {"sse4a", 0x80000001, 0, Ecx, 6, Plain},
    {"prfchw", 0x80000001, 0, Ecx, 8, Plain},
    {"xop", 0x80000001, 0, Ecx, 11, Ymm},
    {"lwp", 0x80000001, 0, Ecx, 15, Plain},
    {"fma4", 0x80000001, 0, Ecx, 16, Ymm},
    {"tbm", 0x80000001, 0, Ecx, 21, Plain},
    {"mwaitx", 0x80000001, 0, Ecx, 29, Plain},
    {"64bit", 0x80000001, 0, Edx, 29, Plain},
    {"clzero", 0x80000008, 0, Ebx, 0, Plain},
    {"rdpru", 0x80000008, 0, Ebx, 4, Plain},
    {"wbnoinvd", 0x80000008, 0, Ebx, 9, Plain},
};

uint64_t enabledStates() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) // OSXSAVE
    return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

bool has(const Feature &feature) {
  uint32_t value[4];
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &value[Eax], &value[Ebx], &value[Ecx], &value[Edx]))
    return false;
  static const uint64_t enabled = enabledStates();
  return (value[feature.reg] >> feature.bit & 1) && (enabled & feature.state) == feature.state;
}

} // namespace

FeatureSupport cpuFeature(const std::string &name) {
  for (const Feature &feature : features)
    if (name == feature.name)
      return has(feature) ? FeatureSupport::Present : FeatureSupport::Missing;
  return FeatureSupport::Unknown;
}

std::vector<std::string> cpuFeatures() {
  std::vector<std::string> found;
  for (const Feature &feature : features)
    if (has(feature))
      found.push_back(feature.name);
  return found;
}

#elif defined(__aarch64__)

const char *hostArchitecture() { return "aarch64"; }

namespace {

struct Feature {
  const char *name;
  unsigned long first, second; // bits of AT_HWCAP and AT_HWCAP2
};

constexpr Feature features[] = {
    {"fp-armv8", HWCAP_FP, 0},   {"neon", HWCAP_ASIMD, 0},   {"crc", HWCAP_CRC32, 0},       {"lse", HWCAP_ATOMICS, 0},
    {"fullfp16", HWCAP_FPHP, 0}, {"rdm", HWCAP_ASIMDRDM, 0}, {"dotprod", HWCAP_ASIMDDP, 0}, {"sve", HWCAP_SVE, 0},
    {"sve2", 0, HWCAP2_SVE2},    {"i8mm", 0, HWCAP2_I8MM},   {"bf16", 0, HWCAP2_BF16},
};

bool has(const Feature &feature) {
  return (getauxval(AT_HWCAP) & feature.first) == feature.first &&
         (getauxval(AT_HWCAP2) & feature.second) == feature.second;
}

} // namespace

FeatureSupport cpuFeature(const std::string &name) {
  for (const Feature &feature : features)
    if (name == feature.name)
      return has(feature) ? FeatureSupport::Present : FeatureSupport::Missing;
  return FeatureSupport::Unknown;
}

std::vector<std::string> cpuFeatures() {
  std::vector<std::string> found;
  for (const Feature &feature : features)
    if (has(feature))
      found.push_back(feature.name);
  return found;
}

#else
#error "the runtime knows the CPU features of x86_64 and aarch64 only"
#endif

} // namespace quire::runtime

extern "C" int quire_cpu_has_feature(const char *name) {
  if (!name)
    return -1;
  switch (quire::runtime::cpuFeature(name)) {
  case quire::runtime::FeatureSupport::Unknown:
    return -1;
  case quire::runtime::FeatureSupport::Missing:
    return 0;
  case quire::runtime::FeatureSupport::Present:
    return 1;
  }
  return -1;
}
