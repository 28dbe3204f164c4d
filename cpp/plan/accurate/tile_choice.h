// The fastest of a list of tiles by estimate. Frozen, as the choice decides bits.
#pragma once

#include <cstdint>

namespace fl {

struct TileChoice {
  int index = -1;          // in the list
  double rounds_area = 0;  // elements of C that one multiprocessor computes, weighed by the rate of the tile
  double ends = 0;

  // Of a multiprocessor that does so many operations in a microsecond.
  constexpr double us(int64_t k, double operations_per_us) const {
    return rounds_area * 2 * double(k) / operations_per_us + ends;
  }
};

// rounds_area(tile) is that, or less than zero where the tile is not to be taken.
template <class Tiles, class RoundsArea>
constexpr TileChoice fastest_tile(const Tiles& tiles, int64_t k, double operations_per_us, RoundsArea&& rounds_area) {
  TileChoice best;
  double least = 0;
  int index = 0;
  for (const auto& tile : tiles) {
    const TileChoice choice{index++, rounds_area(tile), tile.ends};
    const double time = choice.us(k, operations_per_us);
    if (choice.rounds_area >= 0 && (best.index < 0 || time < least)) least = time, best = choice;
  }
  return best;
}

}  // namespace fl
