#include "device/hardware.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "core/errors.h"
#include "core/lazy.h"
#include "core/operations.h"
#include "core/text.h"
#include "device/device_info.h"
#include "device/loaded_code.h"
#include "device/pretended.h"

namespace fl {
namespace {

// Those of other architectures cap nothing.
enum CpuLevel { level_baseline, level_neon, level_avx2, level_avx512, level_amx };

#if defined(__x86_64__)
bool has_amx() {
  constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & amx_bf16) && (edx & amx_tile);
}

// Linux saves the tile registers of processes that have asked for it. 0, or why it does not; asked once.
int tile_refusal() {
  constexpr int ask_for = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static constinit Lazy<int> refusal;
  return refusal.get([] { return ::syscall(SYS_arch_prctl, ask_for, tile_data) == 0 ? 0 : errno; });
}
#endif

CpuLevel detect_cpu() {
#if defined(__x86_64__)
  // All that the folders of kernels are compiled with (CMakeLists.txt): a hypervisor may hide some.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return level_baseline;
  if (!__builtin_cpu_supports("f16c")) return level_baseline;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl")) return level_avx2;
  if (!__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw")) return level_avx2;
  return has_amx() && tile_refusal() == 0 ? level_amx : level_avx512;
#elif defined(__aarch64__)
  return level_neon;  // a part of the architecture
#else
  return level_baseline;
#endif
}

constexpr const char* cpu_variable = "FASTLINALG_CPU";

std::optional<CpuLevel> cap_named(std::string_view text) {
  if (text == "baseline") return level_baseline;
  if (text == "avx2") return level_avx2;
  if (text == "avx512") return level_avx512;
  if (text == "amx" || text == "neon") return level_amx;  // no cap
  return std::nullopt;
}

CpuLevel cpu_cap() {
  const char* const text = std::getenv(cpu_variable);
  return cap_named(text ? text : "").value_or(level_amx);
}

CpuLevel cpu_level() {
  static constinit Lazy<CpuLevel> level;
  return level.get([] {
    const CpuLevel cap = cpu_cap(), found = detect_cpu();
    return cap < found ? cap : found;
  });
}

std::string no_amx() {
#if defined(__x86_64__)
  if (cpu_cap() >= level_amx && has_amx() && tile_refusal() != 0)
    return std::string("Linux does not let this process use the CPU's tile registers: ") +
           std::strerror(tile_refusal());
#endif
  return "this CPU has no AMX (or FASTLINALG_CPU forbids it)";
}

bool hardware_for(Needs needs, int device) { return cuda::device_info(device).spec.has(needs_row(needs).features); }

// Whether the device has it and pretends not to.
bool hidden(Needs needs, int device) {
  const unsigned features = needs_row(needs).features;
  return !hardware_for(needs, device) &&
         (features_of(cuda::device_info(device).compute_capability) & features) == features;
}

std::string hardware_reason(Needs needs, int device) {
  const std::string name = "cuda:" + std::to_string(device);
  if (!hidden(needs, device)) return name + " does not have " + needs_name(needs);
  return cuda::device_info(device).pretended + ", and " + name + " answers without " + needs_name(needs);
}

// Whether a row of the table needs it.
bool asked_for(Needs needs) {
  bool found = false;
  for_each_operation([&]<class Args>() {
    for (const auto& row : kernels<Args>()) found = found || row.needs == needs;
  });
  return found;
}

// Why a device runs code without such rows, though another build or environment would have them.
std::string code_reason(Needs needs, int device) {
  const int cc = cuda::device_info(device).compute_capability;
  const LoadedCode code = cuda::known_code(device);
  const std::string built = cuda::built_architectures();
  const std::string wanted = needs == Needs::cuda ? "compute capability " + capability_text(cc) : needs_name(needs);
  const std::string list = "FASTLINALG_CUDA_ARCHITECTURES was '" + built + "'";
  if (!has_body(needs, expected_code(built, cc, {}))) return "this build has no code for " + wanted + ": " + list;
  const JitSettings jit = jit_settings();
  const char* const cause = jit.only_ptx ? "CUDA_FORCE_PTX_JIT is set"
                            : jit.no_ptx ? "CUDA_DISABLE_PTX_JIT is set"
                                         : "the driver chose so";
  return "cuda:" + std::to_string(device) + " runs " +
         (code.target ? "code for compute capability " + capability_text(code.target) : "no code of this build") +
         ", not that for " + wanted + ": " + cause + ", and " + list;
}

}  // namespace

std::string ignored_cpu_cap() {
  const char* const text = std::getenv(cpu_variable);
  if (!text || !*text || cap_named(text)) return "";
  return std::string(cpu_variable) + "=" + quoted(text) + " is ignored: it must be baseline, avx2, avx512, amx or neon";
}

const char* needs_name(Needs needs) { return needs_row(needs).name; }

bool available_on(Needs needs, int device) {
  return hardware_for(needs, device) && has_body(needs, cuda::known_code(device));
}

std::string why_not_on(Needs needs, int device) {
  if (!hardware_for(needs, device)) return hardware_reason(needs, device);
  return has_body(needs, cuda::known_code(device)) ? "" : code_reason(needs, device);
}

std::string compiled_code_on(int device) {
  const int cc = cuda::device_info(device).compute_capability;
  const LoadedCode code = cuda::known_code(device);
  const LoadedCode machine_code = expected_code(cuda::built_architectures(), cc, {.no_ptx = true});
  if (!code.target || (code == machine_code && !jit_settings().only_ptx)) return "";
  return "cuda:" + std::to_string(device) + " runs PTX for compute capability " + capability_text(code.target) +
         ": the driver compiles each kernel at its first call, which takes up to some seconds, and keeps it in its "
         "cache (CUDA_CACHE_PATH)";
}

std::string code_missing_on(int device) {
  for (const Needs needs : {Needs::cuda, Needs::sm_90a, Needs::sm_90, Needs::sm_80})
    if (asked_for(needs) && hardware_for(needs, device) && !available_on(needs, device))
      return code_reason(needs, device);
  return "";
}

void require_code(int device) {
  cuda::load_code(device);
  if (available_on(Needs::cuda, device)) return;
  constexpr int no_kernel_image = 209;  // cudaErrorNoKernelImageForDevice
  throw CudaError(no_kernel_image, "cudaErrorNoKernelImageForDevice", code_reason(Needs::cuda, device));
}

bool tensor_cores_pay(const DeviceSpec& spec) {
  if (capability(spec.compute_capability).number != spec.compute_capability) return false;
  // A product of 4096 cubed. Each element of A and B is read as a float32 and written as two terms of half precision.
  // Float32 kernels reach nine tenths of the rate of the pipes, products by mma.sync seven.
  constexpr double n = 4096, terms = 3, split_bytes = 2 * n * n * 8, float32_part = 0.9, half_part = 0.7;
  const double strict_us = n * n * n / (float32_part * spec.fma_per_us());
  const double split_us = spec.bytes_per_us > 0 ? split_bytes / spec.bytes_per_us : 0;
  return terms * n * n * n / (half_part * spec.half_fma_per_us()) + split_us < strict_us;
}

const char* passed_over(Needs needs, const Traits& traits, const DeviceSpec& spec, int hardware, bool wgmma) {
  constexpr int hopper = 9;
  if (needs == Needs::sm_90 && hardware / 10 != hopper)
    return "not measured on this chip: 'fastlinalg tune' checks and times it before it is chosen";
  if (traits.terms == Terms::none || traits.wgmma) return nullptr;
  return !wgmma && tensor_cores_pay(spec) ? nullptr : "not known to gain anything on this device";
}

const char* passed_over_on(Needs needs, const Traits& traits, int device) {
  const cuda::DeviceInfo& info = cuda::device_info(device);
  return passed_over(needs, traits, info.spec, info.compute_capability, available_on(Needs::sm_90a, device));
}

bool available(Needs needs) {
  if (needs == Needs::avx2_fma) return cpu_level() >= level_avx2;
  if (needs == Needs::avx512f) return cpu_level() >= level_avx512;
  if (needs == Needs::amx_bf16) return cpu_level() >= level_amx;
  if (needs == Needs::neon) return cpu_level() == level_neon;
  return needs == Needs::baseline || why_not(needs).empty();
}

std::string why_not(Needs needs) {
  if (needs == Needs::baseline) return "";
  if (needs == Needs::avx2_fma)
    return cpu_level() >= level_avx2 ? "" : "this CPU has no AVX2, FMA and F16C (or FASTLINALG_CPU forbids them)";
  if (needs == Needs::avx512f)
    return cpu_level() >= level_avx512 ? "" : "this CPU has no AVX-512 (or FASTLINALG_CPU forbids it)";
  if (needs == Needs::amx_bf16) return cpu_level() >= level_amx ? "" : no_amx();
  if (needs == Needs::neon)
    return cpu_level() == level_neon ? "" : "this CPU has no NEON (or FASTLINALG_CPU forbids it)";
  const int devices = cuda::device_count();
  if (devices == 0) return cuda::unavailable().message;
  for (int i = 0; i < devices; ++i)
    if (available_on(needs, i)) return "";
  for (int i = 0; i < devices; ++i)
    if (hardware_for(needs, i)) return code_reason(needs, i);
  for (int i = 0; i < devices; ++i)
    if (hidden(needs, i)) return hardware_reason(needs, i);
  return std::string("no CUDA device of this machine has ") + needs_name(needs);
}

}  // namespace fl
