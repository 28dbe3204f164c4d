#if defined(__x86_64__)
#include "simd.h"

#include "../gemv.h"

namespace fl {

void sgemv_avx512(const SgemvArgs& p, const Context& context) { gemv<Simd>(p, context); }

}  // namespace fl
#endif
