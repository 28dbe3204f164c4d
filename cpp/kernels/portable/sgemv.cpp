#include "simd.h"

#include "../gemv.h"

namespace fl {

void sgemv_portable(const SgemvArgs& p, const Context& context) { gemv<Simd>(p, context); }

}  // namespace fl
