#include "cost/ladder_cost.h"

namespace fl {

double ladder_us(const SgemmArgs& p, const LadderTile& tile, const DeviceSpec& device, const LadderCost& cost) {
  const double room = double(device.multiprocessors) * tile.blocks;
  const double tiles = double(ceil_div(p.m, tile.BM)) * double(ceil_div(p.n, tile.BN)) * double(p.batch);
  const double waves = double(int64_t((tiles + room - 1) / room));
  return cost.start_us + waves * 1e-6 * cost.k_ps * double(p.k) +
         1e-9 * cost.output_fs * double(p.m) * double(p.n) * double(p.batch);
}

}  // namespace fl
