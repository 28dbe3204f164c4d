#if defined(__x86_64__)
#include "../avx512/simd.h"
#include "term_product.h"
#include "tiles.h"

namespace fl {

void sgemm_amx_bf16x6(const SgemmArgs& p, const Context& context) { term_sgemm<AmxTiles, Simd>(p, context); }

}  // namespace fl
#endif
