#if defined(__aarch64__)
#include "simd.h"

#include "../few_rows.h"

namespace fl {

void sgemm_neon_rows(const SgemmArgs& p, const Context& context) { rows_sgemm<Simd>(p, context); }

}  // namespace fl
#endif
