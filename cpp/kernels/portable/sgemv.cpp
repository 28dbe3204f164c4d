#include "simd.h"

#include "../gemv.h"

namespace fl {

void sgemv_portable(const SgemvArgs& p, const Context& context) { gemv<Simd>(p, context); }
void sgemm_portable_column(const SgemmArgs& p, const Context& context) { gemv_columns<Simd>(p, context); }

}  // namespace fl
