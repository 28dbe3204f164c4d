#include "core/device_spec.h"

#include <cstdio>
#include <string_view>

#include "core/lazy.h"

namespace fl {

const char* chip_name(Chip chip) {
  switch (chip) {
    case Chip::h200: return "h200";
    case Chip::zen4: return "zen4";
    case Chip::zen5: return "zen5";
    case Chip::neoverse_n1: return "neoverse_n1";
    case Chip::other: break;
  }
  return "";
}

DeviceSpec spec_of(int compute_capability, int multiprocessors, int clock_khz) {
  const Capability& known = capability(compute_capability);
  DeviceSpec spec;
  spec.compute_capability = compute_capability;
  spec.multiprocessors = multiprocessors;
  spec.clock_khz = clock_khz;
  spec.fma_per_clock = known.fma_per_clock, spec.half_fma_per_clock = known.half_fma_per_clock;
  spec.threads_per_sm = known.threads_per_sm, spec.registers_per_sm = known.registers_per_sm;
  spec.shared_per_sm = std::size_t(known.shared_per_sm), spec.shared_per_block = std::size_t(known.shared_per_block);
  spec.features = features_of(compute_capability);
  return spec;
}

namespace {
Chip chip_of(std::string_view device_name) {
  return device_name.find("H200") == std::string_view::npos ? Chip::other : Chip::h200;
}

// Cards with the whole tensor rate, by the data of T4, A10, A40, L4, L40S, RTX PRO 6000 and others. An A10G has half.
bool has_whole_tensor_rate(std::string_view name) {
  if (name.starts_with("NVIDIA A10G")) return false;
  for (const std::string_view whole :
       {"Tesla T4", "Quadro RTX", "TITAN RTX", "NVIDIA TITAN RTX", "NVIDIA RTX", "NVIDIA A", "NVIDIA L", "NVIDIA GB10"})
    if (name.starts_with(whole)) return true;
  return false;
}

void copy_name(DeviceSpec& spec, const char* name) { std::snprintf(spec.name, sizeof spec.name, "%s", name); }
}  // namespace

void set_name(DeviceSpec& spec, const char* name) {
  copy_name(spec, name);
  spec.chip = chip_of(name);
  const Capability& known = capability(spec.compute_capability);
  spec.half_fma_per_clock = known.half_fma_per_clock / (known.geforce && !has_whole_tensor_rate(name) ? 2 : 1);
}

const DeviceSpec& h200_spec() {
  static constinit Lazy<DeviceSpec> spec;
  return spec.get([] {
    DeviceSpec h200 = spec_of(90, 132, 1980000);
    set_name(h200, "NVIDIA H200");
    h200.l2_bytes = 60 * KiB * KiB;
    h200.bytes_per_us = 4.8e6;
    return h200;
  });
}

const DeviceSpec& host_spec() {
  static constinit Lazy<DeviceSpec> spec;
  return spec.get([] {
    DeviceSpec host;
    copy_name(host, "host");
    host.chip = Chip::zen4;
#if defined(__aarch64__)
    host.chip = Chip::neoverse_n1;
#elif defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("amdfam19h")) host.chip = Chip::zen5;  // not a Zen 4
#endif
    return host;
  });
}

const DeviceSpec& nearest_measured(const DeviceSpec& device) {
  return device.multiprocessors == 0 ? host_spec() : h200_spec();
}

}  // namespace fl
