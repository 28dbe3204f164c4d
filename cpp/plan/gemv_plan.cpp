#include "plan/gemv_plan.h"

#include <algorithm>

namespace fl {

GemvPlan gemv_plan(const SgemvArgs& p, int threads) {
  GemvPlan plan;
  // Below a quarter of a megabyte waking a thread takes longer than reading A.
  const bool worth = threads > 1 && 4.0 * double(p.m) * double(p.n) * double(p.batch) > 256 * 1024;
  const int64_t row_parts = ceil_div(p.m, 64), sections = ceil_div(p.n, section);
  // Short contiguous columns are read whole, one after the other: half of each for two threads, and 16384x128 takes 85
  // us transposed, by sections 50.
  const bool whole_columns = p.a.rs == 1 && p.m <= 128 && sections >= threads;
  if (worth && p.batch >= threads) plan.across_batch = true;
  else if (worth && (whole_columns || (row_parts < threads && sections > row_parts))) plan.split_sections = true;
  else if (worth) plan.tasks = std::min<int64_t>(4 * threads, row_parts);
  if (p.x.inc != 1 || p.stored[1].converted()) plan.workspace_floats += std::size_t(p.n);
  if (plan.split_sections) plan.workspace_floats += std::size_t(sections) * std::size_t(p.m);
  return plan;
}

}  // namespace fl
