#if defined(__aarch64__)
#include "simd.h"

#include "../transpose.h"

namespace fl {

void transpose_neon(const TransposeArgs& p, const Context& context) { transpose<Simd>(p, context); }

}  // namespace fl
#endif
