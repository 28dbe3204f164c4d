// Operands in device memory that no product kernel takes as they lie: packed copies, made and brought back on a stream.
#include <algorithm>
#include <string_view>

#include "core/operations.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"
#include "device/launches.h"

namespace fl::cuda {
namespace {

template <class T>
bool rows_follow(const MatrixView<T>& x, int64_t cols) {
  return x.cs == 1 && x.rs >= cols;
}
// C or F order. An empty operand (k == 0) is never looked at.
bool direct(const ConstMatrix& x, int64_t rows, int64_t cols) {
  return rows == 0 || cols == 0 || rows_follow(x, cols) || (x.rs == 1 && x.cs >= rows);
}

constexpr int64_t padded(int64_t length) { return ceil_div(length, 4) * 4; }  // what the vector kernels ask for

// One matrix operand: the view of the caller's memory and, if that has to be packed, the same matrix in the layout.
template <class T>
struct PackedOperand {
  const MatrixView<T>& given;
  MatrixView<T>& packed;
  int64_t rows, cols, batch;

  bool is_packed() const { return rows > 0 && cols > 0 && !packed.data; }
  int64_t problems() const { return packed.bs == 0 ? 1 : batch; }
  std::size_t bytes() const {
    return is_packed() ? std::size_t(ceil_div(problems() * rows * packed.rs, 64) * 64) * sizeof(float) : 0;
  }
};
template <class T>
void pack_later(const PackedOperand<T>& x) {
  x.packed = {nullptr, padded(x.cols), 1, x.given.bs == 0 ? 0 : x.rows * padded(x.cols)};
}

PackedOperand<const float> a_of(const SgemmArgs& p, SgemmArgs& q) { return {p.a, q.a, p.m, p.k, p.batch}; }
PackedOperand<const float> b_of(const SgemmArgs& p, SgemmArgs& q) { return {p.b, q.b, p.k, p.n, p.batch}; }
PackedOperand<float> c_of(const SgemmArgs& p, SgemmArgs& q) { return {p.c, q.c, p.m, p.n, p.batch}; }
PackedOperand<const float> a_of(const SgemvArgs& p, SgemvArgs& q) { return {p.a, q.a, p.m, p.n, p.batch}; }

const Kernel<TransposeArgs>& copy_kernel() {
  for (const auto& kernel : kernels<TransposeArgs>())
    if (kernel.name == std::string_view("strided")) return kernel;
  __builtin_unreachable();
}

// A copy is the transpose of the transposed view.
TransposeArgs copy_of(const ConstMatrix& from, const Matrix& to, int64_t rows, int64_t cols, int64_t batch) {
  return {.m = cols, .n = rows, .batch = batch, .a = {from.data, from.cs, from.rs, from.bs}, .b = to};
}

class Packing {
 public:
  Packing(int device, void* stream) : device_(device), stream_(stream_of(stream, device)) {}

  cudaStream_t stream() const { return stream_; }
  template <class T>
  void place(const PackedOperand<T>& x, char*& memory) const {
    if (!x.is_packed()) return;
    const std::size_t bytes = x.bytes();
    x.packed.data = reinterpret_cast<float*>(memory);
    memory += bytes;
  }
  template <class T>
  void pack(const PackedOperand<T>& x) const {
    const Matrix to{const_cast<float*>(x.packed.data), x.packed.rs, x.packed.cs, x.packed.bs};
    copy({x.given.data, x.given.rs, x.given.cs, x.given.bs}, to, x);
  }
  void unpack(const PackedOperand<float>& x) const {
    copy({x.packed.data, x.packed.rs, x.packed.cs, x.packed.bs}, x.given, x);
  }

 private:
  template <class T>
  void copy(const ConstMatrix& from, const Matrix& to, const PackedOperand<T>& x) const {
    run_on_device_operands(copy_kernel(), copy_of(from, to, x.rows, x.cols, x.problems()), device_, stream_);
  }

  int device_;
  cudaStream_t stream_;
};

void run_packed(const Kernel<SgemmArgs>& kernel, const SgemmArgs& args, SgemmArgs& layout, int device, void* stream,
                StatusWords* left) {
  const Packing packing(device, stream);
  const auto a = a_of(args, layout), b = b_of(args, layout);
  const auto c = c_of(args, layout);
  const bool pack_a = a.is_packed(), pack_b = b.is_packed(), pack_c = c.is_packed();
  const PoolBuffer memory(device, a.bytes() + b.bytes() + c.bytes(), packing.stream());
  char* next = memory.data();
  packing.place(a, next), packing.place(b, next), packing.place(c, next);
  if (pack_a) packing.pack(a);
  if (pack_b) packing.pack(b);
  if (pack_c && args.beta != 0.0f && !args.addend.data) packing.pack(c);
  run_on_device_operands(kernel, layout, device, stream, left);
  if (pack_c) packing.unpack(c);
}

void run_packed(const Kernel<SgemvArgs>& kernel, const SgemvArgs& args, SgemvArgs& layout, int device, void* stream,
                StatusWords* left) {
  const Packing packing(device, stream);
  const auto a = a_of(args, layout);
  const PoolBuffer memory(device, a.bytes(), packing.stream());
  char* next = memory.data();
  packing.place(a, next);
  packing.pack(a);
  run_on_device_operands(kernel, layout, device, stream, left);
}

void run_packed(const Kernel<TransposeArgs>& kernel, const TransposeArgs& args, TransposeArgs&, int device,
                void* stream, StatusWords* left) {
  run_on_device_operands(kernel, args, device, stream, left);
}

}  // namespace

void load_addend(const SgemmArgs& p, const Context& ctx) {
  copy_kernel().run(copy_of(p.addend, p.c, p.m, p.n, p.batch), ctx);
}

template <>
std::optional<SgemmArgs> packed_layout(const SgemmArgs& args) {
  const bool a = direct(args.a, args.m, args.k), b = direct(args.b, args.k, args.n), c = rows_follow(args.c, args.n);
  if (a && b && c) return std::nullopt;
  SgemmArgs layout = args;
  if (!a) pack_later(a_of(args, layout));
  if (!b) pack_later(b_of(args, layout));
  if (!c) pack_later(c_of(args, layout));
  return layout;
}
template <>
std::optional<SgemvArgs> packed_layout(const SgemvArgs& args) {
  if (direct(args.a, args.m, args.n)) return std::nullopt;
  SgemvArgs layout = args;
  pack_later(a_of(args, layout));
  return layout;
}
template <>
std::optional<TransposeArgs> packed_layout(const TransposeArgs&) {
  return std::nullopt;  // the kernel "strided" takes any view
}

template <class Args>
void run_on_packed_operands(const Kernel<Args>& kernel, const Args& args, const Args& layout, int device, void* stream,
                            StatusWords* left) {
  require_device(device);
  const DeviceGuard guard(device);
  Args packed = layout;
  run_packed(kernel, args, packed, device, stream, left);
}

#define FL_INSTANTIATE(Args) \
  template void run_on_packed_operands(const Kernel<Args>&, const Args&, const Args&, int, void*, StatusWords*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
