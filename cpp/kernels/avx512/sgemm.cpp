#if defined(__x86_64__)
#include "simd.h"

#include "../packed_sgemm.h"
#include "../small_sgemm.h"

namespace fl {

void sgemm_avx512_14x32(const SgemmArgs& p, const Context& context) { packed_sgemm<Simd>(p, context); }
void sgemm_avx512_small(const SgemmArgs& p, const Context& context) { small_sgemm<Simd>(p, context); }

}  // namespace fl
#endif
