#include "core/device_spec.h"

#include "core/lazy.h"

namespace fl {

const DeviceSpec& h200_spec() {
  static constinit Lazy<DeviceSpec> spec;
  return spec.get([] {
    const Capability& hopper = capability(90);
    DeviceSpec h200;
    h200.name = "NVIDIA H200";
    h200.compute_capability = hopper.number;
    h200.multiprocessors = 132;
    h200.clock_khz = 1980000;
    h200.fma_per_clock = hopper.fma_per_clock, h200.half_fma_per_clock = hopper.half_fma_per_clock;
    h200.threads_per_sm = hopper.threads_per_sm, h200.registers_per_sm = hopper.registers_per_sm;
    h200.shared_per_sm = hopper.shared_per_sm, h200.shared_per_block = hopper.shared_per_block;
    h200.l2_bytes = 60 * KiB * KiB;
    h200.bytes_per_us = 4.8e6;
    h200.features = hopper.features;
    return h200;
  });
}

}  // namespace fl
