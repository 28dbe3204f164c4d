// Step 10 of the ladder: tiles arrive by asynchronous copies, three steps of k ahead (async_copies.cuh).
//
// 256 threads, 128 x 128 outputs, 8 x 8 a thread, 16 steps of k at a time; four stages of 16.5 KiB, two blocks on a
// multiprocessor. Against step 9 the eight floats that waited in registers are gone, and with them the place in the
// code where they were waited for; steps of k are twice as long, since a stage costs no registers.
#include "cuda/kernels/ladder/async/async_copies.cuh"

namespace fl {

void sgemm_async_copies(const SgemmArgs& p, const Context& ctx) { launch_async_copies<WarpTiles<8, 8>, 4, 2>(p, ctx); }

}  // namespace fl
