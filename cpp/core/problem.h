// What a call asks for, as plain data. Every kernel, CPU or GPU, takes one of these structs.
//
// Layout convention (stated once, here): a matrix is a strided view, element (i, j) of batch b at
//     data[b * bs + i * rs + j * cs]        strides in elements, any sign, 0 allowed where it is only read
// A row-major matrix has cs == 1 and rs == ld; a transposed one is the same memory with rs == 1 and cs == ld.
// A transpose flag of the BLAS is therefore a swap of two strides, and no kernel needs to be told about it twice.
#pragma once

#include <cstdint>

#include "core/element.h"
#include "core/export.h"

namespace fl {

template <class T>
struct MatrixView {
  T* data = nullptr;
  int64_t rs = 0;  // row stride
  int64_t cs = 1;  // column stride
  int64_t bs = 0;  // batch stride
  bool operator==(const MatrixView&) const = default;
};
template <class T>
struct VectorView {
  T* data = nullptr;
  int64_t inc = 1;  // stride
  int64_t bs = 0;   // batch stride
  bool operator==(const VectorView&) const = default;
};
using ConstMatrix = MatrixView<const float>;
using Matrix = MatrixView<float>;
using ConstVector = VectorView<const float>;
using Vector = VectorView<float>;

// reproducible: the order of the sums is that of docs/reproducible.md, in any kernel on any device.
enum class Precision { strict, accurate, reproducible };

// C[m,n] = alpha * A[m,k] @ B[k,n] + beta * addend, for each of `batch` problems.
// beta == 0 never reads the addend; the caller has already turned alpha == 0 into k == 0, so A and B are not read then.
struct FL_EXPORT SgemmArgs {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  float alpha = 1.0f, beta = 0.0f;
  ConstMatrix a, b;
  Matrix c;
  // Without data it is C itself. Else it shares no memory with C; in device memory alone, rows of the table that do not
  // read it (Traits::addend) get it copied to C.
  ConstMatrix addend;
  Precision precision = Precision::accurate;
  // B is A transposed, the same memory with its strides swapped, and beta is 0: C is symmetric. normalise() finds it;
  // what cuts a call up forgets it. Rows with Traits::triangle compute one triangle of C then, others take no notice.
  bool symmetric = false;
  StoredInputs stored = {};  // what the memory of A and B holds
  bool operator==(const SgemmArgs&) const = default;
};

constexpr ConstMatrix addend_of(const SgemmArgs& p) {
  return p.addend.data ? p.addend : ConstMatrix{p.c.data, p.c.rs, p.c.cs, p.c.bs};
}

// y[m] = alpha * A[m,n] @ x[n] + beta * y. The transposed product is the same call with m, n and the strides swapped.
struct FL_EXPORT SgemvArgs {
  int64_t m = 0, n = 0, batch = 1;
  float alpha = 1.0f, beta = 0.0f;
  ConstMatrix a;
  ConstVector x;
  Vector y;
  StoredInputs stored = {};  // what the memory of A and x holds
  bool operator==(const SgemvArgs&) const = default;
};

// B[n,m] = A[m,n] transposed: b(j, i) = a(i, j). `in_place`: a and b are the same view of square matrices; else they
// share no memory.
struct FL_EXPORT TransposeArgs {
  int64_t m = 0, n = 0, batch = 1;
  ConstMatrix a;
  Matrix b;
  bool in_place = false;
  StoredInputs stored = {};  // what the memory of A holds
  bool operator==(const TransposeArgs&) const = default;
};

constexpr int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }

}  // namespace fl
