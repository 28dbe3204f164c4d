#include "simd.h"

#include "../transpose.h"

namespace fl {

void transpose_portable(const TransposeArgs& p, const Context& context) { transpose<Simd>(p, context); }

}  // namespace fl
