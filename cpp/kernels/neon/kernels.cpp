#if defined(__aarch64__)
#include "core/peak_loop.h"
#include "simd.h"

#include "../few_rows.h"
#include "../gemv.h"
#include "../packed_sgemm.h"
#include "../peak.h"
#include "../small_sgemm.h"
#include "../transpose.h"

namespace fl {

void sgemm_neon_8x12(const SgemmArgs& p, const Context& context) { packed_sgemm<Simd>(p, context); }
void sgemm_neon_small(const SgemmArgs& p, const Context& context) { small_sgemm<Simd, true>(p, context); }
void sgemm_neon_rows(const SgemmArgs& p, const Context& context) { rows_sgemm<Simd>(p, context); }
void sgemv_neon(const SgemvArgs& p, const Context& context) { gemv<Simd>(p, context); }
void transpose_neon(const TransposeArgs& p, const Context& context) { transpose<Simd>(p, context); }
int64_t peak_loop_neon(int64_t rounds) { return peak_loop<Simd>(rounds); }

}  // namespace fl
#endif
