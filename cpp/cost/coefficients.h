// Costs are a model in C++ and coefficients as data: a model is a function of a call, a device and a struct of named
// numbers, and measured.def has the numbers of each kernel on each chip it was measured on, written by tools/fit_costs.
//
// The end of a name says what the number is and how it carries over to a chip where nothing was measured:
//   _ns, _us             of a launch, a wave, a barrier: the same there
//   _ps                  of a multiprocessor's float32 FMA pipes: by their rate
//   _tensor_ps           of a multiprocessor's tensor cores: by their rate
//   _fs                  for what goes through the memory of the device: by its bandwidth
//   _bytes_per_us        of the device: by its bandwidth; _block_bytes_per_us: what one block draws, the same there
//   _l2_bytes            up to where something stays in L2: by its size
//   all others           ratios and sizes: the same there
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <string_view>

#include "core/device_spec.h"

// A struct of doubles that knows their names.
#define FL_COEFFICIENTS(Struct, ...)                        \
  struct Struct {                                           \
    double __VA_ARGS__;                                     \
    static constexpr std::string_view names = #__VA_ARGS__; \
  }

namespace fl {

// The estimate of a kernel that can compute a call but is not for its shape.
constexpr double NOT_FOR_SHAPE_US = 1e8;

template <class C>
constexpr std::size_t coefficient_count = sizeof(C) / sizeof(double);
template <class C>
using CoefficientValues = std::array<double, coefficient_count<C>>;

// The name at `index` of a list with commas between.
constexpr std::string_view coefficient_name(std::string_view names, std::size_t index) {
  for (; index > 0; --index) names.remove_prefix(names.find(',') + 1);
  names.remove_prefix(names.find_first_not_of(' '));
  return names.substr(0, names.find(','));
}

// What the numbers of one chip are multiplied with on another one.
struct Scales {
  double fma = 1, tensor = 1, memory = 1, l2 = 1;  // times by pipes and memory, a size
};
constexpr double Scales::* scale_of(std::string_view name) {
  if (name.ends_with("_block_bytes_per_us")) return nullptr;
  if (name.ends_with("_tensor_ps")) return &Scales::tensor;
  if (name.ends_with("_ps")) return &Scales::fma;
  if (name.ends_with("_fs") || name.ends_with("_bytes_per_us")) return &Scales::memory;
  if (name.ends_with("_l2_bytes")) return &Scales::l2;
  return nullptr;
}

template <class C>
constexpr std::array<double Scales::*, coefficient_count<C>> coefficient_scales = [] {
  std::array<double Scales::*, coefficient_count<C>> scales{};
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = scale_of(coefficient_name(C::names, i));
  return scales;
}();
// A rate is divided by what a time is multiplied with.
template <class C>
constexpr std::array<bool, coefficient_count<C>> coefficient_is_rate = [] {
  std::array<bool, coefficient_count<C>> rates{};
  for (std::size_t i = 0; i < rates.size(); ++i) rates[i] = coefficient_name(C::names, i).ends_with("_per_us");
  return rates;
}();

// Whether a device is the chip that was measured, whatever clock its driver reports. A slice of one has fewer
// multiprocessors. The host has none.
inline bool is_same(const DeviceSpec& measured, const DeviceSpec& device) {
  return device.multiprocessors == 0 || (device.chip == measured.chip && device.chip != Chip::other &&
                                         device.multiprocessors == measured.multiprocessors);
}
Scales scales_between(const DeviceSpec& measured, const DeviceSpec& device);

template <class C>
C scaled(const C& measured, const Scales& scales) {
  auto values = std::bit_cast<CoefficientValues<C>>(measured);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (double Scales::* const scale = coefficient_scales<C>[i])
      values[i] = coefficient_is_rate<C>[i] ? values[i] / (scales.*scale) : values[i] * (scales.*scale);
  return std::bit_cast<C>(values);
}
// What was measured on one chip, on another.
template <class C>
C carried_over(const C& cost, const DeviceSpec& measured, const DeviceSpec& device) {
  return is_same(measured, device) ? cost : scaled(cost, scales_between(measured, device));
}

// A coefficient, or 0 where kernels may start before those in front of them end: programmatic dependent launch.
inline double without_pdl(const DeviceSpec& device, double coefficient) {
  return device.has(feature_pdl) ? 0.0 : coefficient;
}

}  // namespace fl
