#if defined(__aarch64__)
#include "simd.h"

#include "../gemv.h"

namespace fl {

void sgemv_neon(const SgemvArgs& p, const Context& context) { gemv<Simd>(p, context); }

}  // namespace fl
#endif
