#include "bindings/calls/bind.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <mutex>

#include "bindings/arrays/objects.h"
#include "bindings/calls/described_call.h"
#include "bindings/calls/logging.h"
#include "core/normalise.h"
#include "device/device_info.h"
#include "dispatch/dispatch.h"
#include "dispatch/tuning.h"
#include "runtime/fork.h"

namespace fl::py {
namespace {

std::atomic<bool> loaded{false};
std::atomic<const std::string*> last_complaint{nullptr};  // never freed: a table is read about once in a process

std::string load(const TuningFile& file) {
  std::string complaint = load_tuning(file);
  last_complaint = complaint.empty() ? nullptr : new const std::string(complaint);
  loaded = true;
  return complaint;
}

// Reading holds no Python object and asks for none, so a thread may wait here with the GIL.
std::string load_once() {
  static constinit PerProcess<std::once_flag> once;
  std::string complaint;
  std::call_once(once.get(), [&] {
    if (!loaded) complaint = load(tuning_file());
  });
  return complaint;
}

std::string table_in_use() {
  std::string table = tuning_source({Device::cpu});
  for (int i = 0; i < cuda::device_count() && table.empty(); ++i) table = tuning_source({Device::cuda, i});
  return table;
}

nb::dict tuning_state() {
  ensure_tuned();
  const std::string* const complaint = last_complaint;
  return dict_of({{"path", any_text(tuning_file().path)},
                  {"in_use", any_text(table_in_use())},
                  {"complaint", any_text(complaint ? *complaint : "")}});
}

// ---------------------------------------------------------------- what the rules say
using Estimates = std::vector<std::pair<std::string, double>>;

template <class Args>
Estimates estimates(Args args, Device device) {
  Estimates found;
  if (!normalise(args)) return found;
  for (const auto& row : kernels<Args>())
    if (serves(args, device, row.name)) found.emplace_back(row.name, row.cost(args, spec_of(device)));
  return found;
}

Estimates rule_estimates(const std::string& op, int64_t m, int64_t n, int64_t k, int64_t batch, bool trans_a,
                         bool trans_b, const char* precision, const char* device) {
  const DescribedCall call{m, n, k, batch, trans_a, trans_b, {}, {}, precision};
  return with_operation(op, [&]<class Args>() { return estimates(args_of<Args>(call), parse_device(device)); });
}

}  // namespace

void ensure_tuned() {
  if (loaded.load(std::memory_order_acquire)) return;
  const std::string complaint = load_once();
  if (!complaint.empty()) warn(complaint);
}

void bind_tuning(nb::module_& m) {
  m.def("tuning_path", [] { return tuning_file().path; });
  m.def("load_tuning", [](const std::string& path) { return load({path, TuningFile::caller}); }, nb::arg("path"));
  m.def("tuning_state", tuning_state);
  m.def("clear_tuning", [] { set_tuning({}), loaded = true; });
  m.def("cpu_name", cpu_name);
  m.def("tuned_name", tuned_name, nb::arg("device"));
  m.def("rule_estimates", rule_estimates, nb::arg("op"), nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("batch"),
        nb::arg("trans_a"), nb::arg("trans_b"), nb::arg("precision"), nb::arg("device"));
}

}  // namespace fl::py
