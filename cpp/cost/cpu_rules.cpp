#include "cost/cpu_rules.h"

#include <algorithm>

namespace fl {

double shared_us(double one_thread_us) { return alone_us + (one_thread_us - alone_us) / double(num_threads()); }

std::size_t packed_bytes(const SgemmArgs& p, const CpuBlocking& blocking) {
  if (p.k == 0) return 0;
  const Cut cut = cut_for_threads(p, blocking, num_threads());
  const PackLayout layout = pack_layout(p, blocking, cut);
  const int64_t slots = cut.shared ? num_threads() : std::min<int64_t>(p.batch, num_threads());
  return std::size_t(layout.counters + slots * layout.floats) * sizeof(float);
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
