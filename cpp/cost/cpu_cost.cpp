#include "cost/cpu_cost.h"

#include <algorithm>

#include "plan/triangle_cut.h"

namespace fl {

namespace {

double with_threads(double us) { return us <= alone_us ? us : alone_us + (us - alone_us) / double(num_threads()); }

std::size_t bytes_of(const PackLayout& layout, bool shared, const SgemmArgs& p) {
  const int64_t slots = shared ? num_threads() : std::min<int64_t>(p.batch, num_threads());
  return std::size_t(layout.counters + slots * layout.floats) * sizeof(float);
}

// A panel that is not full takes the time of a whole or half one.
double filled_columns(int64_t n, const CpuBlocking& blocking) {
  return double(ceil_div(n, blocking.NR / 2) * (blocking.NR / 2));
}

}  // namespace

std::size_t packed_bytes(const SgemmArgs& p, const CpuBlocking& blocking) {
  if (p.k == 0) return 0;
  const auto bytes = [&](const auto& cut) { return bytes_of(pack_layout(p, blocking, cut), cut.shared, p); };
  return p.symmetric ? bytes(triangle_cut(p, blocking, num_threads()))
                     : bytes(cut_for_threads(p, blocking, num_threads()));
}

std::size_t term_workspace(const SgemmArgs& p) {
  if (p.k < least_term_depth) return small_workspace(p);
  const Cut cut = cut_for_threads(p, term_blocking, num_threads());
  return std::max(small_workspace(p), bytes_of(term_layout(p, cut), cut.shared, p));
}

std::size_t gemv_workspace(const SgemvArgs& p) {
  const GemvPlan plan = gemv_plan(p, num_threads());
  return plan.workspace_floats * sizeof(float) * std::size_t(plan.across_batch ? num_threads() : 1);
}

std::size_t transpose_workspace(const TransposeArgs& p) {
  const bool stages = (p.a.cs == 1 && p.b.cs == 1) || (p.a.rs == 1 && p.b.rs == 1);
  return stages ? stage_bytes * std::size_t(num_threads()) : 0;
}

double loop_us(const SgemmArgs& p, const DeviceSpec&, const LoopCost& cost) {
  return cost.start_us + 2.0 * double(p.m) * double(p.n) * double(p.k) * double(p.batch) / cost.flops_per_us;
}

double packed_us(const SgemmArgs& p, const CpuBlocking& blocking, const PackedCost& cost) {
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  double tiles = double(ceil_div(p.m, blocking.MR)) * double(ceil_div(p.n, blocking.NR));
  double columns = filled_columns(p.n, blocking);
  if (p.symmetric) {  // those left of the diagonal, and the tiles that cross it
    const double computed = std::min(1.0, (n / 2 + double(blocking.MR + blocking.NR) / 2) / n);
    columns *= computed, tiles *= computed;
  }
  double us =
      (2.0 * m * columns * k + cost.pack_a * m * k + cost.pack_b * n * k) / cost.flops_per_us + cost.tile_us * tiles;
  us *= double(p.batch);
  return cost.start_us + with_threads(us);
}

double term_us(const SgemmArgs& p, const DeviceSpec&, const TermCost& cost) {
  SgemmArgs whole = p;  // a tile takes its time however full it is, and there is no triangle
  whole.symmetric = false;
  whole.m = ceil_div(p.m, term_step / 2) * (term_step / 2), whole.k = ceil_div(p.k, term_step) * term_step;
  const PackedCost packed{cost.start_us, cost.flops_per_us, cost.pack_a, cost.pack_b, cost.tile_us};
  return packed_us(whole, term_blocking, packed) * (num_threads() > 1 ? cost.several : 1.0);
}

double small_us(const SgemmArgs& p, const CpuBlocking& blocking, const SmallCost& cost) {
  const bool transposed = few_columns(p);
  const int64_t rows = transposed ? p.n : p.m, columns = transposed ? p.m : p.n;
  const bool contiguous = (transposed ? p.a.rs : p.b.cs) == 1;
  const double m = double(rows), n = double(columns), k = double(p.k);
  const double panels = double(ceil_div(columns, blocking.NR));
  const double a_bytes = 4.0 * m * k, b_bytes = 4.0 * n * k, c_bytes = 4.0 * m * n;
  double us = 2.0 * m * filled_columns(columns, blocking) * k / cost.flops_per_us + cost.row_us * panels * (m + 7);
  if (contiguous && rows > 12 && b_bytes > 512 * 1024) us *= 1 + cost.by_panels;
  if (!contiguous) us += cost.pack_b * n * k / cost.flops_per_us;
  else if ((rows > 8 && b_bytes > 600e3 && (transposed ? p.a.cs : p.b.rs) % 256 == 0) ||
           (rows > (transposed ? 8 : 4) && b_bytes > 16e6))
    us += b_bytes / cost.far_b_bytes_per_us;
  if (rows <= 4 && b_bytes > 64e3) us = std::max(us, b_bytes / cost.few_rows_bytes_per_us);
  if (a_bytes > 1e6) us += panels * a_bytes / cost.a_again_bytes_per_us;
  if (c_bytes > 4e6 && panels > 8) us += c_bytes / cost.c_bytes_per_us;
  us *= double(p.batch);
  return cost.start_us + with_threads(us);
}

double rows_us(const SgemmArgs& p, const DeviceSpec&, const RowsCost& cost) {
  const bool transposed = p.n < p.m;
  const bool contiguous = (transposed ? p.a.rs : p.b.cs) == 1;
  const int64_t rows = transposed ? p.n : p.m, together = rows < 4 ? rows : 4;
  const double columns = double(transposed ? p.m : p.n), bytes = 4.0 * columns * double(p.k);
  const double slower = !contiguous     ? cost.strided + cost.strided_row * double(together)
                        : together == 1 ? cost.one_row
                                        : cost.each_row * double(together);
  double us =
      (bytes * slower * (rows > 4 ? cost.again : 1.0) / cost.bytes_per_us + cost.again_us) * double(ceil_div(rows, 4));
  if (!contiguous && columns < 8) us += 1e-3 * columns * double(p.k);  // too few for a vector: one sum after the other
  if (!few_columns(p)) us += 1e-3 * cost.sum_ns * double(p.m) * double(p.n);  // of few, small_us() leaves it out too
  return cost.start_us + with_threads(us * double(p.batch));
}

double gemv_us(const SgemvArgs& p, const DeviceSpec&, const GemvCost& cost) {
  const double us = (4.0 * double(p.m) * double(p.n) / cost.bytes_per_us + double(p.m) * cost.row_us) * double(p.batch);
  return cost.start_us + with_threads(us);
}
double gemv_loop_us(const SgemvArgs& p, const DeviceSpec&, const GemvCost& cost) {
  return cost.start_us +
         (4.0 * double(p.m) * double(p.n) / cost.bytes_per_us + double(p.m) * cost.row_us) * double(p.batch);
}

double transpose_us(const TransposeArgs& p, const DeviceSpec&, const CopyLoopCost& cost) {
  return cost.start_us + with_threads(8.0 * double(p.m) * double(p.n) * double(p.batch) / cost.bytes_per_us);
}
double transpose_loop_us(const TransposeArgs& p, const DeviceSpec&, const CopyLoopCost& cost) {
  return cost.start_us + 8.0 * double(p.m) * double(p.n) * double(p.batch) / cost.bytes_per_us;
}

}  // namespace fl
