// The rules of the CPU rows of the kernel table; see rules.h for what a rule is. Costs are microseconds on the build
// machine (AMD Zen 4, 118 GFLOP/s a core); MFLOPS and MBPS are what a row reaches there.
#pragma once

#include "plan/cpu_blocking.h"
#include "plan/gemv_plan.h"
#include "runtime/threading.h"

namespace fl {

// The time of a call on all threads it may have: the first microseconds are its own. It grows with the time on one
// thread, so that the number of threads never turns the order of two rows round.
constexpr double alone_us = 5.0;
double shared_us(double one_thread_us);
constexpr double with_threads(double us) { return us <= alone_us ? us : shared_us(us); }

// A product with one column is always a matrix-vector product, whose sums have an order of their own: were the choice
// to depend on the number of rows, a slice of A would give other bits than the whole.
constexpr double not_for_columns(const SgemmArgs& p) { return p.n == 1 ? 1e6 : 0.0; }
// A panel that is not full takes the time of a whole or half one.
constexpr double filled_columns(int64_t n, const CpuBlocking& blocking) {
  return double(ceil_div(n, blocking.NR / 2) * (blocking.NR / 2));
}

std::size_t packed_bytes(const SgemmArgs& p, const CpuBlocking& blocking);
template <CpuBlocking blocking>
std::size_t packed_workspace(const SgemmArgs& p) {
  return packed_bytes(p, blocking);
}
std::size_t gemv_workspace(const SgemvArgs& p);
std::size_t column_workspace(const SgemmArgs& p);
std::size_t transpose_workspace(const TransposeArgs& p);

// The products at MFLOPS on each thread, and both operands packed: 23 and 11 operations' worth of time for an element.
template <CpuBlocking blocking, int MFLOPS>
double packed_cost(const SgemmArgs& p) {
  const double m = double(p.m), n = double(p.n), k = double(p.k);
  const double tiles = double(ceil_div(p.m, blocking.MR)) * double(ceil_div(p.n, blocking.NR));
  double us =
      (2.0 * m * filled_columns(p.n, blocking) * k + 23.0 * m * k + 11.0 * n * k) * (1.0 / MFLOPS) + 0.04 * tiles;
  us *= double(p.batch);
  return 0.4 + with_threads(us) + not_for_columns(p);
}
// Unpacked: rows of B that several strips of A read should be near; A is read again for every panel of B, and C is
// written one panel at a time, which memory dislikes.
template <CpuBlocking blocking, int MFLOPS>
double small_cost(const SgemmArgs& p) {
  const bool turned = few_columns(p);
  const int64_t rows = turned ? p.n : p.m, columns = turned ? p.m : p.n;
  const bool contiguous = (turned ? p.a.rs : p.b.cs) == 1;
  const double m = double(rows), n = double(columns), k = double(p.k);
  const double panels = double(ceil_div(columns, blocking.NR));
  const double a_bytes = 4.0 * m * k, b_bytes = 4.0 * n * k, c_bytes = 4.0 * m * n;
  double us = 2.0 * m * filled_columns(columns, blocking) * k * (1.0 / MFLOPS) + 0.0012 * panels * (m + 7);
  if (!contiguous) us += 23.0 * n * k * (1.0 / MFLOPS);
  else if (rows > 8 && b_bytes > 600e3 && ((turned ? p.a.cs : p.b.rs) % 256 == 0 || b_bytes > 16e6))
    us += b_bytes / 10e3;
  if (rows <= 4 && b_bytes > 64e3 && us < b_bytes / 70e3) us = b_bytes / 70e3;
  if (a_bytes > 1e6) us += panels * a_bytes / 60e3;
  if (c_bytes > 4e6 && panels > 8) us += c_bytes / 15e3;
  us *= double(p.batch);
  return 0.1 + with_threads(us) + not_for_columns(p);
}

// The larger operand is read at MBPS while up to four rows of the other, or columns, are multiplied with it.
template <int MBPS>
double rows_cost(const SgemmArgs& p) {
  const bool turned = p.n < p.m;
  const bool contiguous = (turned ? p.a.rs : p.b.cs) == 1;
  const int64_t rows = turned ? p.n : p.m, together = rows < 4 ? rows : 4;
  const double bytes = 4.0 * double(turned ? p.m : p.n) * double(p.k);
  const double slower = !contiguous ? 1.07 + 0.38 * double(together) : together == 1 ? 0.8 : 0.58 * double(together);
  const double us = (bytes * slower * (rows > 4 ? 1.2 : 1.0) * (1.0 / MBPS) + 0.1) * double(ceil_div(rows, 4));
  return 0.1 + with_threads(us * double(p.batch)) + not_for_columns(p);
}

// SGEMV reads A at MBPS; rows shorter than a few lines cost START nanoseconds each beside.
template <int MBPS, int START>
double gemv_cost(const SgemvArgs& p) {
  const double us = (4.0 * double(p.m) * double(p.n) * (1.0 / MBPS) + double(p.m) * START * 1e-3) * double(p.batch);
  return 0.2 + with_threads(us);
}
template <int MBPS, int START>
double column_cost(const SgemmArgs& p) {
  return gemv_cost<MBPS, START>(as_gemv(p)) * double(p.n) + (p.n == 1 ? 0.0 : 1e6);
}
template <int MBPS>
double transpose_cost(const TransposeArgs& p) {
  const double us = 8.0 * double(p.m) * double(p.n) * double(p.batch) * (1.0 / MBPS);
  return 0.2 + with_threads(us);
}

}  // namespace fl
