// A GPU as numbers: the one place that says what a device has. Made once for each device from what the driver reports
// and from the table below (cuda/runtime/devices.cpp). Legality, costs and launches read it.
//
// Rates are the makers' for the board's highest clock; costs fitted on one device are scaled to another by their ratio.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/export.h"

namespace fl {

// What instructions and launch attributes a device has. Bits, so that a kernel can ask for several.
enum Feature : unsigned {
  feature_cp_async = 1 << 0,   // asynchronous copies to shared memory, 8.0
  feature_mbarrier = 1 << 1,   // barriers in shared memory that count bytes, 8.0
  feature_tma = 1 << 2,        // tensor memory accelerator: boxes copied by one thread, 9.0
  feature_clusters = 1 << 3,   // clusters of more than one block that read each other's shared memory, 9.0
  feature_pdl = 1 << 4,        // programmatic dependent launch, 9.0
  feature_wgmma = 1 << 5,      // products of a warpgroup from shared memory, 9.0a alone
  feature_setmaxnreg = 1 << 6  // registers that move between warpgroups, 9.0a, 10.x, 11.x, 12.x under an "a" target
};

// Those of targets that end in a letter: code with them runs on that capability alone, and so a newer one that is not
// in the table cannot be taken to have them.
constexpr unsigned features_of_one_capability = feature_wgmma | feature_setmaxnreg;

// What a compute capability has, whatever the chip. Sources: the CUDA C++ programming guide's table of technical
// specifications; NVIDIA's architecture white papers and data sheets for the rates. Nothing but 9.0 was measured by us.
// GeForce cards have half of the tensor rate that data-center and professional ones of their capability have, which no
// driver tells but by the name.
struct Capability {
  int number;              // 10 * major + minor
  int fma_per_clock;       // float32 FMAs of a multiprocessor
  int half_fma_per_clock;  // dense fp16 tensor-core FMAs of a multiprocessor, float32 accumulation; GeForce: half
  bool geforce;            // there are GeForce cards
  int threads_per_sm;
  int registers_per_sm;
  int shared_per_sm;     // bytes
  int shared_per_block;  // bytes that a block may ask for
  unsigned features;
};

constexpr unsigned features_80 = feature_cp_async | feature_mbarrier;
constexpr unsigned features_100 = features_80 | feature_tma | feature_clusters | feature_pdl;
constexpr unsigned features_120 = features_80 | feature_tma | feature_pdl | feature_setmaxnreg;
constexpr int KiB = 1024;
inline constexpr Capability capabilities[] = {
    {75, 64, 512, true, 1024, 65536, 64 * KiB, 64 * KiB, 0},
    {80, 64, 1024, false, 2048, 65536, 164 * KiB, 163 * KiB, features_80},
    {86, 128, 512, true, 1536, 65536, 100 * KiB, 99 * KiB, features_80},
    {87, 128, 1024, false, 1536, 65536, 164 * KiB, 163 * KiB, features_80},
    {89, 128, 512, true, 1536, 65536, 100 * KiB, 99 * KiB, features_80},
    {90, 128, 2048, false, 2048, 65536, 228 * KiB, 227 * KiB, features_100 | feature_wgmma | feature_setmaxnreg},
    {100, 128, 4096, false, 2048, 65536, 228 * KiB, 227 * KiB, features_100 | feature_setmaxnreg},
    {103, 128, 4096, false, 2048, 65536, 228 * KiB, 227 * KiB, features_100 | feature_setmaxnreg},
    {120, 128, 512, true, 1536, 65536, 100 * KiB, 99 * KiB, features_120},
    {121, 128, 512, true, 1536, 65536, 100 * KiB, 99 * KiB, features_120},
};

// The newest capability in the table that is not newer than `number`: what an unknown one has at least, but for
// features_of_one_capability.
constexpr const Capability& capability(int number) {
  const Capability* found = &capabilities[0];
  for (const Capability& each : capabilities)
    if (each.number <= number) found = &each;
  return *found;
}

// The shared memory, in bytes, that a block may ask for on every device with such features.
constexpr int least_shared_per_block(unsigned features) {
  int least = capability(90).shared_per_block;
  for (const Capability& each : capabilities)
    if ((each.features & features) == features && each.shared_per_block < least) least = each.shared_per_block;
  return least;
}

constexpr unsigned features_of(int number) {
  const Capability& known = capability(number);
  return known.number == number ? known.features : known.features & ~features_of_one_capability;
}

// Chips with costs of their own (cost/measured.def): h200 and the CPUs zen4 and zen5, on which they were measured, and
// neoverse_n1, an AArch64 core, whose costs are those of zen4 by the makers' rates (docs/notes/cpu.md). A Xeon takes
// those of zen5, which starts two 512-bit FMAs a cycle, too.
enum class Chip { other, h200, zen4, zen5, neoverse_n1 };
constexpr int chip_count = 5;
constexpr bool was_measured(Chip chip) { return chip != Chip::neoverse_n1; }
FL_EXPORT const char* chip_name(Chip chip);  // "h200"; "" of another

// No std::string: nvcc would read <string> in every kernel file, once for each target.
struct DeviceSpec {
  char name[128] = "";  // as the driver calls it
  Chip chip = Chip::other;
  int compute_capability = 0;  // 10 * major + minor
  int multiprocessors = 0;
  int clock_khz = 0;      // highest clock of the multiprocessors
  int fma_per_clock = 0;  // of a multiprocessor, as in Capability
  int half_fma_per_clock = 0;
  int threads_per_sm = 0, registers_per_sm = 0;
  std::size_t shared_per_sm = 0, shared_per_block = 0;  // bytes
  std::size_t l2_bytes = 0;
  double bytes_per_us = 0;  // of device memory
  unsigned features = 0;    // of the device, whatever the binary holds
  bool has(unsigned wanted) const { return (features & wanted) == wanted; }
  double fma_per_us() const { return 1e-3 * clock_khz * fma_per_clock * multiprocessors; }
  double half_fma_per_us() const { return 1e-3 * clock_khz * half_fma_per_clock * multiprocessors; }
  double peak_gflops() const { return 2e-3 * fma_per_us(); }
  bool operator==(const DeviceSpec&) const = default;
};

// What the table says of a capability, and a chip of so many multiprocessors: to be completed by what a driver reports.
FL_EXPORT DeviceSpec spec_of(int compute_capability, int multiprocessors, int clock_khz);
// As the driver calls it, and what the name tells: the chip, and the tensor rate where GeForce cards have half of it. A
// name that tells nothing is taken for one of those.
FL_EXPORT void set_name(DeviceSpec& spec, const char* name);
// The device on which costs were fitted and figures in comments were measured.
FL_EXPORT const DeviceSpec& h200_spec();
// The chip whose costs a device takes. Of GPUs one was measured; the number of bytes that the memory brings for an FMA
// would tell more of them apart. The host's is the host.
FL_EXPORT const DeviceSpec& nearest_measured(const DeviceSpec& device);
// What costs of CPU kernels are given: no multiprocessors.
FL_EXPORT const DeviceSpec& host_spec();

}  // namespace fl
