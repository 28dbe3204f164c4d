#include "core/peak_loop.h"
#include "simd.h"

#include "../peak.h"

namespace fl {

int64_t peak_loop_portable(int64_t rounds) {
  struct Chain : Simd {  // a product that does not depend on the sum would leave the loop
    static void fma(V& acc, V x, V y) { acc = acc * x + y; }
  };
  return peak_loop<Chain>(rounds);
}

}  // namespace fl
