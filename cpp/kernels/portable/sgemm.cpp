#include "fused.h"
#include "simd.h"

#include "../packed_sgemm.h"
#include "../small_sgemm.h"

namespace fl {

void sgemm_portable(const SgemmArgs& p, const Context& context) { packed_sgemm<Simd>(p, context); }
void sgemm_portable_fused(const SgemmArgs& p, const Context& context) { packed_sgemm<FusedSimd>(p, context); }
void sgemm_portable_small(const SgemmArgs& p, const Context& context) { small_sgemm<Simd, false>(p, context); }

}  // namespace fl
