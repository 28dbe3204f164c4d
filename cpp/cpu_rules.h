// The rules of the CPU rows of the kernel table; see rules.h for what a rule is.
// Costs are microseconds on the build machine (AMD Zen 4, 118 GFLOP/s a core); MFLOPS and MBPS are what a row reaches there.
#pragma once

#include "cpu_blocking.h"
#include "gemv_plan.h"
#include "threading.h"

namespace fl {

// How many times faster a call of so many operations is for its threads. A second thread pays from about 10 us on.
double thread_gain(double one_thread_us);

// A product with one column is always a matrix-vector product, whose sums have an order of their own: were the choice to
// depend on the number of rows, a slice of A would give other bits than the whole.
constexpr double not_for_columns(const SgemmArgs& p) { return p.n == 1 ? 1e6 : 0.0; }
// A panel that is not full takes the time of a whole or half one.
constexpr double filled_columns(int64_t n, const CpuBlocking& blocking) {
  return double(ceil_div(n, blocking.NR / 2) * (blocking.NR / 2));
}

template <CpuBlocking blocking>
int packed_slots(const SgemmArgs& p) {
  const Grid grid = task_grid(p, blocking, num_threads());
  const int64_t tasks = grid.rows * grid.columns * p.batch;
  return tasks < num_threads() ? int(tasks) : num_threads();
}
template <CpuBlocking blocking>
std::size_t packed_workspace(const SgemmArgs& p) {
  return p.k == 0 ? 0 : std::size_t(packed_slots<blocking>(p)) * blocking.slot_bytes();
}
std::size_t gemv_workspace(const SgemvArgs& p);
std::size_t column_workspace(const SgemmArgs& p);
std::size_t transpose_workspace(const TransposeArgs& p);

// The products at MFLOPS on each thread, and both operands packed: 23 and 11 operations' worth of time for an element.
template <CpuBlocking blocking, int MFLOPS>
double packed_cost(const SgemmArgs& p) {
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  const double us = (2.0 * m * filled_columns(p.n, blocking) * k + 23.0 * m * k + 11.0 * n * k) * double(p.batch) / MFLOPS;
  return 0.4 + us / thread_gain(us) + not_for_columns(p);
}
// Unpacked: rows of B that several strips of A read should be near; A is read again for every panel of B.
template <CpuBlocking blocking, int MFLOPS>
double small_cost(const SgemmArgs& call) {
  const SgemmArgs p = few_columns(call) ? transposed(call) : call;
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  const double panels = double(ceil_div(p.n, blocking.NR)), tiles = panels * double(ceil_div(p.m, 8));
  const double a_bytes = 4.0 * m * k, b_bytes = 4.0 * n * k;
  double us = 2.0 * m * filled_columns(p.n, blocking) * k / MFLOPS + 0.02 * tiles;
  if (p.b.cs != 1) us += 23.0 * n * k / MFLOPS;
  else if (b_bytes > 600e3 && p.m > 8) us += b_bytes / 10e3;
  if (a_bytes > 1e6) us += panels * a_bytes / 30e3;
  us *= double(p.batch);
  return 0.1 + us / thread_gain(us) + not_for_columns(call);
}

// SGEMV reads A at MBPS; rows shorter than a few lines cost START nanoseconds each beside.
template <int MBPS, int START>
double gemv_cost(const SgemvArgs& p) {
  const double us = (4.0 * double(p.m) * double(p.n) / MBPS + double(p.m) * START * 1e-3) * double(p.batch);
  return 0.2 + us / thread_gain(us);
}
template <int MBPS, int START>
double column_cost(const SgemmArgs& p) {
  return gemv_cost<MBPS, START>(as_gemv(p)) * double(p.n) + (p.n == 1 ? 0.0 : 1e6);
}
template <int MBPS>
double transpose_cost(const TransposeArgs& p) {
  const double us = 8.0 * double(p.m) * double(p.n) * double(p.batch) / MBPS;
  return 0.2 + us / thread_gain(us);
}

}  // namespace fl
