#if defined(__x86_64__)
#include "simd.h"

#include "../transpose.h"

namespace fl {

void transpose_avx2(const TransposeArgs& p, const Context& context) { transpose<Simd>(p, context); }

}  // namespace fl
#endif
