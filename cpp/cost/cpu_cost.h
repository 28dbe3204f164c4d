// What the CPU kernels are expected to take: microseconds on one thread at the rates in measured.def, then shared out.
#pragma once

#include "cost/coefficients.h"
#include "plan/cpu_blocking.h"
#include "plan/gemv_plan.h"
#include "runtime/threading.h"

namespace fl {

// The time of a call on all threads it may have: the first microseconds are its own. It grows with the time on one
// thread, so that the number of threads never turns the order of two kernels round.
constexpr double alone_us = 5.0;

std::size_t packed_bytes(const SgemmArgs& p, const CpuBlocking& blocking);
template <CpuBlocking blocking>
std::size_t packed_workspace(const SgemmArgs& p) {
  return packed_bytes(p, blocking);
}
std::size_t term_workspace(const SgemmArgs& p);
std::size_t gemv_workspace(const SgemvArgs& p);
std::size_t transpose_workspace(const TransposeArgs& p);

// A triple loop.
FL_COEFFICIENTS(LoopCost, start_us, flops_per_us);
double loop_us(const SgemmArgs& p, const DeviceSpec&, const LoopCost& cost);

// Both operands packed: so many operations' worth of time for an element. tile_us: the end of a tile.
FL_COEFFICIENTS(PackedCost, start_us, flops_per_us, pack_a, pack_b, tile_us);
double packed_us(const SgemmArgs& p, const CpuBlocking& blocking, const PackedCost& cost);
template <CpuBlocking blocking>
double packed_us(const SgemmArgs& p, const DeviceSpec&, const PackedCost& cost) {
  return packed_us(p, blocking, cost);
}

// The same by terms. Hyperthreads share the unit of tile products: with several threads it takes `several` times as
// long as their number says.
FL_COEFFICIENTS(TermCost, start_us, flops_per_us, pack_a, pack_b, tile_us, several);
double term_us(const SgemmArgs& p, const DeviceSpec&, const TermCost& cost);

// Unpacked: rows of B that several strips of A read should be near; A is read again for every panel of B, and C is
// written one panel at a time, which memory dislikes. by_panels: how much longer it takes where B is read panel by
// panel (small_sgemm.h).
FL_COEFFICIENTS(SmallCost, start_us, flops_per_us, row_us, pack_b, far_b_bytes_per_us, few_rows_bytes_per_us,
                a_again_bytes_per_us, c_bytes_per_us, by_panels);
double small_us(const SgemmArgs& p, const CpuBlocking& blocking, const SmallCost& cost);
template <CpuBlocking blocking>
double small_us(const SgemmArgs& p, const DeviceSpec&, const SmallCost& cost) {
  return small_us(p, blocking, cost);
}

// The larger operand is read while up to four rows of the other, or columns, are multiplied with it: one_row of the
// time with one of them, each_row for each of more; strided and strided_row where it is not contiguous. sum_ns: the end
// of each sum, which is most of the time where k is small.
FL_COEFFICIENTS(RowsCost, start_us, bytes_per_us, one_row, each_row, strided, strided_row, again, again_us, sum_ns);
double rows_us(const SgemmArgs& p, const DeviceSpec&, const RowsCost& cost);

// A is read at bytes_per_us; rows shorter than a few lines cost row_us each beside.
FL_COEFFICIENTS(GemvCost, start_us, bytes_per_us, row_us);
double gemv_us(const SgemvArgs& p, const DeviceSpec&, const GemvCost& cost);
double gemv_loop_us(const SgemvArgs& p, const DeviceSpec&, const GemvCost& cost);  // on one thread

FL_COEFFICIENTS(CopyLoopCost, start_us, bytes_per_us);
double transpose_us(const TransposeArgs& p, const DeviceSpec&, const CopyLoopCost& cost);
double transpose_loop_us(const TransposeArgs& p, const DeviceSpec&, const CopyLoopCost& cost);  // on one thread

}  // namespace fl
