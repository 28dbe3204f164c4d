// The rules the kernel table refers to: what a row can compute (legal) and how long it is expected to take (cost).
//
// A legality rule returns nullptr, or what the operands lack as the end of the sentence "this kernel needs ...".
// A cost rule returns microseconds on the reference device (H200 or one core of the build machine): only the order of
// the figures decides, and only among the rows of one device; run.cpp compares devices.
//
// Dispatch remembers recent choices, so a rule may depend on nothing but the call, where its addresses lie in a line of
// 128 bytes, the number of threads and what stays as it is while the process lives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/device_spec.h"
#include "core/layout.h"
#include "core/problem.h"

namespace fl {

// ---------------------------------------------------------------- legality
template <class Args>
const char* any(const Args&) {
  return nullptr;
}

// A and B in row- or column-major order, C row-major: what the BLAS can express.
const char* blas_layout(const SgemmArgs& p);
const char* blas_layout_aligned16(const SgemmArgs& p);
const char* blas_layout(const SgemvArgs& p);
const char* blas_layout_aligned16(const SgemvArgs& p);
const char* apart(const TransposeArgs& p);
const char* contiguous_rows(const TransposeArgs& p);  // the one rule of the GPU that allows a transpose in place
const char* row_major_both(const TransposeArgs& p);
const char* row_major_aligned16(const TransposeArgs& p);
const char* row_major_aligned8(const TransposeArgs& p);

template <class Args>
std::size_t no_workspace(const Args&) {
  return 0;
}

// ---------------------------------------------------------------- cost
// A tile kernel: a fixed launch cost, then whole waves of BM x BN tiles, OCC of them at a time on each
// multiprocessor, at GFLOPS when the device is full; and C, which a short k does not hide.
template <int BM, int BN, int OCC, int GFLOPS>
double tile_cost(const SgemmArgs& p) {
  const double slots = double(h200_spec().multiprocessors) * OCC;
  const double tiles = double(ceil_div(p.m, BM)) * double(ceil_div(p.n, BN)) * double(p.batch);
  const double waves = double(int64_t((tiles + slots - 1) / slots));
  const double tile_us = 2.0 * BM * BN * double(p.k) / (GFLOPS * 1e3 / slots);
  return 3.0 + waves * tile_us + double(p.m) * double(p.n) * double(p.batch) * 3e-6;
}
// A kernel bound by arithmetic at MFLOPS on one core.
template <int MFLOPS>
double flop_cost(const SgemmArgs& p) {
  return 0.2 + 2.0 * double(p.m) * double(p.n) * double(p.k) * double(p.batch) / MFLOPS;
}
// A kernel that reads A at MBPS.
template <int MBPS>
double read_cost(const SgemvArgs& p) {
  return 2.0 + 4.0 * double(p.m) * double(p.n) * double(p.batch) / MBPS;
}
// Beyond L2 no transpose of the ladder passes 3.5 TB/s.
template <int MBPS>
double copy_cost(const TransposeArgs& p) {
  const double bytes = 8.0 * double(p.m) * double(p.n) * double(p.batch);
  return 1.0 + bytes / (bytes > 40e6 && MBPS > 3500000 ? 3500000 : MBPS);
}
// The same by tiles of 32 x 32, of which small and narrow matrices leave much empty.
template <int MBPS>
double tile32_cost(const TransposeArgs& p) {
  const double tiles = double(ceil_div(p.m, 32)) * double(ceil_div(p.n, 32)) * double(p.batch);
  return std::max(copy_cost<MBPS>(p), 1.0 + tiles * 8192 / MBPS);
}
double tiled_cost(const TransposeArgs& p);
double tiled_any_cost(const TransposeArgs& p);
double pieces_cost(const TransposeArgs& p);

}  // namespace fl
