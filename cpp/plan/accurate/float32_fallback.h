// The block of the float32 fallback, which product kernels have to have room for.
#pragma once

namespace fl {

constexpr int FALLBACK_BM = 128, FALLBACK_BK = 8, FALLBACK_THREADS = 256;
// Shared memory: a step of A and B, each row with four floats of padding, and the sums of finished runs of k.
constexpr int FALLBACK_STEP_BYTES = 2 * FALLBACK_BK * (FALLBACK_BM + 4) * 4;
constexpr int FALLBACK_SUMS_BYTES = FALLBACK_BM * FALLBACK_BM * 4;
constexpr int FALLBACK_SHARED = FALLBACK_STEP_BYTES + FALLBACK_SUMS_BYTES;

}  // namespace fl
