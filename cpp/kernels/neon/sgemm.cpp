#if defined(__aarch64__)
#include "simd.h"

#include "../packed_sgemm.h"
#include "../small_sgemm.h"

namespace fl {

void sgemm_neon_8x12(const SgemmArgs& p, const Context& context) { packed_sgemm<Simd>(p, context); }
void sgemm_neon_small(const SgemmArgs& p, const Context& context) { small_sgemm<Simd>(p, context); }

}  // namespace fl
#endif
