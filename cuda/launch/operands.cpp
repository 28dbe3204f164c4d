#include "cuda/launch/operands.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/errors.h"
#include "cost/rules.h"
#include "device/host_calls.h"

namespace fl::cuda {
namespace {

// 16-byte alignment for every line is what the vector kernels need. Longer lines begin on a sector (32 bytes) or a
// cache line (128 bytes) as well, as long as that adds little to what crosses the link.
int64_t padded_for_copies(int64_t length) {
  const int64_t unit = length >= 256 ? 32 : length >= 32 ? 8 : 4;
  return std::max<int64_t>(ceil_div(length, unit) * unit, unit);
}

template <class T>
MatrixView<T> row_major_view(int64_t rows, int64_t cols, bool batched) {
  return {nullptr, padded_for_copies(cols), 1, batched ? rows * padded_for_copies(cols) : 0};
}

// The operand's own order where it has one. A batch stride of 0 stays: one copy serves every problem.
ConstMatrix input_view(const ConstMatrix& host, int64_t rows, int64_t cols) {
  ConstMatrix view = row_major_view<const float>(rows, cols, host.bs != 0);
  if (row_major(host) || !unit_stride(host)) return view;
  view = row_major_view<const float>(cols, rows, host.bs != 0);
  std::swap(view.rs, view.cs);
  return view;
}

template <class T>
Lines<T> lines(const MatrixView<T>& host, const MatrixView<T>& layout, int64_t rows, int64_t cols, int64_t batch,
               const Stored& stored = {}) {
  const int64_t problems = host.bs == 0 ? 1 : batch;
  if (row_major(layout)) return {host.data, problems, rows, cols, host.bs, host.rs, host.cs, ld(layout), stored};
  return {host.data, problems, cols, rows, host.bs, host.cs, host.rs, ld(layout), stored};
}

template <class T>
Lines<T> lines(const VectorView<T>& host, int64_t size, int64_t batch, const Stored& stored = {}) {
  return {host.data, host.bs == 0 ? 1 : batch, 1, size, host.bs, 0, host.inc, padded_for_copies(size), stored};
}

}  // namespace

template <>
SgemmArgs device_layout(const SgemmArgs& host) {
  SgemmArgs layout = host;
  layout.stored = {};
  layout.a = input_view(host.a, host.m, host.k);
  layout.b = input_view(host.b, host.k, host.n);
  if (host.symmetric) layout.b = {nullptr, layout.a.cs, layout.a.rs, layout.a.bs};
  layout.c = row_major_view<float>(host.m, host.n, host.batch > 1);
  return layout;
}

template <>
SgemvArgs device_layout(const SgemvArgs& host) {
  SgemvArgs layout = host;
  layout.stored = {};
  layout.a = input_view(host.a, host.m, host.n);
  layout.x = {nullptr, 1, host.x.bs ? padded_for_copies(host.n) : 0};
  layout.y = {nullptr, 1, host.batch > 1 ? padded_for_copies(host.m) : 0};
  return layout;
}

template <>
TransposeArgs device_layout(const TransposeArgs& host) {
  TransposeArgs layout = host;
  layout.stored = {};
  layout.a = row_major_view<const float>(host.m, host.n, host.a.bs != 0);
  layout.b = row_major_view<float>(host.n, host.m, host.batch > 1);
  return layout;
}

Operands operands(const SgemmArgs& host, SgemmArgs& layout) {
  const Input a{lines(host.a, layout.a, host.m, host.k, host.batch, host.stored[0]), &layout.a.data,
                !row_major(layout.a), layout.symmetric ? &layout.b.data : nullptr};
  Input b;
  if (!layout.symmetric)
    b = {lines(host.b, layout.b, host.k, host.n, host.batch, host.stored[1]), &layout.b.data, !row_major(layout.b)};
  return {{a, b}, {lines(host.c, layout.c, host.m, host.n, host.batch), &layout.c.data, host.beta != 0.0f}};
}

Operands operands(const SgemvArgs& host, SgemvArgs& layout) {
  return {{{{lines(host.a, layout.a, host.m, host.n, host.batch, host.stored[0]), &layout.a.data, !row_major(layout.a)},
            {lines(host.x, host.n, host.batch, host.stored[1]), &layout.x.data}}},
          {lines(host.y, host.m, host.batch), &layout.y.data, host.beta != 0.0f}};
}

Operands operands(const TransposeArgs& host, TransposeArgs& layout) {
  return {{{{lines(host.a, layout.a, host.m, host.n, host.batch, host.stored[0]), &layout.a.data}, {}}},
          {lines(host.b, layout.b, host.n, host.m, host.batch), &layout.b.data, false}};
}

template <class T>
std::size_t device_bytes(const Lines<T>& operand) {
  if (operand.empty()) return 0;
  const double bytes = double(operand.total()) * double(operand.ld) * sizeof(float);
  if (bytes > double(int64_t(1) << 60))
    throw OutOfMemory("an operand of " + std::to_string(operand.total()) + " x " + std::to_string(operand.length) +
                      " elements does not fit in device memory");
  return std::size_t(operand.total() * operand.ld) * sizeof(float);
}
template std::size_t device_bytes(const Lines<float>&);
template std::size_t device_bytes(const Lines<const float>&);

std::size_t device_bytes(const Operands& operands) {
  std::size_t bytes = aligned(device_bytes(operands.output.host));
  for (const Input& input : operands.inputs) bytes += aligned(device_bytes(input.host));
  return bytes;
}

char* place(const Operands& operands, char* memory) {
  for (const Input& input : operands.inputs) {
    if (input.device) *input.device = reinterpret_cast<const float*>(memory);
    if (input.also) *input.also = *input.device;
    memory += aligned(device_bytes(input.host));
  }
  *operands.output.device = reinterpret_cast<float*>(memory);
  return memory + aligned(device_bytes(operands.output.host));
}

}  // namespace fl::cuda
