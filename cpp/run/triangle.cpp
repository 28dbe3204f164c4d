#include "run/triangle.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "core/operations.h"
#include "runtime/host_workspace.h"
#include "runtime/thread_pool.h"
#include "runtime/threading.h"

namespace fl {
namespace {

// Squares on the diagonal of this size, or up to it, are computed apart from C, as both of their triangles are.
constexpr int64_t smallest_square = 128;

constexpr Triangle other(Triangle part) { return part == Triangle::lower ? Triangle::upper : Triangle::lower; }

// Calls visit(batch, i, first, last) for the rows i of squares of n rows. Columns [first, last) are those of the
// triangle, with that of the diagonal or without.
template <class Visit>
void for_each_row(int64_t n, int64_t batch, Triangle part, bool diagonal, Visit&& visit) {
  constexpr int64_t rows = 32;
  const int64_t chunks = ceil_div(n, rows), beside = diagonal ? 1 : 0;
  const bool shared = double(n) * double(n) * double(batch) > 1e5;
  auto task = [&](int64_t index, int) {
    const int64_t at = index / chunks, begin = index % chunks * rows, end = std::min(n, begin + rows);
    for (int64_t i = begin; i < end; ++i) {
      if (part == Triangle::lower) visit(at, i, int64_t{0}, i + beside);
      else visit(at, i, i + 1 - beside, n);
    }
  };
  parallel_for(chunks * batch, shared ? num_threads() : 1, task);
}

template <class T>
T* row_of(const MatrixView<T>& x, int64_t batch, int64_t i) {
  return x.data + batch * x.bs + i * x.rs;
}

void copy_triangle(const ConstMatrix& from, const Matrix& to, int64_t n, int64_t batch, Triangle part) {
  for_each_row(n, batch, part, true, [&](int64_t at, int64_t i, int64_t first, int64_t last) {
    const float* const source = row_of(from, at, i);
    float* const target = row_of(to, at, i);
    if (from.cs == 1 && to.cs == 1) std::copy(source + first, source + last, target + first);
    else
      for (int64_t j = first; j < last; ++j) target[j * to.cs] = source[j * from.cs];
  });
}

ConstMatrix read_only(const Matrix& x) { return {x.data, x.rs, x.cs, x.bs}; }

// C and its transpose change places where the columns of C are what lies together.
Triangle by_rows(SgemmArgs& p, Triangle part) {
  if (p.c.cs == 1 || p.c.rs != 1) return part;
  std::swap(p.c.rs, p.c.cs);
  std::swap(p.addend.rs, p.addend.cs);
  return other(part);
}

class TriangleOfProduct {
 public:
  TriangleOfProduct(const SgemmArgs& product, Triangle part, const CallOptions& options)
      : p_(product), part_(part), options_(options) {}

  void compute() {
    const Device device = fl::device_of(p_, options_);
    if (device.kind == Device::automatic) return;  // nothing is left to do
    const bool whole = device.kind == Device::cuda || !options_.kernel.empty();
    options_.device = device;
    if (whole) square(0, p_.n);
    else triangle(0, p_.n);
  }

 private:
  // Two triangles of half the size, and the rectangle between them.
  void triangle(int64_t first, int64_t size) {
    if (size <= smallest_square) return square(first, size);
    const int64_t half = ceil_div(size / 2, smallest_square) * smallest_square, rest = size - half;
    const bool lower = part_ == Triangle::lower;
    run_part(lower ? part_of(first + half, rest, first, half) : part_of(first, half, first + half, rest));
    triangle(first, half);
    triangle(first + half, rest);
  }

  // On the diagonal: in memory of its own, as both triangles are computed. What C has beyond its own is not read.
  void square(int64_t first, int64_t size) {
    SgemmArgs p = part_of(first, size, first, size);
    const Matrix c = p.c;
    const std::size_t elements = std::size_t(size) * std::size_t(size) * std::size_t(p.batch);
    if (!memory_) memory_.emplace(elements * sizeof(float));
    float* const data = static_cast<float*>(memory_->data());
    p.c = {data, size, 1, size * size};
    if (p.beta != 0.0f) {
      std::fill_n(data, elements, 0.0f);
      copy_triangle(read_only(c), p.c, size, p.batch, part_);
    }
    run_part(p);
    copy_triangle(read_only(p.c), c, size, p.batch, part_);
  }

  SgemmArgs part_of(int64_t row, int64_t rows, int64_t col, int64_t cols) const {
    SgemmArgs p = p_;
    p.m = rows, p.n = cols;
    if (p.a.data) p.a.data += row * p.a.rs, p.b.data += col * p.b.cs;
    p.c.data += row * p.c.rs + col * p.c.cs;
    return p;
  }

  // The first is the largest, and the one that the log tells of.
  void run_part(const SgemmArgs& p) {
    const std::function<void(const std::string&)>* const log = options_.log;
    const std::function<void(const std::string&)> of_part = [&](const std::string& line) {
      (*log)("its largest part, " + describe(p) + ": " + line);
    };
    if (log) options_.log = &of_part;
    run(p, options_);
    options_.log = log;
    options_.log_choice = false;
  }

  const SgemmArgs& p_;
  Triangle part_;
  CallOptions options_;
  std::optional<HostWorkspace> memory_;  // of the largest square, which is the first
};

}  // namespace

void run_triangle(const SgemmArgs& product, Triangle part, const CallOptions& options) {
  if (product.n == 0 || product.batch == 0) return;
  const ThreadCount threads;
  SgemmArgs p = product;
  part = by_rows(p, part);
  if (p.addend.data && p.beta != 0.0f) copy_triangle(p.addend, p.c, p.n, p.batch, part);
  p.addend = {};
  TriangleOfProduct(p, part, options).compute();
}

void clear_beside(const SgemmArgs& product, Triangle part) {
  SgemmArgs p = product;
  part = other(by_rows(p, part));
  for_each_row(p.n, p.batch, part, false, [&](int64_t at, int64_t i, int64_t first, int64_t last) {
    float* const row = row_of(p.c, at, i);
    for (int64_t j = first; j < last; ++j) row[j * p.c.cs] = 0.0f;
  });
}

}  // namespace fl
