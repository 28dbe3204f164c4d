// Strict SGEMM with few rows or columns by SGEMV's kernels, a launch for all of them: each reads the other matrix by
// itself, but all after the first from L2.
#include "core/context.h"
#include "plan/vectors_plan.h"

namespace fl {

template <void (*SGEMV)(const SgemvArgs&, const Context&)>
static void by_vectors(const SgemmArgs& p, const Context& ctx) {
  const VectorsPlan plan = vectors_plan(p);
  for (int64_t i = 0; i < plan.launches; ++i) SGEMV(plan.at(i), ctx);
}

void sgemv_short_rows(const SgemvArgs&, const Context&);
void sgemv_any_rows(const SgemvArgs&, const Context&);
void sgemv_short_columns(const SgemvArgs&, const Context&);
void sgemv_split_columns(const SgemvArgs&, const Context&);
void sgemv_cluster_columns(const SgemvArgs&, const Context&);

void sgemm_strict_short_rows(const SgemmArgs& p, const Context& ctx) { by_vectors<sgemv_short_rows>(p, ctx); }
void sgemm_strict_any_rows(const SgemmArgs& p, const Context& ctx) { by_vectors<sgemv_any_rows>(p, ctx); }
void sgemm_strict_short_columns(const SgemmArgs& p, const Context& ctx) { by_vectors<sgemv_short_columns>(p, ctx); }
void sgemm_strict_split_columns(const SgemmArgs& p, const Context& ctx) { by_vectors<sgemv_split_columns>(p, ctx); }
void sgemm_strict_cluster_columns(const SgemmArgs& p, const Context& ctx) { by_vectors<sgemv_cluster_columns>(p, ctx); }

}  // namespace fl
