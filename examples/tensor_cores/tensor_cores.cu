// Products on tensor cores, idea by idea: plain fp16, two terms for each float32 number, promotion, and what the order
// of tiles and the swizzle of shared memory are worth. docs/course explains them; the library's own kernels are in
// cuda/kernels/sgemm_accurate. On an H100 or H200, in this folder:
//
//   nvcc -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a -I../.. -I../../cpp tensor_cores.cu -o tensor_cores
//   ./tensor_cores
//
// C[m,n] = A[m,k] B[k,n] with B stored as n rows of k numbers. All sizes are multiples of the tile.
#include <cudaTypedefs.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cuda/kernels/common/ptx_wgmma.cuh"
#include "cuda/kernels/common/rasterize.cuh"
#include "cuda/kernels/common/tensor_map.cuh"

namespace ptx = fl::ptx;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

// Scaled numbers lie below 2^15, so that their low terms, 2^-11 of them, are not too small for fp16.
constexpr float SCALE = 16384.0f;

// x = (hi + lo) / SCALE, but for 2^-22 of it; x is uniform in (0, 1).
__global__ void make_terms(float* x, __half* hi, __half* lo, size_t count, unsigned seed) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += gridDim.x * size_t{blockDim.x}) {
    unsigned bits = (unsigned(i) + seed) * 2654435761u;
    bits = (bits ^ bits >> 15) * 2246822519u;
    x[i] = float((bits ^ bits >> 13) >> 8) * 0x1p-24f;
    hi[i] = __float2half_rn(x[i] * SCALE);
    lo[i] = __float2half_rn(x[i] * SCALE - __half2float(hi[i]));
  }
}

// begin: product
constexpr int BM = 128, BN = 128, BK = 64, TERM_BYTES = BM * BK * 2;
constexpr int MULTIPLYING = 256, THREADS = MULTIPLYING + 128;  // two warpgroups multiply, one thread copies

// begin: layout
// A term of a stage is 128 rows of 64 numbers. With the swizzle a row is 128 bytes in a piece, whose eight parts of 16
// bytes lie at their number XOR the row's last three bits: a box of the accelerator is written so, and read so by the
// tensor cores. Without, parts of 16 bytes of 128 rows follow one another, for each eight k.
template <bool SWIZZLE>
__device__ void load_terms(uint32_t to, const CUtensorMap* map, int k, int row, uint32_t barrier) {
  if constexpr (SWIZZLE) ptx::load_box(to, map, k, row, barrier);
  else
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
            "r"(to),
        "l"(map), "r"(0), "r"(row), "r"(k / 8), "r"(barrier)
        : "memory");
}
// What an instruction is told of an operand from that row on: its address, and the bytes to the next eight k and to the
// next eight rows, all divided by 16.
template <bool SWIZZLE>
__device__ uint64_t operand(uint32_t term, int row) {
  return SWIZZLE ? ptx::swizzled_tile(term + row * 128, 16, 1024) : ptx::plain_tile(term + row * 16, BM * 16, 128);
}
template <bool SWIZZLE>
constexpr int K16 = (SWIZZLE ? 32 : 2 * BM * 16) / 16;  // to the next 16 k
// end: layout

// Stages in shared memory, each with a barrier `full` and a barrier `empty`.
template <int TERMS>
struct Stages {
  static constexpr int COUNT = 6 / TERMS, BYTES = 2 * TERMS * TERM_BYTES;
  uint32_t shared;
  int stage = 0;
  uint32_t parity = 0;

  __device__ explicit Stages(const void* memory) : shared((ptx::shared_address(memory) + 1023) & ~1023u) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < COUNT; ++s) {
        ptx::barrier_init(shared + COUNT * BYTES + 16 * s, 1);
        ptx::barrier_init(shared + COUNT * BYTES + 16 * s + 8, MULTIPLYING);
      }
      ptx::barrier_init_fence();
    }
    __syncthreads();
  }
  __device__ uint32_t a(int term) const { return shared + stage * BYTES + term * TERM_BYTES; }
  __device__ uint32_t b(int term) const { return a(TERMS + term); }
  __device__ uint32_t full() const { return shared + COUNT * BYTES + 16 * stage; }
  __device__ uint32_t empty() const { return full() + 8; }
  __device__ void next() {
    if (++stage == COUNT) stage = 0, parity ^= 1;
  }
};

// One thread copies: the low terms of a matrix are `m`, or `n`, rows below its high ones.
template <bool SWIZZLE, int TERMS>
__device__ void copy(Stages<TERMS> stages, const CUtensorMap* a, const CUtensorMap* b, int row, int col, int m, int n,
                     int k) {
  for (int from = 0; from < k; from += BK, stages.next()) {
    ptx::barrier_wait(stages.empty(), stages.parity ^ 1);
    ptx::barrier_expect(stages.full(), stages.BYTES);
    for (int term = 0; term < TERMS; ++term) {
      load_terms<SWIZZLE>(stages.a(term), a, from, row + term * m, stages.full());
      load_terms<SWIZZLE>(stages.b(term), b, from, col + term * n, stages.full());
    }
  }
}

// Two warpgroups multiply, 64 rows of the tile each. `kept` is what the result is read from.
template <int PRODUCTS, bool PROMOTE, bool SWIZZLE, int TERMS>
__device__ __forceinline__ void multiply(Stages<TERMS>& stages, int rows, int k, float (&kept)[BN / 2]) {
  float sum[BN / 2];
  for (int from = 0; from < k; from += BK, stages.next()) {
    ptx::barrier_wait(stages.full(), stages.parity);
    ptx::wgmma_fence();
#pragma unroll
    for (int product = 0; product < PRODUCTS; ++product) {  // lo hi', hi lo', and then the large one
      const uint64_t a = operand<SWIZZLE>(stages.a(PRODUCTS == 3 && product == 0), rows);
      const uint64_t b = operand<SWIZZLE>(stages.b(product == 1), 0);
#pragma unroll
      for (int step = 0; step < BK / 16; ++step)
        ptx::wgmma<false, true>(sum, a + step * K16<SWIZZLE>, b + step * K16<SWIZZLE>,
                                product + step > 0 || (from > 0 && !PROMOTE));
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait();
    ptx::written(sum);
    ptx::barrier_arrive(stages.empty());
#pragma unroll
    for (int i = 0; i < BN / 2; ++i) kept[i] = PROMOTE ? kept[i] + sum[i] : sum[i];
  }
}

template <int PRODUCTS, bool PROMOTE, bool SWIZZLE>
__global__ void __launch_bounds__(THREADS, 1)
    product(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, float* c, int m,
            int n, int k, int band) {
  extern __shared__ unsigned char memory[];
  Stages<PRODUCTS == 1 ? 1 : 2> stages(memory);
  const auto tile = fl::banded_tile<int>(blockIdx.x, m / BM, n / BN, band);
  if (threadIdx.x >= MULTIPLYING) {
    if (threadIdx.x == MULTIPLYING) copy<SWIZZLE>(stages, &a_map, &b_map, tile.row * BM, tile.col * BN, m, n, k);
    return;
  }
  const int rows = threadIdx.x / 128 * 64, warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  float sums[BN / 2] = {};
  multiply<PRODUCTS, PROMOTE, SWIZZLE>(stages, rows, k, sums);
  // Four neighbours of a thread's sums are two columns of a row and of the row eight further down.
  float* to = c + (size_t(tile.row) * BM + rows + warp * 16 + lane / 4) * n + tile.col * BN + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < BN / 2; i += 4, to += 8) {
    *reinterpret_cast<float2*>(to) = {sums[i] / SCALE / SCALE, sums[i + 1] / SCALE / SCALE};
    *reinterpret_cast<float2*>(to + 8 * size_t(n)) = {sums[i + 2] / SCALE / SCALE, sums[i + 3] / SCALE / SCALE};
  }
}
// end: product

// float64, of every `apart`-th row and column.
__global__ void reference(const float* a, const float* b, double* sums, int k, int apart) {
  const float *row = a + size_t(blockIdx.x) * apart * k, *col = b + size_t(blockIdx.y) * apart * k;
  double sum = 0;
  for (int l = threadIdx.x; l < k; l += 32) sum += double(row[l]) * double(col[l]);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x == 0) sums[blockIdx.x * gridDim.y + blockIdx.y] = sum;
}

CUtensorMap terms_map(const __half* terms, int rows, int k, bool swizzle) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  const cuuint64_t bytes = cuuint64_t(k) * 2, rows64 = cuuint64_t(rows);
  const cuuint64_t sizes[] = {cuuint64_t(k), rows64}, parts[] = {8, rows64, cuuint64_t(k) / 8}, strides[] = {bytes, 16};
  const cuuint32_t box[] = {BK, BM}, box_of_parts[] = {8, BM, BK / 8}, step[] = {1, 1, 1};
  CUtensorMap map;
  const CUresult error =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, swizzle ? 2 : 3, const_cast<__half*>(terms),
             swizzle ? sizes : parts, strides, swizzle ? box : box_of_parts, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
             swizzle ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error != CUDA_SUCCESS) std::exit(2);
  return map;
}

struct Problem {
  int n, k;  // m is n
  float *a, *b, *c;
  __half *a_terms, *b_terms;
  std::vector<double> exact;
  static constexpr int SAMPLES = 64;

  Problem(int n, int k) : n(n), k(k), exact(SAMPLES * SAMPLES) {
    const size_t numbers = size_t(n) * k;
    for (float** x : {&a, &b}) check(cudaMalloc(x, numbers * 4));
    for (__half** x : {&a_terms, &b_terms}) check(cudaMalloc(x, numbers * 4));
    check(cudaMalloc(&c, size_t(n) * n * 4));
    make_terms<<<1024, 256>>>(a, a_terms, a_terms + numbers, numbers, 1);
    make_terms<<<1024, 256>>>(b, b_terms, b_terms + numbers, numbers, 987654321);
    double* sums;
    check(cudaMalloc(&sums, exact.size() * 8));
    reference<<<dim3(SAMPLES, SAMPLES), 32>>>(a, b, sums, k, n / SAMPLES);
    check(cudaMemcpy(exact.data(), sums, exact.size() * 8, cudaMemcpyDeviceToHost));
    check(cudaFree(sums));
  }
  ~Problem() {
    for (void* x : {(void*)a, (void*)b, (void*)c, (void*)a_terms, (void*)b_terms}) cudaFree(x);
  }

  // The norm of the errors of the samples, relative, and their mean.
  void errors(double& norm, double& mean) const {
    std::vector<float> row(n);
    double squares = 0, all = 0, sum = 0, sum_of_exact = 0;
    for (int i = 0; i < SAMPLES; ++i) {
      check(cudaMemcpy(row.data(), c + size_t(i) * (n / SAMPLES) * n, n * 4, cudaMemcpyDeviceToHost));
      for (int j = 0; j < SAMPLES; ++j) {
        const double want = exact[i * SAMPLES + j], off = row[j * (n / SAMPLES)] - want;
        squares += off * off, all += want * want, sum += off, sum_of_exact += want;
      }
    }
    norm = std::sqrt(squares / all), mean = sum / sum_of_exact;
  }
};

template <int PRODUCTS, bool PROMOTE, bool SWIZZLE>
void run(const char* what, const Problem& p, int band) {
  const int terms = PRODUCTS == 1 ? 1 : 2, blocks = (p.n / BM) * (p.n / BN);
  const int bytes = 6 * 2 * TERM_BYTES + 6 * 16 + 1024;
  const CUtensorMap a_map = terms_map(p.a_terms, terms * p.n, p.k, SWIZZLE);
  const CUtensorMap b_map = terms_map(p.b_terms, terms * p.n, p.k, SWIZZLE);
  const auto kernel = product<PRODUCTS, PROMOTE, SWIZZLE>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  check(cudaMemset(p.c, 0xff, size_t(p.n) * p.n * 4));
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  float best = 1e30f;
  for (int repeat = 0; repeat < 20; ++repeat) {
    check(cudaEventRecord(begin));
    kernel<<<blocks, THREADS, bytes>>>(a_map, b_map, p.c, p.n, p.n, p.k, band);
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float ms;
    check(cudaEventElapsedTime(&ms, begin, end));
    if (repeat > 2) best = std::fmin(best, ms);
  }
  double norm, mean;
  p.errors(norm, mean);
  std::printf("%s,%d,%d,%.1f,%.0f,%.3g,%.3g\n", what, p.n, p.k, best * 1e3, 2e-9 * p.n * p.n * p.k / best, norm, mean);
}

int main() {
  std::puts("what,m = n,k,us,TFLOP/s,error (norm),error (mean)");
  for (const auto& [n, k] : {std::pair{4096, 1024}, {4096, 8192}, {8192, 1024}, {8192, 8192}}) {
    const Problem p(n, k);
    run<1, false, false>("fp16 without swizzle", p, 8);
    run<1, false, true>("fp16", p, 8);
    run<1, false, true>("fp16 row by row of tiles", p, 1);
    run<3, false, true>("two terms", p, 8);
    run<3, true, true>("two terms promoted", p, 8);
  }
}
