#include "bindings/calls/bind.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>

#include <limits>

#include "bindings/arrays/array.h"
#include "bindings/arrays/call_location.h"
#include "bindings/arrays/gil.h"
#include "bindings/calls/logging.h"
#include "bindings/calls/options.h"
#include "core/errors.h"
#include "core/operations.h"
#include "device/device_info.h"
#include "device/device_memory.h"
#include "device/hardware.h"
#include "device/pretended.h"
#include "run/constant_operands.h"
#include "run/ignored_settings.h"
#include "run/kernel_state.h"
#include "runtime/huge_pages.h"
#include "runtime/result_memory.h"
#include "runtime/threading.h"

namespace fl::py {
namespace nb = nanobind;
namespace {

std::string tile_text(const Traits& traits) {
  return traits.tile_rows ? std::to_string(traits.tile_rows) + "x" + std::to_string(traits.tile_cols) : "";
}

template <class Args>
nb::dict traits_row(const Kernel<Args>& kernel, const KernelState& state) {
  const Traits& traits = kernel.traits;
  nb::dict row;
  row["strict"] = traits.strict;
  row["ladder"] = traits.ladder;
  row["tile"] = tile_text(traits);
  row["terms"] = terms_name(traits.terms);
  row["split_k"] = traits.split_k;
  row["cluster_k"] = traits.cluster_k;
  row["stream_k"] = traits.stream_k;
  row["tma"] = traits.tma;
  row["addend"] = traits.addend;
  row["triangle"] = traits.triangle;
  row["reproducible"] = traits.reproducible;
  nb::list chips;
  for (const char* chip : state.measured_on) chips.append(chip);
  row["measured_on"] = nb::tuple(chips);
  return row;
}

template <class Args>
nb::list kernel_rows() {
  nb::list rows;
  for (const auto& kernel : fl::kernels<Args>()) {
    nb::dict row;
    const KernelState state = state_of(kernel);
    row["name"] = kernel.name;
    row["device"] = side_of(kernel.needs);
    row["needs"] = needs_name(kernel.needs);
    row["available"] = state.reason.empty();
    row["reason"] = state.reason;
    row["passed_over"] = state.passed_over;
    row["blurb"] = kernel.blurb;
    row["traits"] = traits_row(kernel, state);
    rows.append(row);
  }
  return rows;
}

nb::list kernel_table(nb::handle given) {
  nb::str name;
  if (!nb::try_cast(given, name)) throw InvalidType("op must be the name of an operation, got " + shown(given));
  const std::string op = text(name);
  return with_operation(op, []<class Args>() { return kernel_rows<Args>(); });
}

nb::tuple operations() {
  nb::list names;
  for_each_operation([&]<class Args>() { names.append(Operation<Args>::name); });
  return nb::tuple(names);
}

nb::dict info() {
  nb::dict cpu, gpu, all;
  cpu["isa"] = instruction_set();
  cpu["threads"] = num_threads();
  cpu["max_threads"] = max_threads();
  const bool found = cuda::device_count() > 0;
  gpu["available"] = found;
  gpu["code"] = found ? 0 : cuda::unavailable().code;
  gpu["name"] = found ? "" : cuda::unavailable().name;
  gpu["message"] = found ? "" : cuda::unavailable().message;
  gpu["missing_code"] = missing_code();
  gpu["driver"] = cuda::driver_version();
  gpu["runtime"] = cuda::runtime_version();
  all["version"] = FASTLINALG_VERSION;
  all["cuda_built"] = cuda::runtime_version() != 0;
  all["architectures"] = cuda::built_architectures();
  all["cpu"] = cpu;
  all["cuda"] = gpu;
  nb::list unusable;
  for (const std::string& line : unusable_settings()) unusable.append(any_text(line));
  all["unusable_settings"] = unusable;
  return all;
}

nb::list devices() {
  nb::list rows;
  for (int i = 0; i < cuda::device_count(); ++i) {
    const auto& device = cuda::device_info(i);
    nb::dict row;
    row["ordinal"] = device.ordinal;
    const DeviceSpec& spec = device.spec;
    row["name"] = spec.name;
    row["compute_capability"] = capability_text(spec.compute_capability);
    row["hardware_capability"] = capability_text(device.compute_capability);
    row["pretended"] = device.pretended.empty() ? device.ignored : device.pretended;
    row["sm_count"] = spec.multiprocessors;
    row["clock_khz"] = spec.clock_khz;
    row["memory"] = device.memory;
    row["memory_bytes_per_us"] = spec.bytes_per_us;
    row["l2_cache"] = spec.l2_bytes;
    row["shared_per_block"] = spec.shared_per_block;
    row["peak_gflops"] = spec.peak_gflops();
    row["costs_from"] = chip_name(nearest_measured(spec).chip);
    rows.append(row);
  }
  return rows;
}

int to_ordinal(const char* function, nb::handle device) {
  const int64_t ordinal = to_integer(function, "device", device);
  if (ordinal < 0 || ordinal > std::numeric_limits<int>::max())
    throw InvalidValue(std::string(function) + ": device must be the ordinal of a CUDA device, got " +
                       std::to_string(ordinal));
  return int(ordinal);
}

nb::dict memory_info(nb::handle device) {
  const int ordinal = to_ordinal("memory_info", device);
  const auto memory = cuda::memory_info(ordinal);
  nb::dict row;
  row["used"] = memory.used;
  row["reserved"] = memory.reserved;
  row["limit"] = memory.limit;
  row["free"] = memory.free;
  row["total"] = memory.total;
  row["pinned"] = memory.pinned;
  row["splits"] = constant_operand_bytes(ordinal);
  row["results"] = kept_results().bytes;
  return row;
}

void trim(nb::handle device) {
  const int ordinal = to_ordinal("trim", device);
  drop_kept_operands();
  const GilReleased released;
  trim_kept_memory();
  if (cuda::device_count() == 0) return;
  drop_constant_operands(ordinal);
  cuda::trim(ordinal);
}

void set_memory_limit(nb::handle bytes, nb::handle device) {
  const int64_t limit = to_integer("set_memory_limit", "nbytes", bytes);
  if (limit < 0) throw InvalidValue("the memory limit must be at least 0 bytes, got " + std::to_string(limit));
  const int ordinal = to_ordinal("set_memory_limit", device);
  if (cuda::device_count() > 0) cuda::set_memory_limit(ordinal, size_t(limit));
}

// The file of the library that this module has loaded, by the address of one of its functions: no name would say which
// copy that is.
std::string library_path() {
  Dl_info found{};
  if (!dladdr(reinterpret_cast<const void*>(num_threads), &found))
    throw std::runtime_error("the loader knows no file of the library");
  return found.dli_fname;
}

}  // namespace

void bind_inspection(nb::module_& m) {
  m.def("kernels", kernel_table, nb::arg("op").none());
  m.def("operations", operations);
  m.def("info", info);
  m.def("devices", devices);
  m.def("get_num_threads", num_threads);
  m.def(
      "set_num_threads", [](nb::handle n) { set_num_threads(to_integer("set_num_threads", "n", n)); },
      nb::arg("n").none());
  m.def("max_threads", max_threads);
  m.attr("most_threads") = most_threads;
  m.def("cuda_is_available", [] { return cuda::device_count() > 0; });
  m.def("cuda_memory_info", memory_info, nb::arg("device").none());
  m.def("cuda_trim", trim, nb::arg("device").none());
  m.def("cuda_set_memory_limit", set_memory_limit, nb::arg("bytes").none(), nb::arg("device").none());
  m.def("library_path", library_path);
  m.def("cpu_peak_gflops", cpu_peak_gflops, nb::arg("threads"), nb::call_guard<GilReleased>());
}

}  // namespace fl::py
