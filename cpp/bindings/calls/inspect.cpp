#include "bindings/calls/inspect.h"

#include <nanobind/stl/string.h>

#include <limits>

#include "bindings/arrays/call_location.h"
#include "bindings/arrays/gil.h"
#include "bindings/calls/call.h"
#include "bindings/calls/options.h"
#include "core/errors.h"
#include "core/operations.h"
#include "device/cpu_peak.h"
#include "device/device_info.h"
#include "device/device_memory.h"
#include "device/hardware.h"
#include "device/pretended.h"
#include "dispatch/dispatch.h"
#include "plan/accumulation_depth.h"
#include "run/constant_operands.h"
#include "run/kernel_state.h"
#include "runtime/cache_sizes.h"
#include "runtime/result_memory.h"
#include "runtime/threading.h"
#include "transfer/device_shares.h"
#include "transfer/out_of_core_plan.h"
#include "transfer/panel_plan.h"

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
  trim_result_memory();
  drop_constant_operands(ordinal);
  cuda::trim(ordinal);
}

void set_memory_limit(nb::handle bytes, nb::handle device) {
  const int64_t limit = to_integer("set_memory_limit", "nbytes", bytes);
  if (limit < 0) throw InvalidValue("the memory limit must be at least 0 bytes, got " + std::to_string(limit));
  cuda::set_memory_limit(to_ordinal("set_memory_limit", device), size_t(limit));
}

// For the tests: (compute capability that the code was compiled for, whether it has the features of that one alone).
nb::tuple expected_code_for_tests(const std::string& architectures, int compute_capability, bool only_ptx,
                                  bool no_ptx) {
  const LoadedCode code = expected_code(architectures, compute_capability, {only_ptx, no_ptx});
  return nb::make_tuple(code.target, code.features);
}

// For the tests: what a device of the table answers with FASTLINALG_COMPUTE_CAPABILITY set to `text`.
nb::dict pretended_for_tests(int compute_capability, const std::string& text) {
  const DeviceSpec& h200 = h200_spec();
  DeviceSpec real = spec_of(compute_capability, h200.multiprocessors, h200.clock_khz);
  set_name(real, "GPU");
  const Pretended answer = pretended(real, text);
  nb::dict row;
  row["compute_capability"] = answer.spec.compute_capability;
  row["features"] = answer.spec.features;
  row["shared_per_block"] = answer.spec.shared_per_block;
  row["shared_per_sm"] = answer.spec.shared_per_sm;
  row["threads_per_sm"] = answer.spec.threads_per_sm;
  row["registers_per_sm"] = answer.spec.registers_per_sm;
  row["peak_gflops"] = answer.spec.peak_gflops();
  row["why"] = answer.why;
  row["ignored"] = answer.ignored;
  return row;
}

nb::tuple block(const Block& x) { return nb::make_tuple(x.problem, x.problems, x.row, x.rows, x.col, x.cols); }

SgemmArgs product_layout(int64_t m, int64_t n, int64_t k, int64_t batch, bool one_a, bool one_b, float beta) {
  return {.m = m,
          .n = n,
          .k = k,
          .batch = batch,
          .beta = beta,
          .a = {nullptr, k, 1, one_a ? 0 : m * k},
          .b = {nullptr, n, 1, one_b ? 0 : k * n},
          .c = {nullptr, n, 1, m * n}};
}

// What dispatch asks about a product of aligned operands in device memory, for the tests: the largest accumulation
// depth it allows, or none, and for each GPU row its estimate, its depth, or none, and the bytes of its workspace.
nb::tuple sgemm_rules(int64_t m, int64_t n, int64_t k, const char* precision) {
  SgemmArgs p = product_layout(m, n, k, 1, false, false, 0.0f);
  p.precision = parse_precision(precision);
  nb::dict rows;
  for (const auto& row : kernels<SgemmArgs>()) {
    if (!on_cuda(row.needs) || row.legal(p)) continue;
    rows[row.name] =
        nb::make_tuple(row.cost(p, h200_spec()), row.depth ? nb::cast(row.depth(p)) : nb::none(), row.workspace(p));
  }
  const int64_t limit = deepest_allowed(p);
  return nb::make_tuple(limit == any_depth ? nb::none() : nb::cast(limit), rows);
}

// One row for all sub-problems, at its costs on an H200.
template <class Args>
KernelFor<Args> always(const Kernel<Args>& row) {
  return {[&row](const Args&) -> const Kernel<Args>& { return row; }, on_cuda(row.needs) ? &h200_spec() : &host_spec()};
}

nb::list loads_of(const PanelPlan<SgemmArgs>& plan) {
  nb::list loads;
  for (const PanelLoad& load : plan.loads) loads.append(nb::make_tuple(int(load.operand), block(load.block)));
  return loads;
}

// How a product of host operands is cut up, for the tests: loads as (operand, block), steps as (loads, block), blocks
// as (problem, problems, row, rows, col, cols). Every step costs what the named row says.
nb::tuple panel_plan(int64_t m, int64_t n, int64_t k, int64_t batch, bool one_a, bool one_b, float beta,
                     const std::string& kernel) {
  const SgemmArgs layout = product_layout(m, n, k, batch, one_a, one_b, beta);
  const auto& row = find<SgemmArgs>(kernel);
  const auto plan = plan_panels<SgemmArgs>(layout, always(row));
  nb::list steps;
  for (const auto& step : plan.steps) steps.append(nb::make_tuple(step.loads, block(step.block)));
  return nb::make_tuple(loads_of(plan), steps);
}

// The same of a matrix times its own transpose: steps also say whether their block is mirrored.
nb::tuple symmetric_panel_plan(int64_t n, int64_t k, int64_t batch, const std::string& kernel) {
  SgemmArgs layout = product_layout(n, n, k, batch, false, false, 0.0f);
  layout.symmetric = true;
  const auto plan = plan_panels<SgemmArgs>(layout, always(find<SgemmArgs>(kernel)));
  nb::list steps;
  for (const auto& step : plan.steps) steps.append(nb::make_tuple(step.loads, block(step.block), step.mirrored));
  return nb::make_tuple(loads_of(plan), steps);
}

// The same of a product shared out between devices: for each its loads as (operand, block, devices that it is passed on
// to) and its steps as (loads, block, loads of each device that it waits for).
nb::list device_shares(int64_t m, int64_t n, int64_t k, int64_t batch, int devices, bool passes_on, bool one_a,
                       bool one_b, float beta, const std::string& kernel) {
  const SgemmArgs layout = product_layout(m, n, k, batch, one_a, one_b, beta);
  const auto plan = plan_panels<SgemmArgs>(layout, always(find<SgemmArgs>(kernel)));
  const auto list = [](const auto& numbers) {
    nb::list result;
    for (const auto number : numbers) result.append(number);
    return result;
  };
  nb::list shares;
  for (const auto& share : share_out(plan, layout, devices, passes_on)) {
    nb::list loads, steps;
    for (std::size_t i = 0; i < share.plan.loads.size(); ++i) {
      const PanelLoad& load = share.plan.loads[i];
      loads.append(nb::make_tuple(int(load.operand), block(load.block), list(share.passed_on[i])));
    }
    for (std::size_t i = 0; i < share.plan.steps.size(); ++i) {
      const auto& step = share.plan.steps[i];
      steps.append(nb::make_tuple(step.loads, block(step.block), list(share.received[i])));
    }
    shares.append(nb::make_tuple(loads, steps));
  }
  return shares;
}

// How a call that has so much device memory is cut up, for the tests: its shape, and its tiles in their order.
template <class Args>
nb::tuple tile_plan(const Args& layout, std::size_t memory, const Kernel<Args>& row) {
  const auto plan = plan_out_of_core<Args>(layout, memory, always(row));
  nb::list tiles;
  for (const OutOfCoreTile& t : plan.tiles) {
    nb::dict tile;
    tile["problem"] = nb::make_tuple(t.problem, t.problems);
    tile["row"] = nb::make_tuple(t.row, t.rows);
    tile["col"] = nb::make_tuple(t.col, t.cols);
    tile["depth"] = nb::make_tuple(t.depth, t.depths);
    tile["slots"] = nb::make_tuple(t.input_slot[0], t.input_slot[1], t.output_slot);
    tile["load"] = nb::make_tuple(t.load[0], t.load[1]);
    tile["first"] = t.first;
    tile["last"] = t.last;
    tile["slices"] = nb::list();
    for (const int64_t row : t.slices) nb::borrow<nb::list>(tile["slices"]).append(row);
    tiles.append(tile);
  }
  const OutOfCoreShape& s = plan.shape;
  return nb::make_tuple(nb::make_tuple(s.bytes, s.input_slots[0], s.input_slots[1], s.output_slots, s.slice_rows),
                        tiles);
}

nb::tuple sgemm_tiles(int64_t m, int64_t n, int64_t k, int64_t batch, std::size_t memory, bool one_a, bool one_b,
                      float beta, const std::string& kernel) {
  return tile_plan(product_layout(m, n, k, batch, one_a, one_b, beta), memory, find<SgemmArgs>(kernel));
}
nb::tuple transpose_tiles(int64_t m, int64_t n, int64_t batch, std::size_t memory) {
  const TransposeArgs layout{.m = m, .n = n, .batch = batch, .a = {nullptr, n, 1, m * n}, .b = {nullptr, m, 1, m * n}};
  return tile_plan(layout, memory, find<TransposeArgs>("reference"));
}
nb::tuple sgemv_tiles(int64_t m, int64_t n, int64_t batch, std::size_t memory) {
  const SgemvArgs layout{
      .m = m, .n = n, .batch = batch, .a = {nullptr, n, 1, m * n}, .x = {nullptr, 1, n}, .y = {nullptr, 1, m}};
  return tile_plan(layout, memory, find<SgemvArgs>("warp_per_row"));
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
  m.def("cuda_is_available", [] { return cuda::device_count() > 0; });
  m.def("expected_code", expected_code_for_tests, nb::arg("architectures"), nb::arg("compute_capability"),
        nb::arg("only_ptx") = false, nb::arg("no_ptx") = false);
  m.def("pretended", pretended_for_tests, nb::arg("compute_capability"), nb::arg("text"));
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
  m.def("cuda_memory_info", memory_info, nb::arg("device").none());
  m.def("cuda_trim", trim, nb::arg("device").none());
  m.def("cuda_set_memory_limit", set_memory_limit, nb::arg("bytes").none(), nb::arg("device").none());
  m.def("panel_plan", panel_plan, nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("batch") = 1,
        nb::arg("one_a") = false, nb::arg("one_b") = false, nb::arg("beta") = 0.0f,
        nb::arg("kernel") = "double_buffered");
  m.def("symmetric_panel_plan", symmetric_panel_plan, nb::arg("n"), nb::arg("k"), nb::arg("batch") = 1,
        nb::arg("kernel") = "double_buffered");
  m.def("device_shares", device_shares, nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("batch"), nb::arg("devices"),
        nb::arg("passes_on") = true, nb::arg("one_a") = false, nb::arg("one_b") = false, nb::arg("beta") = 0.0f,
        nb::arg("kernel") = "double_buffered");
  m.def("sgemm_rules", sgemm_rules, nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("precision") = "accurate");
  m.def("sgemm_tiles", sgemm_tiles, nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("batch"), nb::arg("memory"),
        nb::arg("one_a") = false, nb::arg("one_b") = false, nb::arg("beta") = 0.0f,
        nb::arg("kernel") = "double_buffered");
  m.def("sgemv_tiles", sgemv_tiles, nb::arg("m"), nb::arg("n"), nb::arg("batch"), nb::arg("memory"));
  m.def("transpose_tiles", transpose_tiles, nb::arg("m"), nb::arg("n"), nb::arg("batch"), nb::arg("memory"));
  m.def("cpu_peak_gflops", cpu_peak_gflops, nb::arg("threads"), nb::call_guard<GilReleased>());
}

}  // namespace fl::py
