#include "cpu_blocking.h"

#include <algorithm>

#include "threading.h"

namespace fl {
namespace {

// Clock cycles of a task: 16 products in one, A and the first panel of B packed, the copy of the other panels in the
// shadow of the products or, if B has to be transposed, as a pack of its own.
double task_time(int64_t rows, int64_t columns, const SgemmArgs& p, const CpuBlocking& blocking) {
  const double m = double(rows), n = double(columns), depth = double(p.k);
  const double pack = 0.75, copy = p.b.cs == 1 ? 0.1 : pack;
  return depth * (m * n / 16 + pack * (m + double(blocking.NR)) + copy * n) + 500;
}

}  // namespace

bool few_columns(const SgemmArgs& p) { return p.n <= 8 && p.m > p.n; }

SgemmArgs transposed(const SgemmArgs& p) {
  SgemmArgs t = p;
  t.m = p.n;
  t.n = p.m;
  t.a = {p.b.data, p.b.cs, p.b.rs, p.b.bs};
  t.b = {p.a.data, p.a.cs, p.a.rs, p.a.bs};
  t.c = {p.c.data, p.c.cs, p.c.rs, p.c.bs};
  return t;
}

std::size_t small_workspace(const SgemmArgs& p) {
  const bool rows_contiguous = few_columns(p) ? p.a.rs == 1 : p.b.cs == 1;
  return rows_contiguous ? 0 : std::size_t(small_panel_floats) * sizeof(float) * std::size_t(num_threads());
}

int64_t rows_tasks(const SgemmArgs& p, int threads) {
  // Below a quarter of a megabyte waking a thread takes longer than reading B.
  if (threads < 2 || p.batch >= threads || 4.0 * double(p.n) * double(p.k) < 256 * 1024) return 1;
  return std::clamp<int64_t>(p.n / 64, 1, 4 * threads);
}

int64_t batch_group(const SgemmArgs& p, int threads) {
  const double products = double(p.m) * double(p.n) * double(p.k), five_us = 250e3;
  if (products * double(p.batch) < 2 * five_us) return p.batch;
  return std::clamp<int64_t>(int64_t(five_us / products), 1, ceil_div(p.batch, int64_t(threads)));
}

Grid task_grid(const SgemmArgs& p, const CpuBlocking& blocking, int threads) {
  const double products = double(p.m) * double(p.n) * double(p.k);
  // Below about 10 us of work a second thread costs more than it brings.
  if (threads < 2 || p.batch >= 4 * threads || products * double(p.batch) < 5e5) return {1, 1};
  const int64_t panels = ceil_div(p.n, blocking.NR), strips = ceil_div(p.m, blocking.MR);
  const int64_t most = 8 * int64_t(threads);
  Grid best{1, 1};
  double best_time = 1e300;
  for (int64_t r = 1; r <= std::min(strips, most); ++r) {
    for (int64_t c = 1; c <= std::min(panels, most / r); ++c) {
      const double task = task_time(ceil_div(p.m, r), std::min(ceil_div(panels, c) * blocking.NR, p.n), p, blocking);
      const double waves = double(ceil_div(r * c * p.batch, int64_t(threads)));
      // A thread may lose its core for a while: what is left then is shared out in tasks, so small ones are worth a
      // little.
      const double time = waves * task + 0.05 * task;
      if (time < best_time) best = {r, c}, best_time = time;
    }
  }
  return best;
}

PackBuffer pack_buffer(const SgemmArgs& p, const CpuBlocking& blocking, const Grid& grid) {
  constexpr int64_t page = 1024;  // floats; one more than needed, for what pack.h writes past a strip
  auto pages = [](int64_t floats) { return (floats / page + 2) * page; };
  const int64_t depth = std::min(blocking.KC, p.k);
  const int64_t rows = std::min(blocking.MC, ceil_div(p.m, grid.rows));
  const int64_t panels = ceil_div(ceil_div(p.n, blocking.NR), grid.columns);
  const int64_t a_floats = pages(rows * depth);
  return {a_floats, a_floats + pages(std::min(blocking.NC, panels * blocking.NR) * depth)};
}

}  // namespace fl
