#include "run/run.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/operations.h"
#include "device/device_memory.h"
#include "device/launches.h"
#include "device/streams.h"
#include "run/forecast.h"
#include "runtime/host_memory.h"
#include "runtime/thread_pool.h"
#include "runtime/threading.h"

namespace fl {
namespace {

// Squares on the diagonal of this size, or up to it, are computed apart from C, as both of their triangles are.
constexpr int64_t smallest_square = 128;

constexpr Triangle other(Triangle part) { return part == Triangle::lower ? Triangle::upper : Triangle::lower; }

// Calls visit(batch, i) for the rows i of matrices with n rows.
template <class Visit>
void for_each_row(int64_t n, int64_t batch, Visit&& visit) {
  constexpr int64_t rows = 32;
  const int64_t chunks = ceil_div(n, rows);
  const bool shared = double(n) * double(n) * double(batch) > 1e5;
  auto task = [&](int64_t index, int) {
    const int64_t at = index / chunks, begin = index % chunks * rows, end = std::min(n, begin + rows);
    for (int64_t i = begin; i < end; ++i) visit(at, i);
  };
  parallel_for(chunks * batch, shared ? num_threads() : 1, task);
}

// Columns [first, last) of a row.
struct Columns {
  int64_t first, last;
};
Columns inside(Triangle part, int64_t i, int64_t n) {
  return part == Triangle::lower ? Columns{0, i + 1} : Columns{i, n};
}
Columns outside(Triangle part, int64_t i, int64_t n) {
  return part == Triangle::lower ? Columns{i + 1, n} : Columns{0, i};
}

template <class T>
T* row_of(const MatrixView<T>& x, int64_t batch, int64_t i) {
  return x.data + batch * x.bs + i * x.rs;
}

void clear_row(float* row, int64_t step, const Columns& columns) {
  for (int64_t j = columns.first; j < columns.last; ++j) row[j * step] = 0.0f;
}

void copy_row(const float* from, int64_t from_step, float* to, int64_t to_step, const Columns& columns) {
  const auto [first, last] = columns;
  if (from_step == 1 && to_step == 1) std::copy(from + first, from + last, to + first);
  else
    for (int64_t j = first; j < last; ++j) to[j * to_step] = from[j * from_step];
}

void copy_in_host_memory(const TriangleCopy& p) {
  for_each_row(p.n, p.batch, [&](int64_t at, int64_t i) {
    float* const row = row_of(p.to, at, i);
    copy_row(row_of(p.from, at, i), p.from.cs, row, p.to.cs, inside(p.part, i, p.n));
    if (p.other == OtherTriangle::zero) clear_row(row, p.to.cs, outside(p.part, i, p.n));
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

std::shared_ptr<void> host_memory(std::size_t bytes) {
  const auto memory = std::make_shared<HostWorkspace>(bytes);
  return {memory, memory->data()};
}

class TriangleOfProduct {
 public:
  TriangleOfProduct(const SgemmArgs& product, Triangle part, const CallOptions& options)
      : p_(product), part_(part), options_(options) {}

  void compute(OtherTriangle other_triangle) {
    if (!options_.device_memory) prepare(std::exchange(other_triangle, OtherTriangle::kept));
    options_.device = fl::device_of(p_, options_);
    const Device::Kind kind = options_.device.kind;
    if (kind == Device::automatic) return;  // nothing is left to do
    if (kind == Device::cuda || !options_.kernel.empty()) square(0, p_.n, other_triangle);
    else triangle(0, p_.n);
  }

 private:
  // In host memory: what is added, and what is beside the triangle, is in C before anything is computed.
  void prepare(OtherTriangle other_triangle) {
    if (p_.addend.data && p_.beta != 0.0f) copy(p_.addend, p_.c, p_.n, OtherTriangle::kept);
    p_.addend = {};
    if (other_triangle == OtherTriangle::zero) clear_other();
  }

  // Two triangles of half the size, and the rectangle between them.
  void triangle(int64_t first, int64_t size) {
    if (size <= smallest_square) return square(first, size, OtherTriangle::kept);
    const int64_t half = ceil_div(size / 2, smallest_square) * smallest_square, rest = size - half;
    const bool lower = part_ == Triangle::lower;
    run_part(lower ? part_of(first + half, rest, first, half) : part_of(first, half, first + half, rest));
    triangle(first, half);
    triangle(first + half, rest);
  }

  // On the diagonal: in memory of its own, as both triangles are computed. What is added is read in this one alone.
  void square(int64_t first, int64_t size, OtherTriangle other_triangle) {
    SgemmArgs p = part_of(first, size, first, size);
    const Matrix c = p.c;
    const ConstMatrix added = addend_of(p);
    p.c = {memory(size), size, 1, size * size};
    p.addend = {};
    if (p.beta != 0.0f) copy(added, p.c, size, OtherTriangle::zero);
    run_part(p);
    copy(read_only(p.c), c, size, other_triangle);
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

  // Of the largest square, which is the first.
  float* memory(int64_t size) {
    const std::size_t bytes = std::size_t(size) * std::size_t(size) * std::size_t(p_.batch) * sizeof(float);
    if (!memory_) memory_ = options_.device_memory ? cuda::allocate(device(), bytes, stream()) : host_memory(bytes);
    return static_cast<float*>(memory_.get());
  }

  void copy(const ConstMatrix& from, const Matrix& to, int64_t size, OtherTriangle other_triangle) const {
    const TriangleCopy triangle{size, p_.batch, part_, other_triangle, from, to};
    if (options_.device_memory) cuda::copy_triangle(triangle, device(), stream());
    else copy_in_host_memory(triangle);
  }

  void clear_other() const {
    for_each_row(p_.n, p_.batch,
                 [&](int64_t at, int64_t i) { clear_row(row_of(p_.c, at, i), p_.c.cs, outside(part_, i, p_.n)); });
  }

  int device() const { return options_.device.ordinal; }
  void* stream() const { return options_.stream ? options_.stream : cuda::own_stream(device()); }

  SgemmArgs p_;
  Triangle part_;
  CallOptions options_;
  std::shared_ptr<void> memory_;
};

}  // namespace

void run_triangle(const SgemmArgs& product, Triangle part, OtherTriangle other_triangle, const CallOptions& options) {
  if (product.n == 0 || product.batch == 0) return;
  const ThreadCount threads;
  SgemmArgs p = product;
  part = by_rows(p, part);
  TriangleOfProduct(p, part, options).compute(other_triangle);
}

}  // namespace fl
