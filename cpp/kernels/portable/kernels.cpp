#include "core/peak_loop.h"
#include "fused.h"
#include "simd.h"

#include "../gemv.h"
#include "../packed_sgemm.h"
#include "../peak.h"
#include "../small_sgemm.h"
#include "../transpose.h"

namespace fl {

void sgemm_portable(const SgemmArgs& p, const Context& context) { packed_sgemm<Simd>(p, context); }
void sgemm_portable_fused(const SgemmArgs& p, const Context& context) { packed_sgemm<FusedSimd>(p, context); }
void sgemm_portable_small(const SgemmArgs& p, const Context& context) { small_sgemm<Simd, false>(p, context); }
void sgemv_portable(const SgemvArgs& p, const Context& context) { gemv<Simd>(p, context); }
void transpose_portable(const TransposeArgs& p, const Context& context) { transpose<Simd>(p, context); }

int64_t peak_loop_portable(int64_t rounds) {
  struct Chain : Simd {  // a product that does not depend on the sum would leave the loop
    static void fma(V& acc, V x, V y) { acc = acc * x + y; }
  };
  return peak_loop<Chain>(rounds);
}

}  // namespace fl
