// How the epilogues reach C and the addend.
#pragma once

#include "core/layout.h"

namespace fl {

// Whether the tensor memory accelerator can store C. It does so in units of 16 bytes, and beyond the end of a row that
// is not a multiple of them. Other calls use ordinary stores.
inline bool allows_tma_store(const SgemmArgs& p) { return aligned<4>(p.c.data, p.c.rs) && p.n % 4 == 0; }
// Whether an addend's rows are read by 16 bytes. Else the stores are ordinary ones too.
inline bool allows_vectors(const ConstMatrix& addend) { return addend.cs == 1 && aligned<4>(addend.data, addend.rs); }

}  // namespace fl
