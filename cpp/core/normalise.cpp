#include "core/normalise.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/stored.h"

namespace fl {
namespace {

template <class T>
void tidy_strides(MatrixView<T>& x, int64_t rows, int64_t cols, int64_t batch) {
  if (batch == 1) x.bs = 0;
  if (rows == 0 || cols == 0) x.bs = 0, x.cs = 1, x.rs = ceil_div(std::max<int64_t>(cols, 1), 4) * 4;
  if (cols == 1) x.cs = 1;
  if (rows == 1) {
    // A single row of unit stride is row-major with any ld: one that no alignment rule objects to. A strided row is a
    // column of a transposed matrix.
    if (x.cs == 1) x.rs = ceil_div(std::max<int64_t>(cols, 1), 4) * 4;
    else x.rs = 1;
  }
}
template <class T>
void tidy_strides(VectorView<T>& x, int64_t size, int64_t batch) {
  if (batch == 1 || size == 0) x.bs = 0;
  if (size <= 1) x.inc = 1;
}

// Rules ask how the first number of an operand in 16 bits is aligned: it is seen where it lies.
void see_in_place(const float*& data, Stored& stored) {
  if (!stored.in_16_bits() || !data) return;
  stored.origin = data = reinterpret_cast<const float*>(place_of<Half>(stored, data));
}

// A batch of transposes exchanges axes of three-dimensional arrays, and any of them may be called rows, columns and
// batch. If A is contiguous along one axis and B along another, these become its columns and its rows: what the fast
// rows of the table take. So both in Fortran order, and stacks along the last axis.
void rename_axes(TransposeArgs& p) {
  struct Axis {
    int64_t size, in_a, in_b;
  };
  const Axis axes[3] = {{p.m, p.a.rs, p.b.cs}, {p.n, p.a.cs, p.b.rs}, {p.batch, p.a.bs, p.b.bs}};
  int along_a = -1, along_b = -1;
  for (int axis : {1, 0, 2})
    if (along_a < 0 && axes[axis].in_a == 1) along_a = axis;
  for (int axis : {0, 1, 2})
    if (along_b < 0 && axes[axis].in_b == 1) along_b = axis;
  if (along_a < 0 || along_b < 0 || along_a == along_b) return;
  const Axis &rows = axes[along_b], &cols = axes[along_a], &batch = axes[3 - along_a - along_b];
  p.m = rows.size, p.n = cols.size, p.batch = batch.size;
  p.a.rs = rows.in_a, p.a.cs = cols.in_a, p.a.bs = batch.in_a;
  p.b.cs = rows.in_b, p.b.rs = cols.in_b, p.b.bs = batch.in_b;
}

// Strides along a dimension of size 1 mean nothing.
bool is_symmetric(const SgemmArgs& p) {
  const auto equal = [](int64_t size, int64_t x, int64_t y) { return size == 1 || x == y; };
  return p.a.data && p.a.data == p.b.data && p.stored[0] == p.stored[1] && p.m == p.n && p.m > 1 && p.k > 0 &&
         p.beta == 0.0f && p.a.rs == p.b.cs && equal(p.k, p.a.cs, p.b.rs) && equal(p.batch, p.a.bs, p.b.bs);
}

// What alpha times an empty sum is to be, whatever alpha: nothing, not NaN. Beside beta * C that is -0, which alone
// leaves a zero its sign.
float empty_term(float beta) { return beta == 0.0f ? 0.0f : -0.0f; }

}  // namespace

bool swaps_operands(const SgemmArgs& p) {
  Matrix c = p.c;
  tidy_strides(c, p.m, p.n, p.batch);
  return c.cs != 1 && c.rs == 1;
}

bool normalise(SgemmArgs& p) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return false;
  if (p.beta == 0.0f) p.addend = {};
  if (p.alpha == 0.0f) p.k = 0;
  if (p.k == 0) {
    if (p.beta == 1.0f && !p.addend.data) return false;
    p.stored = {};
    p.alpha = empty_term(p.beta);
  }
  p.symmetric = is_symmetric(p);
  tidy_strides(p.a, p.m, p.k, p.batch);
  tidy_strides(p.b, p.k, p.n, p.batch);
  tidy_strides(p.c, p.m, p.n, p.batch);
  if (p.addend.data) tidy_strides(p.addend, p.m, p.n, p.batch);
  if (swaps_operands(p)) {
    std::swap(p.a, p.b);
    std::swap(p.stored[0], p.stored[1]);
    std::swap(p.m, p.n);
    std::swap(p.a.rs, p.a.cs);
    std::swap(p.b.rs, p.b.cs);
    std::swap(p.c.rs, p.c.cs);
    std::swap(p.addend.rs, p.addend.cs);
  }
  see_in_place(p.a.data, p.stored[0]), see_in_place(p.b.data, p.stored[1]);
  return true;
}

bool normalise(SgemvArgs& p) {
  if (p.m == 0 || p.batch == 0) return false;
  if (p.alpha == 0.0f) p.n = 0;
  if (p.n == 0) {
    if (p.beta == 1.0f) return false;
    p.stored = {};
    p.alpha = empty_term(p.beta);
  }
  tidy_strides(p.a, p.m, p.n, p.batch);
  tidy_strides(p.x, p.n, p.batch);
  tidy_strides(p.y, p.m, p.batch);
  see_in_place(p.a.data, p.stored[0]), see_in_place(p.x.data, p.stored[1]);
  return true;
}

bool normalise(TransposeArgs& p) {
  if (p.m == 0 || p.n == 0 || p.batch == 0) return false;
  tidy_strides(p.a, p.m, p.n, p.batch);
  tidy_strides(p.b, p.n, p.m, p.batch);
  rename_axes(p);
  see_in_place(p.a.data, p.stored[0]);
  return true;
}

ConstMatrix copied_densely(const ConstMatrix& x, int64_t rows, int64_t cols, int64_t batch) {
  ConstMatrix copy{nullptr, 0, 0, 0};
  struct Axis {
    int64_t size, given;
    int64_t& stride;
    int64_t distance() const { return given == 0 ? std::numeric_limits<int64_t>::max() : std::abs(given); }
  };
  const Axis axes[] = {{x.bs == 0 ? 1 : batch, x.bs, copy.bs}, {rows, x.rs, copy.rs}, {cols, x.cs, copy.cs}};
  const Axis* nearest_last[] = {&axes[0], &axes[1], &axes[2]};
  std::ranges::stable_sort(nearest_last, [](const Axis* a, const Axis* b) { return a->distance() > b->distance(); });
  int64_t elements = 1;
  for (int i = 2; i >= 0; --i) {
    const Axis& axis = *nearest_last[i];
    if (axis.size == 1) continue;
    axis.stride = elements;
    elements *= axis.size;
  }
  tidy_strides(copy, rows, cols, batch);
  return copy;
}

}  // namespace fl
