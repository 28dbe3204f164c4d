// Strict SGEMM from 1500 rows and columns up: tiles as large as the registers of a multiprocessor, one block on each,
// which goes from tile to tile (pipelined.cuh). Every output is one chain of FMAs in ascending k, bit for bit the
// ladder's.
//
//   row        thread tile   flop per byte copied   issue bound   weak where
//   128x256      8 x 16             42.7               84.2 %     the last wave is short: 1536^2 has 72 tiles
//   192x192     12 x 12             48                 85.7 %     sizes are powers of two: edge tiles go to waste
//
// Lost: 192x256 with 12 x 16 per thread, whose bound is 87.3 %, spills and ran at 0.93 of 128x256.
#include "cuda/kernels/sgemm_strict/pipelined.cuh"

namespace fl {

#define FL_FUNCTION(tile) \
  void sgemm_##tile(const SgemmArgs& p, const Context& ctx) { strict_pipelined<tile>(p, ctx); }
FL_LARGE_TILES(FL_FUNCTION)
#undef FL_FUNCTION

}  // namespace fl
