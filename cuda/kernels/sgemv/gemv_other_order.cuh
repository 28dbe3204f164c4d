// A row of the table answers for both orders of A. The kernels that are about one of them hand the other on to these.
#pragma once

#include "core/context.h"
#include "core/problem.h"

namespace fl {

void sgemv_any_rows(const SgemvArgs& p, const Context& ctx);
void sgemv_long_rows(const SgemvArgs& p, const Context& ctx);
void sgemv_warp_per_row(const SgemvArgs& p, const Context& ctx);
void sgemv_warp_per_row_vec4(const SgemvArgs& p, const Context& ctx);

}  // namespace fl
