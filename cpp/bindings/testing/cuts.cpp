#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bindings/arrays/objects.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/described_call.h"
#include "core/device_spec.h"
#include "table/registry.h"
#include "transfer/device_shares.h"
#include "transfer/out_of_core_plan.h"
#include "transfer/panel_plan.h"

namespace fl::py {
namespace {

nb::tuple block(const Block& x) { return nb::make_tuple(x.problem, x.problems, x.row, x.rows, x.col, x.cols); }

SgemmArgs product_layout(int64_t m, int64_t n, int64_t k, int64_t batch, bool one_a, bool one_b, float beta) {
  SgemmArgs p = layout_of<SgemmArgs>({.m = m, .n = n, .k = k, .batch = batch});
  if (one_a) p.a.bs = 0;
  if (one_b) p.b.bs = 0;
  p.beta = beta;
  return p;
}

// One row for all sub-problems, at its costs on an H200.
template <class Args>
KernelFor<Args> always(const Kernel<Args>& row) {
  return {[&row](const Args&) -> const Kernel<Args>& { return row; }, on_cuda(row.needs) ? &h200_spec() : &host_spec()};
}

// How a product of host operands is cut up, for the tests: loads as (operand, block), steps as (loads, block), blocks
// as (problem, problems, row, rows, col, cols). Every step costs what the named row says. `symmetric`: a matrix times
// its own transpose, where steps also say whether their block is mirrored.
nb::tuple panel_plan(int64_t m, int64_t n, int64_t k, int64_t batch, bool one_a, bool one_b, float beta,
                     const std::string& kernel, bool symmetric) {
  SgemmArgs layout = product_layout(m, n, k, batch, one_a, one_b, beta);
  layout.symmetric = symmetric;
  const auto plan = plan_panels<SgemmArgs>(layout, always(find<SgemmArgs>(kernel)));
  nb::list loads, steps;
  for (const PanelLoad& load : plan.loads) loads.append(nb::make_tuple(int(load.operand), block(load.block)));
  for (const auto& step : plan.steps)
    steps.append(symmetric ? nb::make_tuple(step.loads, block(step.block), step.mirrored)
                           : nb::make_tuple(step.loads, block(step.block)));
  return nb::make_tuple(loads, steps);
}

// The same of a product shared out between devices: for each its loads as (operand, block, devices that it is passed on
// to) and its steps as (loads, block, loads of each device that it waits for).
nb::list device_shares(int64_t m, int64_t n, int64_t k, int64_t batch, int devices, bool passes_on, bool one_a,
                       bool one_b, float beta, const std::string& kernel) {
  const SgemmArgs layout = product_layout(m, n, k, batch, one_a, one_b, beta);
  const auto plan = plan_panels<SgemmArgs>(layout, always(find<SgemmArgs>(kernel)));
  nb::list shares;
  for (const auto& share : share_out(plan, layout, devices, passes_on)) {
    nb::list loads, steps;
    for (std::size_t i = 0; i < share.plan.loads.size(); ++i) {
      const PanelLoad& load = share.plan.loads[i];
      loads.append(nb::make_tuple(int(load.operand), block(load.block), share.passed_on[i]));
    }
    for (std::size_t i = 0; i < share.plan.steps.size(); ++i) {
      const auto& step = share.plan.steps[i];
      steps.append(nb::make_tuple(step.loads, block(step.block), share.received[i]));
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
    tiles.append(dict_of({{"problem", nb::make_tuple(t.problem, t.problems)},
                          {"row", nb::make_tuple(t.row, t.rows)},
                          {"col", nb::make_tuple(t.col, t.cols)},
                          {"depth", nb::make_tuple(t.depth, t.depths)},
                          {"slots", nb::make_tuple(t.input_slot[0], t.input_slot[1], t.output_slot)},
                          {"load", nb::make_tuple(t.load[0], t.load[1])},
                          {"first", t.first},
                          {"last", t.last},
                          {"slices", nb::cast(t.slices)}}));
  }
  const OutOfCoreShape& s = plan.shape;
  return nb::make_tuple(nb::make_tuple(s.bytes, s.input_slots[0], s.input_slots[1], s.output_slots, s.slice_rows),
                        tiles);
}

nb::tuple sgemm_tiles(int64_t m, int64_t n, int64_t k, int64_t batch, std::size_t memory, bool one_a, bool one_b,
                      float beta, const std::string& kernel) {
  return tile_plan(product_layout(m, n, k, batch, one_a, one_b, beta), memory, find<SgemmArgs>(kernel));
}
template <class Args>
nb::tuple tiles_of_matrix(int64_t m, int64_t n, int64_t batch, std::size_t memory, const std::string& kernel) {
  return tile_plan(layout_of<Args>({.m = m, .n = n, .k = 0, .batch = batch}), memory, find<Args>(kernel));
}

}  // namespace

void bind_cuts(nb::module_& m) {
  m.def("panel_plan", panel_plan, nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("batch") = 1,
        nb::arg("one_a") = false, nb::arg("one_b") = false, nb::arg("beta") = 0.0f,
        nb::arg("kernel") = "double_buffered", nb::arg("symmetric") = false);
  m.def("device_shares", device_shares, nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("batch"), nb::arg("devices"),
        nb::arg("passes_on") = true, nb::arg("one_a") = false, nb::arg("one_b") = false, nb::arg("beta") = 0.0f,
        nb::arg("kernel") = "double_buffered");
  m.def("sgemm_tiles", sgemm_tiles, nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("batch"), nb::arg("memory"),
        nb::arg("one_a") = false, nb::arg("one_b") = false, nb::arg("beta") = 0.0f,
        nb::arg("kernel") = "double_buffered");
  m.def("sgemv_tiles", tiles_of_matrix<SgemvArgs>, nb::arg("m"), nb::arg("n"), nb::arg("batch"), nb::arg("memory"),
        nb::arg("kernel") = "warp_per_row");
  m.def("transpose_tiles", tiles_of_matrix<TransposeArgs>, nb::arg("m"), nb::arg("n"), nb::arg("batch"),
        nb::arg("memory"), nb::arg("kernel") = "reference");
}

}  // namespace fl::py
