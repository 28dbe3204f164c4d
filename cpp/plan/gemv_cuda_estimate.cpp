#include "plan/gemv_cuda_estimate.h"

#include <algorithm>
#include <cmath>

#include "core/layout.h"
#include "plan/gemv_cuda_plan.h"
#include "plan/reference_device.h"

namespace fl {
namespace {
constexpr double other_order = 1e4;  // a kernel that would hand the call on is not chosen
}  // namespace

double gemv_bytes(const SgemvArgs& p) { return 4.0 * double(p.m) * double(p.n) * double(p.batch); }
double gemv_rows(const SgemvArgs& p) { return double(p.m) * double(p.batch); }
double gemv_rate(const SgemvArgs& p, double memory, double l2) { return gemv_bytes(p) <= 40e6 ? l2 : memory; }
bool few_long_rows(const SgemvArgs& p) { return p.n >= 4096 && gemv_rows(p) <= 8 * PLAN_MULTIPROCESSORS; }

double short_rows_estimate(const SgemvArgs& p) {
  if (p.a.cs != 1 || p.n > 256) return other_order;
  if (aligned16(p.a)) return 0.95 + gemv_bytes(p) / gemv_rate(p, 4.25e6, 7e6) + gemv_rows(p) * 2e-6;
  return 0.95 + gemv_bytes(p) / gemv_rate(p, 3.4e6, 5.6e6) + gemv_rows(p) * (p.n <= 64 ? 2e-6 : 5e-5);
}

double long_rows_estimate(const SgemvArgs& p) {
  if (p.a.cs != 1 || !aligned16(p.a)) return other_order;
  const double row = 1.35e-3;  // the launch of its block and its end
  const double read = gemv_bytes(p) / gemv_rate(p, 4.65e6, 5.5e6);
  if (few_long_rows(p) && gemv_rows(p) < PLAN_MULTIPROCESSORS)
    return 1.5 + std::max(read, gemv_bytes(p) / (gemv_rows(p) * 76e3));
  return 1.2 + std::max(read, gemv_rows(p) * row + gemv_bytes(p) / 9e6);
}

double any_rows_estimate(const SgemvArgs& p) {
  if (p.a.cs != 1) return other_order;
  const double start = p.n >= 1024 && gemv_rows(p) < 750 ? 1.9 : 1.4;  // blocks meet at a barrier, clusters at two
  const double whole = p.n >= 2048 && gemv_bytes(p) > 40e6 ? 4.15e6 : 3.9e6;
  return start + gemv_bytes(p) / std::min(whole, gemv_rows(p) * 8 * 38e3) + gemv_rows(p) * 5e-5;
}

// What is left of the speed where the clusters of sgemv_cluster_columns come to a few blocks more than 132
// multiprocessors take at once: 2120 x 16324 transposed took 44 us instead of 33.
static double second_wave(const SgemvArgs& p) {
  if (!aligned16(p.a)) return 1.0;
  const auto slices = [&](int outputs) { return ceil_div(p.m, outputs) * p.batch; };
  int64_t blocks = slices(slices(128) >= 32 ? 128 : (slices(32) >= 3 ? 32 : 8));
  for (int cluster = 1; cluster < 8 && blocks < 3 * PLAN_MULTIPROCESSORS / 2; cluster *= 2) blocks *= 2;
  return blocks > 2 * PLAN_MULTIPROCESSORS && blocks < 3 * PLAN_MULTIPROCESSORS ? 0.7 : 1.0;
}

double cluster_columns_estimate(const SgemvArgs& p) {
  if (p.a.cs == 1) return other_order;
  const bool vectors = aligned16(p.a);
  const auto slices = [&](int outputs) { return double(ceil_div(p.m, outputs)) * double(p.batch); };
  const double narrow = slices(slices(32) >= (vectors ? 3 : 16) ? 32 : 8);
  const double blocks = narrow * (narrow <= 7 ? 16 : 8);
  // Tiles of 128 outputs leave no room for clusters where they are many, nor for long loops where columns are few.
  const double whole =
      !vectors ? 3.2e6 : (slices(128) > 1.5 * PLAN_MULTIPROCESSORS ? 3.7e6 : (p.n < 1000 ? 3.3e6 : 4.6e6));
  const double barriers = 0.45 * std::min(1.0, double(p.n) / 256);
  const double start = 1.3 + barriers + 4.5e-3 * (vectors ? slices(128) : narrow);
  return start + gemv_bytes(p) / std::min(whole * second_wave(p), blocks * (vectors ? 50e3 : 25e3));
}

double split_columns_estimate(const SgemvArgs& p) {
  if (p.a.cs == 1) return other_order;
  const SplitColumnsPlan plan = split_columns_plan(p);
  const double blocks = double(ceil_div(p.m, plan.outputs)) * double(p.batch) * plan.splits;
  if (!plan.vectors && plan.splits > 1) return 3.4 + gemv_bytes(p) / std::min(gemv_rate(p, 4e6, 5.6e6), blocks * 38e3);
  const double whole = plan.vectors ? gemv_rate(p, 4.4e6, 5.5e6) : gemv_rate(p, 3.8e6, 4.5e6);
  const bool large_blocks = plan.vectors && plan.outputs == 128;  // of 1024 threads
  return 1.35 + (plan.splits > 1 ? 1.3 : 0) + (large_blocks ? 1.2 : 0) + gemv_bytes(p) / std::min(whole, blocks * 38e3);
}

// Eight columns at a time, or sixteen. What the threads have in flight bounds the speed, more so beyond L2: 722 x 30480
// transposed takes 34 us.
double short_columns_estimate(const SgemvArgs& p) {
  if (p.a.cs == 1) return other_order;
  const bool vectors = aligned16(p.a) && gemv_rows(p) >= 128 * PLAN_MULTIPROCESSORS, sixteen = !vectors && p.n > 32;
  const double turns = std::ceil(double(p.n) / (sixteen ? 16 : 8)), threads = gemv_rows(p) / (vectors ? 4 : 1);
  const double turn_us = (sixteen ? 0.29 : 0.24) * (gemv_bytes(p) > 40e6 ? 2.4 : 1) *
                         std::max(1.0, threads / (1024 * PLAN_MULTIPROCESSORS));
  return 0.95 +
         std::max(turns * turn_us, gemv_bytes(p) / (vectors ? gemv_rate(p, 3.8e6, 6.5e6) : gemv_rate(p, 3.2e6, 5.2e6)));
}

}  // namespace fl
