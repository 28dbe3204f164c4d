#include "cpu_rules.h"

#include <algorithm>

namespace fl {

// Time with threads grows with the time without: two rows never get the same estimate because of a large thread count.
double thread_gain(double one_thread_us) {
  const double threads_us = 5.0 + one_thread_us / num_threads();
  return std::max(1.0, one_thread_us / threads_us);
}

std::size_t gemv_workspace(const SgemvArgs& p) {
  const GemvPlan plan = gemv_plan(p, num_threads());
  return plan.workspace_floats * sizeof(float) * std::size_t(plan.across_batch ? num_threads() : 1);
}

std::size_t column_workspace(const SgemmArgs& p) { return gemv_workspace(as_gemv(p)); }

std::size_t transpose_workspace(const TransposeArgs& p) {
  const bool stages = (p.a.cs == 1 && p.b.cs == 1) || (p.a.rs == 1 && p.b.rs == 1);
  return stages ? stage_bytes * std::size_t(num_threads()) : 0;
}

}  // namespace fl
