#if defined(__x86_64__)
#include "core/peak_loop.h"

#include "../few_rows.h"
#include "../gemv.h"
#include "../packed_sgemm.h"
#include "../peak.h"
#include "../simd256.h"
#include "../small_sgemm.h"
#include "../transpose.h"

namespace fl {

void sgemm_avx2_6x16(const SgemmArgs& p, const Context& context) { packed_sgemm<Simd256>(p, context); }
void sgemm_avx2_small(const SgemmArgs& p, const Context& context) { small_sgemm<Simd256, true>(p, context); }
void sgemm_avx2_rows(const SgemmArgs& p, const Context& context) { rows_sgemm<Simd256>(p, context); }
void sgemv_avx2(const SgemvArgs& p, const Context& context) { gemv<Simd256>(p, context); }
void transpose_avx2(const TransposeArgs& p, const Context& context) { transpose<Simd256>(p, context); }
int64_t peak_loop_avx2(int64_t rounds) { return peak_loop<Simd256>(rounds); }

}  // namespace fl
#endif
