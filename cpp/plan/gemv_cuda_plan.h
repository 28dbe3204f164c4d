// The GPU's SGEMV: what its rules and its kernels have to agree on. What decides the order of a sum depends on the call
// and on frozen constants alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/problem.h"

namespace fl {

// How sgemv_split_columns cuts A, whose columns are contiguous: a block has a tile of the outputs and a range of the
// columns, of which each of its groups of threads takes every groups-th.
struct SplitColumnsPlan {
  int outputs;   // per block
  bool vectors;  // columns are read as float4
  int threads, groups;
  int splits = 1;        // ranges of the columns
  unsigned columns = 0;  // in each range but the last

  int64_t columns_of_thread() const { return (int64_t{columns} + groups - 1) / groups; }
  // What is read over what is asked for, where the part of a column in a tile ends within sectors. Of what comes from
  // memory, L2 has most of the rest for the next block.
  double sectors_read(bool near) const { return vectors ? 1.0 : 1.0 + (near ? 11.0 : 2.75) / outputs; }
};
SplitColumnsPlan split_columns_plan(const SgemvArgs& p);
// How it cuts a few long rows: `splits` ranges of `length` elements, each range as a product of its own, and what is
// left. 0: not at all.
struct SplitRowsPlan {
  int splits = 0;
  int64_t length = 0, left = 0;
  int sums() const { return splits + (left > 0); }
};
SplitRowsPlan split_rows_plan(const SgemvArgs& p);
std::size_t split_columns_workspace(const SgemvArgs& p);

// The threads of a block that has a row of long_rows, and how many blocks of a cluster share a row: as many as fill the
// device with threads, but none where a thread has less than ROW_ELEMENTS. A larger block reaches further along a row
// before clusters are needed, which cost a microsecond. Both decide the order of a sum by the number of
// multiprocessors: bits may differ between devices that differ in it.
constexpr int MAX_ROW_CLUSTER = 8, ROW_ELEMENTS = 16;
int long_rows_threads(const SgemvArgs& p, int64_t multiprocessors);
int blocks_per_row(const SgemvArgs& p, int64_t multiprocessors, int threads);

// Whether A in 16 bits lies as its float32 copy would: threads then find their share of it in the same places.
bool read_as_copied(const SgemvArgs& p);

}  // namespace fl
