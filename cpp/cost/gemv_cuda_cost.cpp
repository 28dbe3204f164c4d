// How long the GPU's SGEMV kernels take on the reference device (H200): fitted to the shapes of docs/gemv_transpose.md
// and to 100 random ones, of any order, leading dimension and alignment.
#include <algorithm>
#include <cmath>

#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {

constexpr double multiprocessors = 132;
constexpr double other_order = 1e4;  // a kernel that would hand the call on is not chosen

double bytes(const SgemvArgs& p) { return 4.0 * double(p.m) * double(p.n) * double(p.batch); }
double rows(const SgemvArgs& p) { return double(p.m) * double(p.batch); }

// Bytes per microsecond: faster while A stays in L2.
double rate(const SgemvArgs& p, double memory, double l2) { return bytes(p) <= 40e6 ? l2 : memory; }

// A ladder kernel on rows: warps of `together` rows, 5280 at a time, each needing a step for every `span` columns.
double ladder_rows(const SgemvArgs& p, double together, double span, double turn, double memory, double l2) {
  const double turns = std::max(1.0, rows(p) / (40 * multiprocessors * together));
  return 1.15 + std::max(bytes(p) / rate(p, memory, l2), (turns - 1) * turn + turns * 0.2 * double(p.n) / span);
}
// The same where a block shares each of a few long rows.
double ladder_shared_rows(const SgemvArgs& p, double memory, double block) {
  return 2.2 + bytes(p) / std::min(memory, rows(p) * block);
}
bool shares_rows(const SgemvArgs& p) { return p.n >= 4096 && rows(p) <= 8 * multiprocessors; }

// A ladder kernel on columns: one block per slice of eight outputs and more, however long the columns' row is. Scalars
// reach no higher speed in L2 (251 x 10370 transposed: 6.9 us).
double ladder_columns(const SgemvArgs& p, double memory, double block) {
  const double blocks = double(ceil_div(p.m, 8)) * double(p.batch);
  const double start = 1.5 + 5e-4 * double(std::min<int64_t>(p.n, 4000));
  return start + bytes(p) / std::min(memory, blocks * block);
}

}  // namespace

double warp_per_row_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return ladder_columns(p, rate(p, 3.2e6, 2e6), 27e3);
  if (shares_rows(p)) return ladder_shared_rows(p, 2.6e6, 32e3);
  if (p.n <= 64) return ladder_rows(p, 4, 64, 0.8, 3e6, 3.5e6);
  return ladder_rows(p, 1, 128, 2.1, 3e6, 3.5e6) + (p.n > 256 ? 0.5 : 0);
}
double warp_per_row_vec4_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return ladder_columns(p, p.n < 4096 ? 3.3e6 : 4.3e6, 58e3);
  if (shares_rows(p)) return ladder_shared_rows(p, 4.15e6, 38e3);
  return p.n <= 256 ? ladder_rows(p, 4, 128, 1.4, 4.1e6, 7e6) : ladder_rows(p, 1, 512, 1.4, 4.5e6, 7e6);
}
double rows_per_warp_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return ladder_columns(p, rate(p, 3.2e6, 2e6), 27e3) + 0.01;  // the same code
  const double lanes = p.n <= 1 ? 1 : (p.n <= 4 ? 4 : (p.n <= 8 ? 8 : (p.n <= 16 ? 16 : 32)));
  return ladder_rows(p, 128 / lanes, lanes, 0.5, 3.5e6, 5.3e6) + (p.n > 256 ? 0.5 : 0);
}
double rows_per_warp_vec4_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return ladder_columns(p, p.n < 4096 ? 3.3e6 : 4.3e6, 58e3) + 0.01;
  return ladder_rows(p, p.n <= 32 ? 8 : 4, p.n <= 32 ? 32 : 128, 0.9, 4.1e6, 7e6);
}

double short_rows_cost(const SgemvArgs& p) {
  if (p.a.cs != 1 || p.n > 256) return other_order;
  if (aligned16(p.a)) return 0.95 + bytes(p) / rate(p, 4.25e6, 7e6) + rows(p) * 2e-6;
  return 0.95 + bytes(p) / rate(p, 3.4e6, 5.6e6) + rows(p) * (p.n <= 64 ? 2e-6 : 5e-5);
}

double long_rows_cost(const SgemvArgs& p) {
  if (p.a.cs != 1 || !aligned16(p.a)) return other_order;
  const double row = 1.35e-3;  // the launch of its block and its end
  const double read = bytes(p) / rate(p, 4.65e6, 5.5e6);
  if (shares_rows(p) && rows(p) < multiprocessors) return 1.5 + std::max(read, bytes(p) / (rows(p) * 76e3));
  return 1.2 + std::max(read, rows(p) * row + bytes(p) / 9e6);
}

double any_rows_cost(const SgemvArgs& p) {
  if (p.a.cs != 1) return other_order;
  const double start = p.n >= 1024 && rows(p) < 750 ? 1.9 : 1.4;  // blocks meet at a barrier, clusters at two
  const double whole = p.n >= 2048 && bytes(p) > 40e6 ? 4.15e6 : 3.9e6;
  return start + bytes(p) / std::min(whole, rows(p) * 8 * 38e3) + rows(p) * 5e-5;
}

// What is left of the speed where the clusters of sgemv_cluster_columns come to a few blocks more than 132
// multiprocessors take at once: 2120 x 16324 transposed took 44 us instead of 33.
static double second_wave(const SgemvArgs& p) {
  if (!aligned16(p.a)) return 1.0;
  const auto slices = [&](int outputs) { return ceil_div(p.m, outputs) * p.batch; };
  int64_t blocks = slices(slices(128) >= 32 ? 128 : (slices(32) >= 3 ? 32 : 8));
  for (int cluster = 1; cluster < 8 && blocks < 198; cluster *= 2) blocks *= 2;
  return blocks > 264 && blocks < 396 ? 0.7 : 1.0;
}

double cluster_columns_cost(const SgemvArgs& p) {
  if (p.a.cs == 1) return other_order;
  const bool vectors = aligned16(p.a);
  const auto slices = [&](int outputs) { return double(ceil_div(p.m, outputs)) * double(p.batch); };
  const double narrow = slices(slices(32) >= (vectors ? 3 : 16) ? 32 : 8);
  const double blocks = narrow * (narrow <= 7 ? 16 : 8);
  // Slices of 128 outputs leave no room for clusters where they are many, nor for long loops where columns are few.
  const double whole = !vectors ? 3.2e6 : (slices(128) > 198 ? 3.7e6 : (p.n < 1000 ? 3.3e6 : 4.6e6));
  const double barriers = 0.45 * std::min(1.0, double(p.n) / 256);
  const double start = 1.3 + barriers + 4.5e-3 * (vectors ? slices(128) : narrow);
  return start + bytes(p) / std::min(whole * second_wave(p), blocks * (vectors ? 50e3 : 25e3));
}

double split_columns_cost(const SgemvArgs& p) {
  if (p.a.cs == 1) return other_order;
  const SplitColumnsPlan plan = split_columns_plan(p);
  const double blocks = double(ceil_div(p.m, plan.outputs)) * double(p.batch) * plan.splits;
  if (!plan.vectors && plan.splits > 1) return 3.4 + bytes(p) / std::min(rate(p, 4e6, 5.6e6), blocks * 38e3);
  const double whole = plan.vectors ? rate(p, 4.4e6, 5.5e6) : rate(p, 3.8e6, 4.5e6);
  const bool large_blocks = plan.vectors && plan.outputs == 128;  // of 1024 threads
  return 1.35 + (plan.splits > 1 ? 1.3 : 0) + (large_blocks ? 1.2 : 0) + bytes(p) / std::min(whole, blocks * 38e3);
}

// Eight columns at a time, or sixteen. What the threads have in flight bounds the speed, more so beyond L2: 722 x 30480
// transposed takes 34 us.
double short_columns_cost(const SgemvArgs& p) {
  if (p.a.cs == 1) return other_order;
  const bool vectors = aligned16(p.a) && rows(p) >= 128 * multiprocessors, sixteen = !vectors && p.n > 32;
  const double turns = std::ceil(double(p.n) / (sixteen ? 16 : 8)), threads = rows(p) / (vectors ? 4 : 1);
  const double turn_us =
      (sixteen ? 0.29 : 0.24) * (bytes(p) > 40e6 ? 2.4 : 1) * std::max(1.0, threads / (1024 * multiprocessors));
  return 0.95 + std::max(turns * turn_us, bytes(p) / (vectors ? rate(p, 3.8e6, 6.5e6) : rate(p, 3.2e6, 5.2e6)));
}

}  // namespace fl
