#include "cost/rules.h"

#include "plan/gemv_cuda_plan.h"

namespace fl {
namespace {
constexpr const char* unit_stride_text =
    "operands with a unit stride along rows or columns (C or F order) and a result with contiguous rows";
constexpr const char* aligned16_text =
    "a 16-byte aligned matrix whose leading dimension and batch stride are multiples of 4";
constexpr const char* row_major_text = "operands whose rows are contiguous and follow one another";
}  // namespace

const char* float32_rows(const SgemmArgs& p) {
  return p.stored[p.n < p.m ? 1 : 0].converted() ? "the operand with fewer rows or columns in float32" : nullptr;
}

const char* blas_layout(const SgemmArgs& p) {
  if (const char* lacks = float32_operands(p)) return lacks;
  return unit_stride(p.a) && unit_stride(p.b) && row_major(p.c) ? nullptr : unit_stride_text;
}
const char* blas_layout_aligned16(const SgemmArgs& p) {
  if (const char* lacks = blas_layout(p)) return lacks;
  return aligned16(p.a) && aligned16(p.b) && aligned16(p.c)
             ? nullptr
             : "16-byte aligned operands whose leading dimensions and batch strides are multiples of 4";
}
const char* blas_layout(const SgemvArgs& p) {
  if (const char* lacks = float32_operands(p)) return lacks;
  return unit_stride(p.a) ? nullptr : unit_stride_text;
}
const char* lines_of_any_type(const SgemvArgs& p) {
  if (!p.stored[0].in_16_bits() || p.stored[1].converted()) return blas_layout(p);
  return read_as_copied(p) ? nullptr : "a float32 matrix, or one in 16 bits whose lines follow one another";
}
const char* rows_of_any_type(const SgemvArgs& p) { return p.a.cs == 1 ? lines_of_any_type(p) : blas_layout(p); }
const char* rows_of_any_type_aligned16(const SgemvArgs& p) {
  if (const char* lacks = rows_of_any_type(p)) return lacks;
  return aligned16(p.a) ? nullptr : aligned16_text;
}
const char* blas_layout_aligned16(const SgemvArgs& p) {
  if (const char* lacks = blas_layout(p)) return lacks;
  return aligned16(p.a) ? nullptr : aligned16_text;
}
const char* out_of_place(const TransposeArgs& p) { return p.in_place ? "a result that is not its operand" : nullptr; }
const char* contiguous_rows(const TransposeArgs& p) {
  if (const char* lacks = float32_operands(p)) return lacks;
  // Not the rows of a broadcast or a reversed matrix.
  return row_major(p.a) && row_major(p.b) && p.a.rs >= p.n && p.b.rs >= p.m ? nullptr : row_major_text;
}
const char* row_major_both(const TransposeArgs& p) {
  const char* lacks = contiguous_rows(p);
  return lacks ? lacks : out_of_place(p);
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

}  // namespace fl
