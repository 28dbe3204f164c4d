// The tiles of a symmetric product, and where their sums go, without a GPU: the code of the kernels on tensor cores and
// of the strict ones, with one thread after the other. C is what the sums of one triangle make it, and nothing beside
// it is written.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "stand_ins.h"

#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/sgemm_accurate/wgmma/mirrored_epilogue.cuh"
#include "cuda/kernels/sgemm_strict/tile_epilogue.cuh"
#include "plan/strict/pipelined_plan.h"

namespace fl {
namespace {

// ---------------------------------------------------------------- shared memory and TMA
unsigned char shared[2 * BOX_BYTES];
bool fenced[32];  // whether TMA may see what a lane has stored

struct BoxStore {
  const CUtensorMap* map;
  int col, row;
  uint32_t from;

  // Rows of 64 bytes, whose parts of 16 bytes stand where the map's swizzle has them.
  void carry_out() const {
    for (int i = 0; i < MIRRORED_BOX; ++i)
      for (int j = 0; j < MIRRORED_BOX; ++j) {
        const uint32_t linear = from + i * 64 + j * 4, at = linear ^ (linear >> 7 & 3) << 4;
        float value;
        std::memcpy(&value, shared + at, 4);
        if (row + i < map->n && col + j < map->n) map->c[int64_t{row + i} * map->ldc + col + j] = value;
      }
  }
};
std::vector<BoxStore> under_way;

}  // namespace

namespace ptx {
void store1(uint32_t to, float x) { std::memcpy(shared + to, &x, 4), fenced[threadIdx.x] = false; }
void store2(uint32_t to, float2 x) { store1(to, x.x), store1(to + 4, x.y); }
float load1(uint32_t from) {
  float x;
  std::memcpy(&x, shared + from, 4);
  return x;
}
void async_proxy_fence() { fenced[threadIdx.x] = true; }
void store_box(const CUtensorMap* map, int col, int row, uint32_t from) {
  for (const bool by_lane : fenced) expect(by_lane, "TMA does not see what is in a box");
  under_way.push_back({map, col, row, from});
}
// As late as they may be.
template <int N>
void wait_boxes_read() {
  while (under_way.size() > N) under_way.front().carry_out(), under_way.erase(under_way.begin());
}
}  // namespace ptx

namespace {

void every_lower_tile_once(int rows, int band) {
  std::vector<int> times(size_t(rows * rows));
  for (int tile = 0; tile < rows * (rows + 1) / 2; ++tile) {
    const TileCorner<int> at = lower_tile(tile, rows, band);
    const bool inside = at.col >= 0 && at.col <= at.row && at.row < rows;
    expect(inside, "no tile of the triangle: " + std::to_string(tile) + " of " + std::to_string(rows));
    if (inside) ++times[size_t(at.row * rows + at.col)];
  }
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col <= row; ++col)
      expect(times[size_t(row * rows + col)] == 1, "a tile is missing, or there twice, of " + std::to_string(rows));
}

float sum_of(int row, int col) { return float(row * 1000 + col + 1); }
int exponent_of(int line) { return line % 5 - 2; }

// What a warp stores of two times 16 rows by 128 columns, in two parts each.
void store_rows(const AccurateEpilogue& out, const CUtensorMap& map, bool wide, int row0, int col0) {
  BlockOnHost::current().run(32, [&] {
    const int lane = threadIdx.x;
    MirroredEpilogue epilogue{out, &map, 0, wide};
    for (const int first : {row0, row0 + 64}) {
      float acc[64];
      for (int i = 0; i < 64; ++i)
        acc[i] = sum_of(first + lane / 4 + i / 2 % 2 * 8, col0 + i / 4 * 8 + lane % 4 * 2 + i % 2);
      epilogue.store(acc, 0, 3, first, col0, false);
      epilogue.store(acc, 3, 4, first, col0, false);
      for (const float x : acc) expect(x == 0.0f, "sums that are stored are not zeroed");
    }
    epilogue.finish();
  });
  expect(under_way.empty(), "a warp ends while its boxes are under way");
}

void a_symmetric_result(int n, int ldc, int shift, bool wide, bool by_boxes) {
  const int tiles = (n + 127) / 128, margin = 64;
  std::vector<int> exponents(size_t(tiles * 128));
  for (size_t i = 0; i < exponents.size(); ++i) exponents[i] = exponent_of(int(i));
  const float untouched = -12345.0f;
  std::vector<float> memory(size_t(ldc * n + 2 * margin), untouched);
  AccurateEpilogue out{exponents.data(), exponents.data(), memory.data() + margin + shift, ldc};
  out.m = out.n = n, out.alpha = 3.0f, out.by_boxes = by_boxes;
  const CUtensorMap map{out.c, n, ldc};
  for (int tile = 0; tile < tiles * (tiles + 1) / 2; ++tile) {
    const TileCorner<int> at = lower_tile(tile, tiles, 8);
    for (int row = 0; row < 64; row += 16) store_rows(out, map, wide, at.row * 128 + row, at.col * 128);
  }
  const std::string call = std::to_string(n) + ", ldc " + std::to_string(ldc) + ": ";
  std::vector<float> want(memory.size(), untouched);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const int row = i > j ? i : j, col = i > j ? j : i, e = exponent_of(row) + exponent_of(col);
      want[size_t(margin + shift + i * ldc + j)] = sum_of(row, col) * power_of_two(-e) * 3.0f;
    }
  expect(memory == want, call + "another result, or one beside it");
}

// ---------------------------------------------------------------- strict
// As mainloop.cuh's Pipelined. C16: by fours.
template <const PipelinedTile& TILE, bool ALIGNED>
struct Strict {
  static constexpr bool C16 = ALIGNED, TMA = false;
  static constexpr int BM = TILE.BM, BN = TILE.BN, TM = TILE.TM, TN = TILE.TN, WARPS_N = TILE.warps_n,
                       LANE_ROWS = TILE.lane_rows, LANE_COLS = TILE.lane_cols(), THREADS = TILE.math_threads();
};

template <class T>
struct Sums {
  float acc[T::TM][T::TN];
  struct {
    unsigned shared = 0;
  } pipeline;
  float4 quad(int q) const {
    const float* four = &acc[q / (T::TN / 4)][q % (T::TN / 4) * 4];
    return {four[0], four[1], four[2], four[3]};
  }
};

// As consume() of pipelined.cuh. A number of its own for each place, even of those that are symmetric by themselves.
template <class T>
void store_tile(const SgemmArgs& p, const Tile& tile, std::vector<int>& times) {
  const std::vector<float> before(p.c.data, p.c.data + p.m * p.c.rs);
  for (int t = 0; t < T::THREADS; ++t) {
    threadIdx.x = t;
    Sums<T> sums;
    for (int q = 0; q < T::TM * T::TN / 4; ++q) {
      const QuadPlace<T> place(t / 32, lane_of<T>(t % 32), q);
      for (int j = 0; j < 4; ++j)
        sums.acc[q / (T::TN / 4)][q % (T::TN / 4) * 4 + j] =
            sum_of(int(tile.row) * T::BM + place.row, int(tile.col) * T::BN + place.col + j);
    }
    if constexpr (T::C16) store<T>(p, 1.0f, sums, corner(p, 0, tile.row * T::BM, tile.col * T::BN));
    if (!on_diagonal<T>(tile)) store_mirrored<T>(p, sums, corner(p, 0, tile.col * T::BN, tile.row * T::BM));
  }
  for (size_t i = 0; i < before.size(); ++i) times[i] += p.c.data[i] != before[i];
}

template <const PipelinedTile& TILE, bool ALIGNED>
void a_strict_result(int n, int ldc) {
  using T = Strict<TILE, ALIGNED>;
  constexpr unsigned HIGH = T::BN / T::BM;
  const float untouched = -12345.0f;
  std::vector<float> c(size_t(n * ldc), untouched);
  std::vector<int> times(c.size());
  SgemmArgs p;
  p.m = p.n = n, p.c = {c.data(), ldc, 1, 0}, p.alpha = 3.0f;
  const auto tiles = unsigned(lower_tiles(ceil_div(n, T::BM), HIGH));
  for (unsigned tile = 0; tile < tiles; ++tile) {
    const TileCorner<unsigned> at = lower_tile_by_rows(tile, HIGH);
    expect(at.row < unsigned(ceil_div(n, T::BM)) && at.col * T::BN <= (at.row + 1) * T::BM, "no tile of the triangle");
    store_tile<T>(p, {0, at.row, at.col}, times);
  }
  const std::string call = "strict " + std::to_string(n) + ", ldc " + std::to_string(ldc) + ": ";
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < ldc; ++j) {
      const bool square = i / T::BN == j / T::BN, mirrored = j < n && i / T::BN < j / T::BN;
      const bool written = j < n && (mirrored || ALIGNED);
      const float want = written ? 3.0f * (mirrored ? sum_of(j, i) : sum_of(i, j)) : untouched;
      expect(c[size_t(i * ldc + j)] == want, call + "another result" + (square ? " on the diagonal" : ""));
      expect(times[size_t(i * ldc + j)] == written, call + "written by two tiles");
    }
}

}  // namespace
}  // namespace fl

int main() {
  for (const int band : {8, 11})
    for (int rows = 1; rows < 70; ++rows) fl::every_lower_tile_once(rows, band);
  for (const unsigned row : {1u, 2u, 1000u, 4095u, 46340u, 65534u}) {
    const unsigned first = row * (row + 1) / 2;
    expect(fl::triangle_row(first) == row && fl::triangle_row(first - 1) == row - 1, "the row of a place");
  }
  for (const int n : {1, 7, 128, 129, 200, 256, 391})
    for (const int more : {0, 1, 6})
      for (const int shift : {0, 1}) fl::a_symmetric_result(n, n + more, shift, more == 6, shift == 0);
  for (const int n : {1, 130, 256, 300, 513, 600}) {
    fl::a_strict_result<fl::strict_128x256, true>(n, n + 3);
    fl::a_strict_result<fl::strict_128x256, false>(n, n);
    fl::a_strict_result<fl::strict_192x192, true>(n, n);
    fl::a_strict_result<fl::strict_128x128, true>(n, n + 1);
    fl::a_strict_result<fl::strict_128x128, false>(n, n + 2);
  }
  std::puts("all right");
}
