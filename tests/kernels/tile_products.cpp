// The model of the tile instructions (cpp/kernels/amx/tiles_model.h) against the instructions: so many random tiles of
// each kind on so many threads, of every size, with zeros, subnormal numbers, the largest ones, NaN and infinity. Says
// for each kind how many tiles it took and how many of them differed. A NaN is a NaN: which one, no kernel says.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "kernels/amx/tiles.h"
#include "kernels/amx/tiles_model.h"

namespace {

using namespace fl;

enum Kind { any_bits, ordinary, small, large, special, cancelling, powers, kinds };
constexpr const char* names[] = {"any bits", "ordinary", "small", "large", "special", "cancelling", "powers"};

struct Operands {
  alignas(64) uint16_t a[16][32], b[16][32];
  alignas(64) uint32_t c[16][16];
};

uint16_t number(Kind kind, uint64_t r) {
  constexpr uint16_t specials[] = {0,      0x8000, 1,      0x8001, 0x007f, 0x0080, 0x8080, 0x7f7f, 0xff7f, 0x7f80,
                                   0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x3f80, 0xbf80, 0x0081, 0x2000, 0x1f80, 0x9f81};
  const auto within = [&](unsigned mantissa, unsigned least, unsigned count) {
    return uint16_t((r & (0x8000u | mantissa)) | ((least + (r >> 20) % count) << 7));
  };
  switch (kind) {
    case ordinary: return within(0x7f, 118, 10);
    case small: return within(0x7f, 50, 26);
    case large: return within(0x7f, 186, 5);
    case special: return r % 16 ? 0x3f80 : specials[(r >> 20) % 20];
    case cancelling: return within(3, 62, 3);
    case powers: return uint16_t((r & 0x8000u) | (r % 3 ? 50 + r % 3 : 64) << 7);  // sums just below 2^-126
    default: return uint16_t(r);
  }
}
uint32_t old_sum(Kind kind, uint64_t r) {
  if (kind == any_bits || kind == special) return uint32_t(r);
  if (kind == ordinary) return (uint32_t(number(kind, r)) << 16) + uint32_t(r >> 40);
  return uint32_t(r & (kind == large ? 0xffffffffu : 0x80ffffffu));
}

template <class Tiles>
void multiply(const Operands& from, Operands& to, const TileShapes& shapes) {
  Tiles tiles;
  tiles.configure(shapes);
  to = from;
  tiles.template load<0>(to.c, 64);
  tiles.template load<1>(to.a, 64);
  tiles.template load<2>(to.b, 64);
  tiles.template multiply<0, 1, 2>();
  tiles.template store<0>(to.c, 64);
  tiles.release();
}

bool same(const Operands& x, const Operands& y) {
  const auto is_nan = [](uint32_t u) { return (u & 0x7fffffffu) > 0x7f800000u; };
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j)
      if (x.c[i][j] != y.c[i][j] && !(is_nan(x.c[i][j]) && is_nan(y.c[i][j]))) return false;
  return true;
}

long different(Kind kind, long tiles, unsigned seed) {
  std::mt19937_64 random(seed);
  long found = 0;
  for (long t = 0; t < tiles; ++t) {
    Operands in, by_model, by_instruction;
    for (auto* operand : {&in.a, &in.b})
      for (auto& row : *operand)
        for (auto& x : row) x = number(kind, random());
    for (auto& row : in.c)
      for (auto& x : row) x = old_sum(kind, random());
    const uint64_t r = random();
    const bool whole = t % 4 == 0;
    const int m = whole ? 16 : 1 + int(r & 15), n = whole ? 16 : 1 + int(r >> 8 & 15),
              k = whole ? 16 : 1 + int(r >> 16 & 15);
    TileShapes shapes;
    shapes.rows[0] = shapes.rows[1] = uint8_t(m);
    shapes.rows[2] = uint8_t(k);
    shapes.row_bytes[0] = shapes.row_bytes[2] = uint16_t(4 * n);
    shapes.row_bytes[1] = uint16_t(4 * k);
    multiply<ModelTiles>(in, by_model, shapes);
    multiply<AmxTiles>(in, by_instruction, shapes);
    found += !same(by_model, by_instruction);
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (::syscall(SYS_arch_prctl, 0x1023, 18) != 0) return 1;
  const long tiles = argc > 1 ? std::atol(argv[1]) : 2000;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  for (int kind = 0; kind < kinds; ++kind) {
    std::vector<long> found(std::size_t(threads), 0);
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i)
      running.emplace_back([&, i] { found[std::size_t(i)] = different(Kind(kind), tiles / threads, unsigned(i)); });
    long all = 0;
    for (int i = 0; i < threads; ++i) running[std::size_t(i)].join(), all += found[std::size_t(i)];
    std::printf("%s: %ld tiles, %ld differ\n", names[kind], tiles / threads * threads, all);
  }
}
