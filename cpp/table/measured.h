// What was measured of each kernel on each chip (cost/measured.def), and how a cost comes of it.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <type_traits>

#include "cost/coefficients.h"
#include "plan/prepacked_operand.h"

namespace fl {

// A cost model is a function of a call, a device and coefficients.
template <auto MODEL>
struct Model;
template <class Call, class C, double (*MODEL)(const Call&, const DeviceSpec&, const C&)>
struct Model<MODEL> {
  using Args = Call;
  using Coefficients = C;
};

// What was measured of a row on a chip: specialised by each line of measured.def.
struct NotMeasured {};
template <class Row, Chip chip>
inline constexpr NotMeasured measured{};

template <class Row, Chip chip>
std::span<const double> values_on() {
  using C = std::remove_cvref_t<decltype(measured<Row, chip>)>;
  if constexpr (std::is_same_v<C, NotMeasured>) return {};
  else {
    static constexpr auto values = std::bit_cast<CoefficientValues<C>>(measured<Row, chip>);
    return values;
  }
}
template <class Row>
std::span<const double> measured_values(Chip chip) {
  switch (chip) {
    case Chip::h200: return values_on<Row, Chip::h200>();
    case Chip::zen4: return values_on<Row, Chip::zen4>();
    case Chip::zen5: return values_on<Row, Chip::zen5>();
    case Chip::neoverse_n1: return values_on<Row, Chip::neoverse_n1>();
    case Chip::other: break;
  }
  return {};
}

// By coefficients of the measured chip that is nearest to the device, which may be the device itself.
template <auto MODEL>
double us_by(const typename Model<MODEL>::Args& p, const DeviceSpec& device, const double* values) {
  CoefficientValues<typename Model<MODEL>::Coefficients> copy;
  std::copy_n(values, copy.size(), copy.begin());
  return MODEL(
      p, device,
      carried_over(std::bit_cast<typename Model<MODEL>::Coefficients>(copy), nearest_measured(device), device));
}
// The chip whose values serve rows that have none of their own on this one.
constexpr Chip nearest_chip(Chip chip) { return chip == Chip::zen5 ? Chip::zen4 : chip; }

// What was measured on the device's own chip, or carried over from the one that is nearest to it.
template <class Row, class C>
C coefficients_on(const DeviceSpec& device) {
  const DeviceSpec& chip = nearest_measured(device);
  std::span<const double> values = measured_values<Row>(chip.chip);
  if (values.empty()) values = measured_values<Row>(nearest_chip(chip.chip));
  CoefficientValues<C> copy;
  std::copy_n(values.data(), copy.size(), copy.begin());
  return carried_over(std::bit_cast<C>(copy), chip, device);
}
template <class Row, auto MODEL>
double cost_on(const typename Model<MODEL>::Args& p, const DeviceSpec& device) {
  return MODEL(p, device, coefficients_on<Row, typename Model<MODEL>::Coefficients>(device));
}

// Of rows that split their operands: by how much less a call costs whose operands are prepacked.
template <class Args>
using SavedUs = double (*)(const Args&, ReadySides, const DeviceSpec&);
template <class Row, auto MODEL>
constexpr SavedUs<typename Model<MODEL>::Args> saved_on = [] {
  using Args = typename Model<MODEL>::Args;
  using C = typename Model<MODEL>::Coefficients;
  if constexpr (requires(Args p, ReadySides ready, C cost) { saved_by_prepacked_us(p, ready, cost); })
    return SavedUs<Args>([](const Args& p, ReadySides ready, const DeviceSpec& device) {
      return saved_by_prepacked_us(p, ready, coefficients_on<Row, C>(device));
    });
  else return SavedUs<Args>(nullptr);
}();

// The same with names, for tools/fit_costs and tests.
template <class Args>
struct CostModel {
  std::string_view names;  // of the coefficients, with commas between
  double (*us)(const Args&, const DeviceSpec&, const double*);
  std::span<const double> (*values)(Chip);  // empty if there is nothing measured
  SavedUs<Args> saved_by_prepacked;         // nullptr for most rows
};
template <class Row, auto MODEL>
constexpr CostModel<typename Model<MODEL>::Args> cost_model{Model<MODEL>::Coefficients::names, us_by<MODEL>,
                                                            measured_values<Row>, saved_on<Row, MODEL>};

}  // namespace fl
