#if defined(__x86_64__)
#include "simd.h"

#include "../few_rows.h"

namespace fl {

void sgemm_avx2_rows(const SgemmArgs& p, const Context& context) { rows_sgemm<Simd>(p, context); }

}  // namespace fl
#endif
