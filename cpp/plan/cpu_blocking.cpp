#include "plan/cpu_blocking.h"

#include <algorithm>
#include <cmath>

#include "runtime/threading.h"

namespace fl {
namespace {

// Clock cycles of a task: its products, A and the first panel of B packed, the copy of the other panels in the
// shadow of the products or, if B has to be transposed, as a pack of its own.
double task_time(int64_t rows, int64_t columns, const SgemmArgs& p, const CpuBlocking& blocking) {
  const double m = double(rows), n = double(columns), depth = double(p.k);
  return depth * (m * n / double(blocking.rate) + pack_cycles * (m + double(blocking.NR))) +
         pack_cycles_of(columns, p, blocking) + 500;
}

}  // namespace

int64_t most_kept(int threads) { return std::clamp<int64_t>((int64_t(8) << 20) / threads, 1 << 19, 1 << 21); }

double pack_cycles_of(int64_t columns, const SgemmArgs& p, const CpuBlocking& blocking) {
  const bool copied = p.b.cs == 1 && blocking.rate < term_blocking.rate;
  return double(p.k) * double(columns) * (copied ? 0.17 : pack_cycles);
}

bool few_columns(const SgemmArgs& p) { return p.n <= 8 && p.m > p.n; }

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

Cut cut_for_threads(const SgemmArgs& p, const CpuBlocking& blocking, int threads) {
  const int64_t panels = ceil_div(p.n, blocking.NR), strips = ceil_div(p.m, blocking.MR);
  const Cut whole{.groups = 1, .columns = panels * blocking.NR};
  const double products = double(p.m) * double(p.n) * double(p.k);
  // Below about 10 us of work a second thread costs more than it brings.
  if (threads < 2 || p.batch >= 4 * threads || products * double(p.batch) < 5e5) return whole;
  Cut best = whole;
  double best_time = 1e300;
  for (int64_t groups = 1; groups <= std::min(panels, 16 * threads / p.batch); ++groups) {
    const int64_t columns = ceil_div(panels, groups) * blocking.NR, all = groups * p.batch;
    if (ceil_div(panels, ceil_div(panels, groups)) != groups) continue;  // as wide as one with fewer groups
    const bool keep = columns * p.k <= most_kept(threads);
    const double share = double(all) / threads;  // groups for each thread, or the part of one
    const double rows = double(p.m) * std::min(1.0, std::ceil(double(strips) * share) / double(strips));
    // A thread whose group is done goes on in another one and packs its B; the last strips are unevenly spread.
    const bool uneven = all > threads ? all % threads != 0 : threads % all != 0;
    const double packs = std::max(share, 1.0) + (uneven ? 1.0 : 0.0);
    const double time = std::max(share, 1.0) * task_time(int64_t(rows), columns, p, blocking) +
                        (packs * (keep ? 1 : 8) - 1) * pack_cycles_of(columns, p, blocking) +
                        0.25 * task_time(blocking.MR, columns, p, blocking);
    if (time < best_time) best = {groups, columns, true, keep}, best_time = time;
  }
  return best;
}

PackLayout pack_layout(int64_t counters, int64_t a_floats, int64_t b_floats) {
  constexpr int64_t page = 1024;  // floats; one more than needed, for what pack.h writes past a strip
  auto pages = [](int64_t floats) { return (floats / page + 2) * page; };
  return {counters ? pages(counters * counter_floats) : 0, pages(a_floats), pages(a_floats) + pages(b_floats)};
}

PackLayout pack_layout(const SgemmArgs& p, const CpuBlocking& blocking, const Cut& cut) {
  const int64_t depth = std::min(blocking.KC, p.k);
  return pack_layout(cut.shared ? cut.groups * p.batch : 0, std::min(blocking.MC, p.m) * depth,
                     cut.keep ? cut.columns * p.k : std::min(blocking.NC, cut.columns) * depth);
}

PackLayout term_layout(const SgemmArgs& p, const Cut& cut) {
  const int64_t slices = ceil_div(p.k, term_blocking.KC);
  const int64_t floats = term_strip_floats(ceil_div(ceil_div(p.k, term_step), slices));
  const int64_t stay = term_rows_stay(p) ? p.m : cut.columns, pass = term_rows_stay(p) ? cut.columns : p.m;
  const int64_t strips = ceil_div(std::min(term_blocking.MC, std::max(stay, pass)), term_step);
  const int64_t panels = ceil_div(std::min(term_blocking.NC, pass), term_step);
  const int64_t kept = stay > term_lines_once ? panels * std::min(slices, term_slices) : 0;
  return pack_layout(cut.shared ? cut.groups * p.batch : 0, small_panel_floats + strips * floats,
                     std::max<int64_t>(2, kept) * floats);
}

}  // namespace fl
