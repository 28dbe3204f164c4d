// Strict SGEMM with one column, or one row: the matrix-vector product that it is, by the row of the SGEMV table that is
// fastest for it. More columns are taken one after the other, each launch after the one before. One row of the table
// takes clusters of blocks into account, the other is for devices that have none.
#include "cuda/kernels/common/launch.cuh"
#include "plan/gemv_cuda_plan.h"

namespace fl {

void sgemv_short_rows(const SgemvArgs& p, const Context& ctx);
void sgemv_long_rows(const SgemvArgs& p, const Context& ctx);
void sgemv_any_rows(const SgemvArgs& p, const Context& ctx);
void sgemv_cluster_columns(const SgemvArgs& p, const Context& ctx);
void sgemv_split_columns(const SgemvArgs& p, const Context& ctx);
void sgemv_short_columns(const SgemvArgs& p, const Context& ctx);

namespace {

void strict_column(const SgemmArgs& p, bool clusters, const Context& ctx) {
  const int64_t products = p.m == 1 ? 1 : p.n;
  for (int64_t column = 0; column < products; ++column) {
    const SgemvArgs v = column_of(p, column);
    switch (column_row(v, clusters)) {
      case ColumnRow::short_rows: sgemv_short_rows(v, ctx); break;
      case ColumnRow::long_rows: sgemv_long_rows(v, ctx); break;
      case ColumnRow::any_rows: sgemv_any_rows(v, ctx); break;
      case ColumnRow::cluster_columns: sgemv_cluster_columns(v, ctx); break;
      case ColumnRow::split_columns: sgemv_split_columns(v, ctx); break;
      case ColumnRow::short_columns: sgemv_short_columns(v, ctx); break;
    }
  }
}

}  // namespace

void sgemm_strict_column(const SgemmArgs& p, const Context& ctx) { strict_column(p, true, ctx); }
void sgemm_strict_column_no_clusters(const SgemmArgs& p, const Context& ctx) { strict_column(p, false, ctx); }

}  // namespace fl
