#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>
#include <variant>
#include <vector>

#include "bindings/arrays/objects.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/described_call.h"
#include "core/errors.h"
#include "core/normalise.h"
#include "core/operations.h"
#include "device/hardware.h"
#include "device/pretended.h"
#include "plan/accumulation_depth.h"
#include "table/registry.h"

namespace fl::py {
namespace {

using ShapeRow = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool, std::array<int64_t, 3>,
                            std::array<int64_t, 3>, std::string>;
DescribedCall described(const ShapeRow& row) {
  const auto& [m, n, k, batch, trans_a, trans_b, pads, offsets, precision] = row;
  return {m, n, k, batch, trans_a, trans_b, pads, offsets, precision.c_str()};
}

bool has(nb::handle row, const char* key) { return row.attr("__contains__")(key).is(nb::bool_(true)); }

// The compute capability of the hardware, whatever the device answers as: 10 * major + minor.
int hardware_of_row(nb::handle row) {
  const char* const key = has(row, "hardware_capability") ? "hardware_capability" : "compute_capability";
  const std::string text = nb::cast<std::string>(row[key]);
  const std::size_t dot = text.find('.');
  return 10 * std::stoi(text.substr(0, dot)) + std::stoi(text.substr(dot + 1));
}

// What fl.devices() and a file of measurements say of a device; nothing: an H200.
DeviceSpec spec_of_row(nb::handle row) {
  if (row.is_none()) return h200_spec();
  const auto number = [&](const char* key) { return nb::cast<double>(row[key]); };
  DeviceSpec spec = spec_of(hardware_of_row(row), int(number("sm_count")), int(number("clock_khz")));
  set_name(spec, nb::cast<std::string>(row["name"]).c_str());
  spec.l2_bytes = std::size_t(number("l2_cache"));
  if (has(row, "memory_bytes_per_us")) spec.bytes_per_us = number("memory_bytes_per_us");
  return pretended(spec, nb::cast<std::string>(row["compute_capability"])).spec;
}

std::vector<std::pair<std::string, double>> cost_coefficients(const std::string& op, const std::string& kernel,
                                                              const std::string& chip) {
  return with_operation(op, [&]<class Args>() {
    const CostModel<Args>& model = find<Args>(kernel).model;
    std::vector<std::pair<std::string, double>> found;
    for (int i = 0; i < chip_count; ++i) {
      if (chip != chip_name(Chip(i))) continue;
      for (const double value : model.values(Chip(i)))
        found.emplace_back(coefficient_name(model.names, found.size()), value);
    }
    return found;
  });
}

// Calls of one operation on one device, of which the same is asked of one kernel after the other. Of a call that
// normalises to nothing there is no answer.
class Calls {
  template <class Args>
  using Held = std::vector<std::optional<Args>>;
  template <class Ask>
  auto with_row(const std::string& kernel, Ask&& ask) const {
    return std::visit([&]<class Args>(const Held<Args>& calls) { return ask(find<Args>(kernel), calls); }, calls_);
  }

 public:
  // `symmetric`: products of a matrix and its own transpose.
  Calls(const std::string& op, const std::vector<ShapeRow>& shapes, nb::handle device, bool symmetric)
      : spec_(spec_of_row(device)) {
    with_operation(op, [&]<class Args>() {
      Held<Args> found;
      for (const ShapeRow& shape : shapes) {
        Args p = args_of<Args>(described(shape));
        std::optional<Args>& kept = found.emplace_back();
        if (!normalise(p)) continue;
        if constexpr (requires { p.symmetric; }) p.symmetric = symmetric;
        kept = p;
      }
      calls_ = std::move(found);
    });
  }

  // Microseconds of a kernel on each, or on those that are asked for, by these coefficients or, of a GPU kernel, by
  // those of the device; NaN where the kernel does not take the operands.
  std::vector<double> estimate_us(const std::string& kernel, const std::vector<double>& coefficients,
                                  const std::optional<std::vector<std::size_t>>& at) const {
    return with_row(kernel, [&](const auto& row, const auto& calls) {
      if (!row.cost) throw InvalidValue(kernel + " has no cost model");
      if (coefficients.empty() && !on_cuda(row.needs))
        throw InvalidValue(kernel + " is no GPU kernel: a GPU has no coefficients for it, name some");
      const std::size_t wanted = std::size_t(std::count(row.model.names.begin(), row.model.names.end(), ',')) + 1;
      if (!coefficients.empty() && coefficients.size() != wanted)
        throw InvalidValue("the model of " + kernel + " has " + std::to_string(wanted) + " coefficients, got " +
                           std::to_string(coefficients.size()));
      std::vector<double> us;
      for (std::size_t i = 0; i < (at ? at->size() : calls.size()); ++i) {
        const auto& p = calls.at(at ? (*at)[i] : i);
        if (!p || row.legal(*p)) us.push_back(std::nan(""));
        else us.push_back(coefficients.empty() ? row.cost(*p, spec_) : row.model.us(*p, spec_, coefficients.data()));
      }
      return us;
    });
  }

  // Whether dispatch prefers the kernel's sums to longer ones, on each.
  std::vector<bool> short_sums(const std::string& kernel) const {
    return with_row(kernel, [](const auto& row, const auto& calls) {
      std::vector<bool> found;
      for (const auto& p : calls)
        found.push_back(!p || !row.depth || deepest_allowed(*p) == any_depth || row.depth(*p) <= deepest_allowed(*p));
      return found;
    });
  }

  // Of all that the kernel takes, on the threads that there are.
  std::size_t workspace_bytes(const std::string& kernel) const {
    return with_row(kernel, [](const auto& row, const auto& calls) {
      std::size_t bytes = 0;
      for (const auto& p : calls)
        if (p && !row.legal(*p)) bytes += row.workspace(*p);
      return bytes;
    });
  }

 private:
  DeviceSpec spec_;
  std::variant<Held<SgemmArgs>, Held<SgemvArgs>, Held<TransposeArgs>> calls_;
};

// Why dispatch passes a GPU kernel by on a device that fl.devices() or a file of measurements describes, with all code.
std::string passed_over_on_device(const std::string& op, const std::string& kernel, nb::handle device) {
  const DeviceSpec spec = spec_of_row(device);
  const bool wgmma = spec.has(needs_row(Needs::sm_90a).features);
  return with_operation(op, [&]<class Args>() -> std::string {
    const Kernel<Args>& row = find<Args>(kernel);
    const char* const why = passed_over(row.needs, row.traits, spec, hardware_of_row(device), wgmma);
    return why ? why : "";
  });
}

}  // namespace

void bind_costs(nb::module_& m) {
  m.def("cost_coefficients", cost_coefficients, nb::arg("op"), nb::arg("kernel"), nb::arg("chip") = "h200");
  m.def("passed_over", passed_over_on_device, nb::arg("op"), nb::arg("kernel"), nb::arg("device"));
  if (take_registered<Calls>(m, "CostCalls")) return;
  nb::class_<Calls>(m, "CostCalls")
      .def(nb::init<const std::string&, const std::vector<ShapeRow>&, nb::handle, bool>(), nb::arg("op"),
           nb::arg("shapes"), nb::arg("device") = nb::none(), nb::arg("symmetric") = false)
      .def("workspace_bytes", &Calls::workspace_bytes, nb::arg("kernel"))
      .def("short_sums", &Calls::short_sums, nb::arg("kernel"))
      .def("estimate_us", &Calls::estimate_us, nb::arg("kernel"), nb::arg("coefficients") = std::vector<double>(),
           nb::arg("at") = nb::none());
}

}  // namespace fl::py
