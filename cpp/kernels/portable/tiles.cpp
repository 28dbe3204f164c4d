#include "fused.h"

#include "../amx/term_product.h"
#include "../amx/tiles_model.h"

namespace fl {

void sgemm_amx_bf16x6_model(const SgemmArgs& p, const Context& context) {
  term_sgemm<ModelTiles, FusedSimd>(p, context);
}

}  // namespace fl
