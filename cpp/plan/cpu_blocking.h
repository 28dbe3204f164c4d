// How the packed SGEMM of each instruction set cuts its operands, and how a call is cut into tasks for threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"
#include "plan/transposed.h"

namespace fl {

// MR x NR: the tile in registers. A thread keeps MC x KC of A in its L2 cache, and KC x NC of B within reach of L3.
// KC does not bound the error (micro_kernel.h: chain_length, which divides it), so it is as long as the caches like it.
struct CpuBlocking {
  int64_t MR = 0, NR = 0, MC = 0, KC = 0, NC = 0;
  int64_t rate = 16;  // multiply-adds of a clock cycle, about
};
constexpr CpuBlocking portable_blocking{6, 8, 96, 512, 1024};
constexpr CpuBlocking avx2_blocking{6, 16, 48, 1024, 2048};
// KC 1024 against 512: 1 % on a Zen 4, 2 to 5 % on one thread of a Xeon, whose C comes from further away. MC 126 and
// 168 are level with 84 there on one thread, and 2 to 4 % behind on sixteen.
constexpr CpuBlocking avx512_blocking{14, 32, 84, 1024, 2048, 32};
// Not measured, but from the makers' cache sizes. A panel of B, 24 KiB, stays in L1 while strips of A, 16 KiB each,
// pass by: 64 KiB in a Neoverse. 192 KiB of A in L2: 512 KiB there at least, a quarter of 1 MiB for each of four
// Cortex-A72. 2 MiB of B: an L3 of 32 MiB has so much for each of 16 cores.
constexpr CpuBlocking neon_blocking{8, 12, 96, 512, 1020};

// Products of three bf16 terms (kernels/amx/): MC lines of the operand that stays by KC in L2, beside a panel of the
// other one and the C at hand.
constexpr CpuBlocking term_blocking{32, 32, 256, 512, 1024, 80};
constexpr int64_t term_step = 32;         // lines of a strip, and k of a tile
constexpr int64_t term_header = 16;       // floats in front of a strip
constexpr int64_t term_lines_once = 512;  // up to so many that stay, the other operand is packed for each block
constexpr int64_t term_slices = 2;        // of more, so many slices of k are kept, NC lines at a time
constexpr int64_t least_term_depth = 32;  // below, the bound has no room for three terms (docs/accuracy.md)
constexpr int64_t term_strip_floats(int64_t steps) { return term_header + steps * 6 * 256; }
// Of so many lines and all of k: slice by slice, strip by strip.
constexpr int64_t term_floats(int64_t lines, int64_t k) {
  const int64_t slices = (k + term_blocking.KC - 1) / term_blocking.KC;
  return (lines + term_step - 1) / term_step *
         (slices * term_header + term_strip_floats((k + term_step - 1) / term_step) - term_header);
}

// The unpacked SGEMM packs one panel of B at a time if the rows of B are not contiguous.
constexpr int64_t small_depth = 256;
constexpr int64_t small_panel_floats = 32 * small_depth + 64;  // for each thread; the widest panel has 32 columns
std::size_t small_workspace(const SgemmArgs& p);
bool few_columns(const SgemmArgs& p);  // better computed as its transpose
// Into how many ranges of columns a product of few rows is cut, for each four rows of each product of a batch.
int64_t rows_tasks(const SgemmArgs& p, int threads);

// What a thread of a transpose stages before it writes whole lines: at most two tiles of 128 x 128 floats, each column
// with sixteen of padding.
constexpr std::size_t stage_bytes = std::size_t(2 * 128 * (128 + 16)) * sizeof(float);

// C is cut into rows x columns tasks.
struct Grid {
  int64_t rows, columns;
};
Grid task_grid(const SgemmArgs& p, const CpuBlocking& blocking, int threads);

// How the threads of a packed SGEMM share it: each product is cut into groups of columns, and a group into strips of
// rows, which the threads take as they come.
struct Cut {
  int64_t groups = 1;   // of columns, in each product
  int64_t columns = 0;  // of the widest group, in whole panels
  bool shared = false;  // several threads may work on a group; otherwise each takes whole ones
  bool keep = false;    // a thread keeps the whole B of its group packed
};
Cut cut_for_threads(const SgemmArgs& p, const CpuBlocking& blocking, int threads);

// What the workspace of a packed SGEMM holds: how many strips of each shared group are taken, and for each thread
// packed A, then packed B. No larger than the call needs.
struct PackLayout {
  int64_t counters;          // floats before the first thread's part
  int64_t a_floats, floats;  // of each thread
};
constexpr int64_t counter_floats = 32;  // a cache line and its neighbour for each
PackLayout pack_layout(const SgemmArgs& p, const CpuBlocking& blocking, const Cut& cut);
// For so many shared groups, and so many floats of packed operands at once.
PackLayout pack_layout(int64_t counters, int64_t a_floats, int64_t b_floats);
// Of terms: before those of A there is room for a panel of the unpacked SGEMM.
PackLayout term_layout(const SgemmArgs& p, const Cut& cut);
// Whether rows stay, where no operand is kept from call to call: where they are one block, so that both operands are
// packed once. Else columns: rows of A that pass by are fetched ahead by the processor.
constexpr bool term_rows_stay(const SgemmArgs& p) { return p.m <= term_blocking.MC && p.m <= p.n; }

// Floats of packed B that a thread keeps at most: 32 MiB in all threads are within reach of an L3 cache.
int64_t most_kept(int threads);
// What packing takes: clock cycles for an element, and for columns of B, which a copy of contiguous rows hides in part.
constexpr double pack_cycles = 0.75;
double pack_cycles_of(int64_t columns, const SgemmArgs& p, const CpuBlocking& blocking);
// How many small products of a batch make a task worth handing to a thread.
int64_t batch_group(const SgemmArgs& p, int threads);

}  // namespace fl
