#include "cost/rules.h"

#include <algorithm>

namespace fl {
namespace {
constexpr const char* unit_stride_text =
    "operands with a unit stride along rows or columns (C or F order) and a result with contiguous rows";
constexpr const char* row_major_text = "operands whose rows are contiguous and follow one another";
}  // namespace

const char* blas_layout(const SgemmArgs& p) {
  return unit_stride(p.a) && unit_stride(p.b) && row_major(p.c) ? nullptr : unit_stride_text;
}
const char* blas_layout_aligned16(const SgemmArgs& p) {
  if (const char* lacks = blas_layout(p)) return lacks;
  return aligned16(p.a) && aligned16(p.b) && aligned16(p.c)
             ? nullptr
             : "16-byte aligned operands whose leading dimensions and batch strides are multiples of 4";
}
const char* blas_layout(const SgemvArgs& p) { return unit_stride(p.a) ? nullptr : unit_stride_text; }
const char* blas_layout_aligned16(const SgemvArgs& p) {
  if (const char* lacks = blas_layout(p)) return lacks;
  return aligned16(p.a) ? nullptr
                        : "a 16-byte aligned matrix whose leading dimension and batch stride are multiples of 4";
}
const char* apart(const TransposeArgs& p) { return p.in_place ? "a result that is not its operand" : nullptr; }
const char* contiguous_rows(const TransposeArgs& p) {
  // Rows of a broadcast or a reversed matrix are not apart.
  return row_major(p.a) && row_major(p.b) && p.a.rs >= p.n && p.b.rs >= p.m ? nullptr : row_major_text;
}
const char* row_major_both(const TransposeArgs& p) {
  const char* lacks = contiguous_rows(p);
  return lacks ? lacks : apart(p);
}
const char* row_major_aligned16(const TransposeArgs& p) {
  if (const char* lacks = row_major_both(p)) return lacks;
  return aligned16(p.a) && aligned16(p.b)
             ? nullptr
             : "16-byte aligned operands whose leading dimensions and batch strides are multiples of 4";
}
const char* row_major_aligned8(const TransposeArgs& p) {
  if (const char* lacks = row_major_both(p)) return lacks;
  return aligned<2>(p.a) && aligned<2>(p.b)
             ? nullptr
             : "8-byte aligned operands whose leading dimensions and batch strides are multiples of 2";
}

// Measured on the H200 from 3 x 17 to 16384 x 16384: bytes per microsecond in L2, around its edge, and beyond.
double tiled_cost(const TransposeArgs& p) {
  const double bytes = 8.0 * double(p.m) * double(p.n) * double(p.batch);
  // Mostly empty tiles: 65536 of 16 x 16 took 66 us, 1000000 x 4 17.
  const double narrow = 2.1e-3 * double(ceil_div(std::max(p.m, p.n), 128)) * double(p.batch);
  const double tiles = p.m <= 32 && p.n <= 32 ? 1.0e-3 * double(p.batch) : p.m <= 16 || p.n <= 16 ? narrow : 0.0;
  return 0.95 + std::max(tiles, bytes / (bytes <= 17e6 ? 7.2e6 : (bytes <= 40e6 ? 4.6e6 : 4.13e6)));
}
double tiled_any_cost(const TransposeArgs& p) {
  const double bytes = 8.0 * double(p.m) * double(p.n) * double(p.batch);
  const double tiles = p.n <= 32   ? 3.7e-3 * double(ceil_div(p.m, 128)) * double(p.batch)
                       : p.m <= 32 ? 1.85e-3 * double(ceil_div(p.n, 32)) * double(p.batch)
                                   : 0.0;
  const bool large_aligned = p.m >= 1024 && p.n >= 1024 && row_major_aligned16(p) == nullptr;
  const double beyond = large_aligned ? 4.2e6 : 3.9e6;
  const double move = bytes / (bytes <= 26e6 ? 6e6 : (bytes <= 40e6 ? 4.3e6 : beyond));
  return (p.m <= 32 ? 1.5 : 1.15) + std::max(tiles, move);
}
// Elements per microsecond: two divisions for each, and more shuffling of banks where A has few rows.
double pieces_cost(const TransposeArgs& p) {
  const double elements = double(p.m) * double(p.n) * double(p.batch);
  return 1.5 + elements / (p.batch == 1 && p.n > p.m ? 0.33e6 : 0.43e6);
}

}  // namespace fl
