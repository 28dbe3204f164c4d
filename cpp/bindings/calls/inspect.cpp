#include "bindings/calls/bind.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>

#include "bindings/arrays/array.h"
#include "bindings/arrays/call_location.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/objects.h"
#include "bindings/calls/logging.h"
#include "bindings/calls/options.h"
#include "core/errors.h"
#include "core/operations.h"
#include "device/device_info.h"
#include "device/device_memory.h"
#include "device/hardware.h"
#include "device/pretended.h"
#include "run/constant_operands.h"
#include "run/inspection.h"
#include "runtime/host_memory.h"
#include "runtime/huge_pages.h"
#include "runtime/threading.h"

namespace fl::py {
namespace {

std::string tile_text(const Traits& traits) {
  return traits.tile_rows ? std::to_string(traits.tile_rows) + "x" + std::to_string(traits.tile_cols) : "";
}

template <class Args>
nb::dict traits_row(const Kernel<Args>& kernel, const KernelState& state) {
  const Traits& traits = kernel.traits;
  return dict_of({{"strict", traits.strict},
                  {"ladder", traits.ladder},
                  {"tile", tile_text(traits)},
                  {"terms", terms_name(traits.terms)},
                  {"split_k", traits.split_k},
                  {"cluster_k", traits.cluster_k},
                  {"stream_k", traits.stream_k},
                  {"tma", traits.tma},
                  {"addend", traits.addend},
                  {"triangle", traits.triangle},
                  {"reproducible", traits.reproducible},
                  {"measured_on", nb::tuple(nb::cast(state.measured_on))}});
}

template <class Args>
nb::list kernel_rows() {
  nb::list rows;
  for (const auto& kernel : fl::kernels<Args>()) {
    const KernelState state = state_of(kernel);
    rows.append(dict_of({{"name", kernel.name},
                         {"device", side_of(kernel.needs)},
                         {"needs", needs_name(kernel.needs)},
                         {"available", state.reason.empty()},
                         {"reason", state.reason},
                         {"passed_over", state.passed_over},
                         {"blurb", kernel.blurb},
                         {"traits", traits_row(kernel, state)}}));
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
  const bool found = cuda::device_count() > 0;
  nb::list unusable;
  for (const std::string& line : unusable_settings()) unusable.append(any_text(line));
  const nb::dict cpu =
      dict_of({{"isa", instruction_set()}, {"threads", num_threads()}, {"max_threads", max_threads()}});
  const nb::dict gpu = dict_of({{"available", found},
                                {"code", found ? 0 : cuda::unavailable().code},
                                {"name", found ? "" : cuda::unavailable().name},
                                {"message", found ? "" : cuda::unavailable().message},
                                {"missing_code", missing_code()},
                                {"driver", cuda::driver_version()},
                                {"runtime", cuda::runtime_version()}});
  return dict_of({{"version", FASTLINALG_VERSION},
                  {"cuda_built", cuda::runtime_version() != 0},
                  {"architectures", cuda::built_architectures()},
                  {"cpu", cpu},
                  {"cuda", gpu},
                  {"unusable_settings", unusable}});
}

nb::list devices() {
  nb::list rows;
  for (int i = 0; i < cuda::device_count(); ++i) {
    const auto& device = cuda::device_info(i);
    const DeviceSpec& spec = device.spec;
    rows.append(dict_of({{"ordinal", device.ordinal},
                         {"name", spec.name},
                         {"compute_capability", capability_text(spec.compute_capability)},
                         {"hardware_capability", capability_text(device.compute_capability)},
                         {"pretended", device.pretended.empty() ? device.ignored : device.pretended},
                         {"sm_count", spec.multiprocessors},
                         {"clock_khz", spec.clock_khz},
                         {"memory", device.memory},
                         {"memory_bytes_per_us", spec.bytes_per_us},
                         {"l2_cache", spec.l2_bytes},
                         {"shared_per_block", spec.shared_per_block},
                         {"peak_gflops", spec.peak_gflops()},
                         {"costs_from", chip_name(nearest_measured(spec).chip)}}));
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
  return dict_of({{"used", memory.used},
                  {"reserved", memory.reserved},
                  {"limit", memory.limit},
                  {"free", memory.free},
                  {"total", memory.total},
                  {"pinned", memory.pinned},
                  {"splits", constant_operand_bytes(ordinal)},
                  {"results", kept_results().bytes}});
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
