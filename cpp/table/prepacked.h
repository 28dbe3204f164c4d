// Which operands of a kernel of the table can be prepacked, and in how much memory.
#pragma once

#include "plan/prepacked_operand.h"
#include "table/registry.h"

namespace fl {

// What to keep of an operand of such products, still without memory; of 0 bytes if this kernel does not split it. The
// first is for products of all of its lines, the second for products of some of them at a time.
PrepackedOperand prepacked_to_keep(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side);
PrepackedOperand prepacked_to_share(const Kernel<SgemmArgs>& row, const SgemmArgs& p, Side side);
// Whether a product reads what is shared: small ones have terms of their own.
bool reads_shared(const Kernel<SgemmArgs>& row, const SgemmArgs& p);

}  // namespace fl
