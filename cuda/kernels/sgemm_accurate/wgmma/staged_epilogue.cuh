// The epilogue of persistent blocks: a warp puts its sums into a box of 16 rows by 32 columns in shared memory; from
// there they go to C by TMA store or by ordinary stores. With beta the addend is read into the same box one box ahead.
// As tensor maps have it, 16-byte parts of a row of a box change places with the row's number.
#pragma once

#include "cuda/kernels/common/ptx_wgmma.cuh"
#include "cuda/kernels/sgemm_accurate/epilogue.cuh"
#include "plan/accurate/wgmma_tiles.h"

namespace fl {

// How C is written, known when the kernel is compiled: what one kernel has of code counts, because each block runs the
// part that stores only once per tile and fetches it anew (a quarter of the samples at 2048 with all in one kernel).
//   tma        the tensor memory accelerator stores boxes; C is aligned, and there is no addend
//   tma_row    the same with one row that is added to each, from registers: no box is read back
//   tma_blend  the same with an addend, by 16 bytes
//   tma_columns  tma where columns follow one another in C, and not rows: what comes from shared memory is transposed
//   direct     ordinary stores for any C, and any addend
//   direct_any   the same, and columns may follow one another
enum class Store { tma, tma_row, tma_blend, tma_columns, direct, direct_any };

// Of one warp, which has two boxes and uses them alternately.
template <Store STORE>
struct StagedEpilogue {
  static constexpr bool COLUMNS = STORE == Store::tma_columns;
  static constexpr bool TMA = STORE != Store::direct && STORE != Store::direct_any;
  static constexpr bool USES_STAGES = TMA && STORE != Store::tma_blend;  // for a block's last rows
  const AccurateEpilogue& out;
  const CUtensorMap* map;
  uint32_t boxes;
  bool wide;
  int box = 0;
  bool fresh = false;

  __device__ __forceinline__ bool reads() const { return STORE == Store::tma_blend || (!TMA && out.beta != 0.0f); }

  // To be called before the first rows of a tile are stored, and after the last ones of the tile before. WAVES times 16
  // rows, 64 apart. The rest of the tile is on its way to L2 then.
  template <int WAVES, int COLS>
  __device__ __forceinline__ void begin_tile(int row0, int col0) {
    if (!reads()) return;
    if (out.addend.rs != 0)
      for (int line = threadIdx.x % 32; line < 16 * WAVES * COLS / 32; line += 32) {
        const int row = row0 + line % 16 + line / 16 % WAVES * 64, col = col0 + line / (16 * WAVES) * 32;
        if (row < out.m && col < out.n) ptx::prefetch_l2(out.addend.at(row, col));
      }
    read_ahead(row0, col0);
  }

  // From here on every box is a new one: `from` on there is room for the rest of the stores.
  __device__ __forceinline__ void use_fresh_boxes(uint32_t from) { boxes = from, box = 0, fresh = true; }

  // Rows row0 to row0 + 15, columns from col0 on, 32 at a time; zeroes what it has stored. Lane l holds columns 16 * j
  // + 4 * (l % 4) on, four of them, of rows l / 4 and l / 4 + 8: see SplitThreadMap. More: rows row0 + 64 on follow.
  template <int ACC>
  __device__ __forceinline__ void store(float (&acc)[ACC], int from, int to, int row0, int col0, bool more) {
    constexpr int BANDS = ACC / 16;  // of 32 columns
    const int lane = threadIdx.x % 32, r = lane / 4, q = lane % 4;
    const int down[2] = {__ldg(out.a_exponents + row0 + r), __ldg(out.a_exponents + row0 + r + 8)};
    const int4* across = reinterpret_cast<const int4*>(out.b_exponents + col0) + q;
    int4 e[2] = {__ldg(across + from * 8), __ldg(across + from * 8 + 4)};
#pragma unroll
    for (int band = 0; band < BANDS; ++band) {
      if (band < from || band >= to) continue;
      const int back[8] = {e[0].x, e[0].y, e[0].z, e[0].w, e[1].x, e[1].y, e[1].z, e[1].w};
      if (band + 1 < to)
        for (int j = 0; j < 2; ++j) e[j] = __ldg(across + band * 8 + 8 + j * 4);  // an L2 latency ahead
      if (reads()) {
        ptx::wait_copies<0>();
        __syncwarp();
      } else {
        wait_for_box();
      }
      const uint32_t at = boxes + box * BOX_BYTES;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float x[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          float& sum = acc[(4 * band + i / 2) * 4 + half * 2 + i % 2];
          x[i] =
              (wide ? scale_wide(sum, -down[half] - back[i]) : sum * power_of_two(-down[half] - back[i])) * out.alpha;
          sum = 0.0f;
        }
        if constexpr (COLUMNS) fill_column(x, at, half);
        else fill_row(x, at, half, col0 + band * 32);
      }
      if constexpr (TMA) {
        ptx::async_proxy_fence();
        __syncwarp();
        if (lane == 0) {
          const int col = COLUMNS ? row0 : col0 + band * 32, row = COLUMNS ? col0 + band * 32 : row0;
          if (out.evict_first) ptx::store_box_evict_first(map, col, row, at);
          else ptx::store_box(map, col, row, at);
        }
      } else {
        __syncwarp();
        write_rows(at, row0, col0 + band * 32);
      }
      box = fresh ? box + 1 : box ^ 1;
      if (reads()) {
        if (band + 1 < BANDS) read_ahead(row0, col0 + band * 32 + 32);
        else if (more) read_ahead(row0 + 64, col0);
      }
    }
  }

  __device__ __forceinline__ void finish() const {
    if (TMA && threadIdx.x % 32 == 0) ptx::wait_boxes_read<0>();
  }

 private:
  // The next box is free once every store but the latest has left it.
  __device__ __forceinline__ void wait_for_box() const {
    if (TMA && !fresh && threadIdx.x % 32 == 0) ptx::wait_boxes_read<1>();
    __syncwarp();
  }
  // What is outside of the addend is not read; what takes its place goes nowhere.
  __device__ __forceinline__ void read_ahead(int row0, int col0) const {
    wait_for_box();
    const int lane = threadIdx.x % 32;
    const uint32_t to = boxes + box * BOX_BYTES;
    if constexpr (TMA) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = i * 4 + lane / 8, row = row0 + r, col = col0 + lane % 8 * 4;
        if (row < out.m && col < out.n)
          ptx::copy_async16(to + r * 128 + ((lane % 8 ^ r % 8) << 4), out.addend.at(row, col));
      }
    } else {
#pragma unroll 1  // sixteen addresses at once do not fit the registers
      for (int r = 0; r < 16; ++r)
        if (row0 + r < out.m && col0 + lane < out.n)
          ptx::copy_async4(to + offset_in_box(r, lane), out.addend.at(row0 + r, col0 + lane));
    }
    ptx::commit_copies();
  }

  // Four numbers of the added row, zeros beyond the last column. Both halves of a box ask, the second time the L1:
  // registers for eight numbers are not to be had. To ask the L1 for the row at the tile's beginning gained nothing.
  __device__ __forceinline__ float4 of_row(int col) const {
    float4 x{0.0f, 0.0f, 0.0f, 0.0f};
    if (col < out.n)
      asm volatile("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                   : "l"(out.addend.data + col));
    return x;
  }
  __device__ __forceinline__ float4 added(float4 x, float4 old) const {
    return {fmaf(out.beta, old.x, x.x), fmaf(out.beta, old.y, x.y), fmaf(out.beta, old.z, x.z),
            fmaf(out.beta, old.w, x.w)};
  }

  // Rows next to each other store their halves in opposite order: no bank conflicts.
  __device__ __forceinline__ void fill_row(const float (&x)[8], uint32_t at, int half, int col0) const {
    const int lane = threadIdx.x % 32, r = lane / 4, q = lane % 4;
    const bool odd = r % 2;
    const uint32_t line = at + (r + half * 8) * 128, first = line + ((q + 4 * odd ^ r) << 4);
    float4 low{x[0], x[1], x[2], x[3]}, high{x[4], x[5], x[6], x[7]};
    if constexpr (STORE == Store::tma_row)
      low = added(low, of_row(col0 + q * 4)), high = added(high, of_row(col0 + q * 4 + 16));
    store_part(first, odd ? high : low);
    store_part(first ^ 64, odd ? low : high);
  }
  // The box is of 32 lines of 16 floats, a line for each column of the sums. Which of two comes first changes with the
  // columns of a lane: no bank conflicts.
  static __device__ __forceinline__ void fill_column(const float (&x)[8], uint32_t box, int half) {
    const int lane = threadIdx.x % 32, r = lane / 4, q = lane % 4;
    const bool second_first = q & 2;
    const uint32_t first = box + q * 256 + (second_first ? 64 : 0) + ((r / 4 ^ q % 2 * 2) << 4) + r % 4 * 4;
#pragma unroll
    for (int i = 0; i < 8; ++i)
      ptx::store1((first ^ (i % 2 * 64 + (half * 2 ^ i % 4 / 2) * 16)) + i / 4 * 1024 + i % 4 / 2 * 128,
                  second_first ? x[i ^ 1] : x[i]);
  }

  __device__ __forceinline__ void store_part(uint32_t to, float4 x) const {
    ptx::store4(to, reads() ? added(x, ptx::load4(to)) : x);
  }

  static __device__ __forceinline__ uint32_t offset_in_box(int r, int col) {
    return uint32_t(r * 128 + ((col / 4 ^ r % 8) << 4) + col % 4 * 4);
  }

  // A column of the box per lane; four rows at once where all exist.
  __device__ __forceinline__ void write_rows(uint32_t at, int row0, int col0) const {
    if constexpr (STORE == Store::direct_any)
      if (out.by_columns) return write_columns(at, row0, col0);
    const int lane = threadIdx.x % 32, rows = col0 + lane < out.n ? min(16, out.m - row0) : 0;
    float* c = out.c + row0 * out.ldc + col0 + lane;
    if (row0 + 16 <= out.m && col0 + 32 <= out.n) {
#pragma unroll 1
      for (int first = 0; first < 16; first += 4) {
        float x[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) x[r] = ptx::load1(at + offset_in_box(first + r, lane));
#pragma unroll
        for (int r = 0; r < 4; ++r, c += out.ldc) *c = x[r];
      }
    } else {
#pragma unroll 1
      for (int r = 0; r < rows; ++r, c += out.ldc) *c = ptx::load1(at + offset_in_box(r, lane));
    }
    __syncwarp();
  }
  // Two columns at a time.
  __device__ __forceinline__ void write_columns(uint32_t at, int row0, int col0) const {
    const int r = threadIdx.x % 16, last = row0 + r < out.m ? min(32, out.n - col0) : 0;
#pragma unroll 4
    for (int col = threadIdx.x % 32 / 16; col < last; col += 2)
      *out.column(row0 + r, col0 + col) = ptx::load1(at + offset_in_box(r, col));
    __syncwarp();
  }
};

}  // namespace fl
