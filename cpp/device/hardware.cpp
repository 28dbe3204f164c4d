#include "device/hardware.h"

#include <cstdlib>
#include <cstring>

#include "device/device.h"

namespace fl {
namespace {

enum CpuLevel { level_baseline, level_avx2, level_avx512 };

CpuLevel detect_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
    return level_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return level_avx2;
#endif
  return level_baseline;
}

CpuLevel cpu_cap() {
  const char* text = std::getenv("FASTLINALG_CPU");
  if (!text) return level_avx512;
  if (!std::strcmp(text, "baseline")) return level_baseline;
  if (!std::strcmp(text, "avx2")) return level_avx2;
  return level_avx512;
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const CpuLevel cap = cpu_cap(), found = detect_cpu();
    return cap < found ? cap : found;
  }();
  return level;
}

int required_cc(Needs needs) {
  switch (needs) {
    case Needs::sm_80: return 80;
    case Needs::sm_90a: return 90;
    default: return 0;
  }
}

}  // namespace

const char* needs_name(Needs needs) {
  switch (needs) {
    case Needs::baseline: return "baseline";
    case Needs::avx2_fma: return "avx2_fma";
    case Needs::avx512f: return "avx512f";
    case Needs::cuda: return "cuda";
    case Needs::sm_80: return "sm_80";
    case Needs::sm_90a: return "sm_90a";
  }
  return "?";
}

bool available_on(Needs needs, int device) {
  const int cc = cuda::device_info(device).compute_capability;
  // Code built for 90a runs on compute capability 9.0 and on nothing else.
  return needs == Needs::sm_90a ? cc == 90 : cc >= required_cc(needs);
}

bool tensor_cores_pay(int compute_capability) {
  // 8.0 sums 16 products of half precision in the time of one in float32, and 10.x no fewer; Hopper has rows of its
  // own. Elsewhere it is 4 on professional cards, which the split pass takes back, and 2 on the others.
  return compute_capability == 80 || compute_capability == 100 || compute_capability == 103;
}

bool pays_on(Needs needs, int device) {
  return needs != Needs::sm_80 || tensor_cores_pay(cuda::device_info(device).compute_capability);
}

bool available(Needs needs) {
  if (needs == Needs::avx2_fma) return cpu_level() >= level_avx2;
  if (needs == Needs::avx512f) return cpu_level() >= level_avx512;
  return needs == Needs::baseline || why_not(needs).empty();
}

std::string why_not(Needs needs) {
  if (needs == Needs::baseline) return "";
  if (needs == Needs::avx2_fma)
    return cpu_level() >= level_avx2 ? "" : "this CPU has no AVX2 and FMA (or FASTLINALG_CPU forbids them)";
  if (needs == Needs::avx512f)
    return cpu_level() >= level_avx512 ? "" : "this CPU has no AVX-512 (or FASTLINALG_CPU forbids it)";
  const int devices = cuda::device_count();
  if (devices == 0) return cuda::unavailable().message;
  for (int i = 0; i < devices; ++i)
    if (available_on(needs, i)) return "";
  return std::string("no CUDA device of this machine has ") + needs_name(needs);
}

}  // namespace fl
