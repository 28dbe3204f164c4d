#include <nanobind/stl/string.h>

#include <chrono>
#include <string>

#include "bindings/arrays/objects.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/described_call.h"
#include "device/loaded_code.h"
#include "device/pretended.h"
#include "plan/accumulation_depth.h"
#include "runtime/cache_sizes.h"
#include "runtime/call_watch.h"
#include "runtime/cgroup.h"
#include "runtime/host_memory.h"

namespace fl::py {
namespace {

// (compute capability that the code was compiled for, whether it has the features of that one alone).
nb::tuple loaded_code(const std::string& architectures, int compute_capability, bool only_ptx, bool no_ptx) {
  const LoadedCode code = expected_code(architectures, compute_capability, {only_ptx, no_ptx});
  return nb::make_tuple(code.target, code.features);
}

// What a device of the table answers with FASTLINALG_COMPUTE_CAPABILITY set to `text`.
nb::dict pretended_device(int compute_capability, const std::string& text) {
  const DeviceSpec& h200 = h200_spec();
  DeviceSpec real = spec_of(compute_capability, h200.multiprocessors, h200.clock_khz);
  set_name(real, "GPU");
  const Pretended answer = pretended(real, text);
  return dict_of({{"compute_capability", answer.spec.compute_capability},
                  {"features", answer.spec.features},
                  {"shared_per_block", answer.spec.shared_per_block},
                  {"shared_per_sm", answer.spec.shared_per_sm},
                  {"threads_per_sm", answer.spec.threads_per_sm},
                  {"registers_per_sm", answer.spec.registers_per_sm},
                  {"peak_gflops", answer.spec.peak_gflops()},
                  {"why", answer.why},
                  {"ignored", answer.ignored}});
}

// (processors, bytes) that files under `root` leave a process.
nb::tuple cgroup(const std::string& root) {
  const CgroupLimits limits = cgroup_limits(root);
  return nb::make_tuple(limits.cpus, limits.memory);
}

// What dispatch asks about a product of aligned operands in device memory, for the tests: the largest accumulation
// depth it allows, or none, and for each GPU row its estimate, its depth, or none, and the bytes of its workspace.
nb::tuple sgemm_rules(int64_t m, int64_t n, int64_t k, const char* precision) {
  DescribedCall call{.m = m, .n = n, .k = k};
  call.precision = precision;
  const SgemmArgs p = layout_of<SgemmArgs>(call);
  nb::dict rows;
  for (const auto& row : kernels<SgemmArgs>()) {
    if (!on_cuda(row.needs) || row.legal(p)) continue;
    rows[row.name] =
        nb::make_tuple(row.cost(p, h200_spec()), row.depth ? nb::cast(row.depth(p)) : nb::none(), row.workspace(p));
  }
  const int64_t limit = deepest_allowed(p);
  return nb::make_tuple(limit == any_depth ? nb::none() : nb::cast(limit), rows);
}

}  // namespace

void bind_rules(nb::module_& m) {
  m.def("expected_code", loaded_code, nb::arg("architectures"), nb::arg("compute_capability"),
        nb::arg("only_ptx") = false, nb::arg("no_ptx") = false);
  m.def("pretended", pretended_device, nb::arg("compute_capability"), nb::arg("text"));
  m.def("kept_results", [] {
    const KeptResults kept = kept_results();
    return nb::make_tuple(kept.bytes, kept.most);
  });
  m.def(
      "assume_machine",
      [](std::size_t last_level_cache, std::size_t memory) {
        assume_last_level_cache(last_level_cache);
        assume_memory_size(memory);
      },
      nb::arg("last_level_cache") = 0, nb::arg("memory") = 0);
  m.def("cgroup_limits", cgroup, nb::arg("root"));
  m.def(
      "set_watch_interval", [](int us) { set_watch_interval(std::chrono::microseconds(us)); }, nb::arg("us") = 50'000);
  m.def("sgemm_rules", sgemm_rules, nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("precision") = "accurate");
}

}  // namespace fl::py
