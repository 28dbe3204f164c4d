// What a kernel of the simulated device may rely on: that its operands are live memory of the device.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/halves.h"
#include "core/problem.h"
#include "core/triangle_copy.h"
#include "memory.h"

namespace simulated {

struct Axis {
  int64_t size, stride;
};

template <class T>
void check_operand(const T* data, std::initializer_list<Axis> axes, const char* name, const fl::Stored& stored = {}) {
  int64_t first = 0, last = 0;
  for (const Axis& axis : axes) {
    if (axis.size == 0) return;
    (axis.stride < 0 ? first : last) += (axis.size - 1) * axis.stride;
  }
  const std::size_t size = fl::size_of(stored.element), elements = std::size_t(last - first + 1);
  const char* const begin = reinterpret_cast<const char*>(stored.origin ? stored.origin : data);
  const int64_t before = stored.origin ? reinterpret_cast<const float*>(data) - stored.origin : 0;
  check_device_access(begin + (before + first) * int64_t(size), elements * size, name);
}

template <class T>
void check_matrix(const fl::MatrixView<T>& x, int64_t rows, int64_t cols, int64_t batch, const char* name,
                  const fl::Stored& stored = {}) {
  check_operand(x.data, {{batch, x.bs}, {rows, x.rs}, {cols, x.cs}}, name, stored);
}

inline void check_operands(const fl::SgemmArgs& p) {
  check_matrix(p.a, p.m, p.k, p.batch, "A of a product", p.stored[0]);
  check_matrix(p.b, p.k, p.n, p.batch, "B of a product", p.stored[1]);
  check_matrix(p.c, p.m, p.n, p.batch, "C of a product");
  if (p.addend.data) check_matrix(p.addend, p.m, p.n, p.batch, "the addend of a product");
}
inline void check_operands(const fl::SgemvArgs& p) {
  check_matrix(p.a, p.m, p.n, p.batch, "A of a matrix-vector product", p.stored[0]);
  check_operand(p.x.data, {{p.batch, p.x.bs}, {p.n, p.x.inc}}, "x of a matrix-vector product");
  check_operand(p.y.data, {{p.batch, p.y.bs}, {p.m, p.y.inc}}, "y of a matrix-vector product");
}
inline void check_operands(const fl::TransposeArgs& p) {
  check_matrix(p.a, p.m, p.n, p.batch, "A of a transpose", p.stored[0]);
  check_matrix(p.b, p.n, p.m, p.batch, "B of a transpose");
}
inline void check_operands(const fl::TriangleCopy& p) {
  check_matrix(p.from, p.n, p.n, p.batch, "the source of a triangle");
  check_matrix(p.to, p.n, p.n, p.batch, "the target of a triangle");
}
inline long widened_halves = 0;  // numbers that have come in 16 bits
inline void check_operands(const fl::HalfLines& p) {
  check_device_access(p.from, std::size_t(p.lines) * p.width * sizeof(uint16_t), "lines in 16 bits");
  check_operand(p.to, {{p.lines, p.to_line}, {p.width, 1}}, "lines of what was in 16 bits");
  widened_halves += long(p.lines) * p.width;
}
inline void check_operands(unsigned) {}  // a number, beside the operands

}  // namespace simulated
