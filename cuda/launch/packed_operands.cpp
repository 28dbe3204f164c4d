// Operands in device memory that no product kernel takes as they lie, or in 16 bits: packed copies, made and brought
// back on a stream.
#include "core/normalise.h"
#include "core/operations.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/runtime/device_guard.h"
#include "cuda/runtime/memory_pool.h"
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
  const Stored stored = {};
  const bool copied = rows > 0 && cols > 0 && !packed.data;  // before it has a place

  int64_t problems() const { return packed.bs == 0 ? 1 : batch; }
  std::size_t bytes() const {
    if (!copied) return 0;
    const int64_t last = (problems() - 1) * packed.bs + (rows - 1) * packed.rs + (cols - 1) * packed.cs;
    return std::size_t(ceil_div(last + 1, 64) * 64) * sizeof(float);
  }
};
template <class T>
void pack_later(const PackedOperand<T>& x) {
  x.packed = {nullptr, padded(x.cols), 1, x.given.bs == 0 ? 0 : x.rows * padded(x.cols)};
}

PackedOperand<const float> a_of(const SgemmArgs& p, SgemmArgs& q) { return {p.a, q.a, p.m, p.k, p.batch, p.stored[0]}; }
PackedOperand<const float> b_of(const SgemmArgs& p, SgemmArgs& q) { return {p.b, q.b, p.k, p.n, p.batch, p.stored[1]}; }
PackedOperand<float> c_of(const SgemmArgs& p, SgemmArgs& q) { return {p.c, q.c, p.m, p.n, p.batch}; }
PackedOperand<const float> a_of(const SgemvArgs& p, SgemvArgs& q) { return {p.a, q.a, p.m, p.n, p.batch, p.stored[0]}; }
ConstMatrix as_row(const ConstVector& x) { return {x.data, 0, x.inc, x.bs}; }

// A copy of what is in 16 bits has the order of the operand, so that products have the bits of an operand that has been
// converted before.
bool lay_out(const PackedOperand<const float>& x, Stored& stored) {
  if (!stored.converted()) {
    if (direct(x.given, x.rows, x.cols)) return false;
    pack_later(x);
    return true;
  }
  stored = {};
  x.packed = copied_densely(x.given, x.rows, x.cols, x.batch);
  if (!direct(x.packed, x.rows, x.cols)) pack_later(x);
  return true;
}

const Kernel<TransposeArgs>& copy_kernel() { return find<TransposeArgs>("strided"); }

// A copy is the transpose of the transposed view.
TransposeArgs copy_of(const ConstMatrix& from, const Matrix& to, int64_t rows, int64_t cols, int64_t batch,
                      const Stored& stored = {}) {
  return {
      .m = cols, .n = rows, .batch = batch, .a = {from.data, from.cs, from.rs, from.bs}, .b = to, .stored = {stored}};
}

// The copies of those operands of a call that are packed, one after the other.
class Packing {
 public:
  template <class... Operand>
  Packing(int device, void* stream, const Operand&... all)
      : device_(device), stream_(stream_of(stream, device)), memory_(device, (all.bytes() + ...), stream_) {
    char* next = memory_.data();
    (place(all, next), ...);
  }
  template <class T>
  void pack(const PackedOperand<T>& x) const {
    if (!x.copied) return;
    const Matrix to{const_cast<float*>(x.packed.data), x.packed.rs, x.packed.cs, x.packed.bs};
    copy({x.given.data, x.given.rs, x.given.cs, x.given.bs}, to, x);
  }
  void unpack(const PackedOperand<float>& x) const {
    if (x.copied) copy({x.packed.data, x.packed.rs, x.packed.cs, x.packed.bs}, x.given, x);
  }

 private:
  template <class T>
  static void place(const PackedOperand<T>& x, char*& memory) {
    if (!x.copied) return;
    x.packed.data = reinterpret_cast<float*>(memory);
    memory += x.bytes();
  }
  template <class T>
  void copy(const ConstMatrix& from, const Matrix& to, const PackedOperand<T>& x) const {
    run_on_device_operands(copy_kernel(), copy_of(from, to, x.rows, x.cols, x.problems(), x.stored), device_, stream_);
  }

  int device_;
  cudaStream_t stream_;
  PoolBuffer memory_;
};

void run_packed(const Kernel<SgemmArgs>& kernel, const SgemmArgs& args, SgemmArgs& layout, int device, void* stream,
                StatusWords* left) {
  const auto a = a_of(args, layout), b = b_of(args, layout);
  const auto c = c_of(args, layout);
  const Packing packing(device, stream, a, b, c);
  packing.pack(a), packing.pack(b);
  if (args.beta != 0.0f && !args.addend.data) packing.pack(c);
  run_on_device_operands(kernel, layout, device, stream, left);
  packing.unpack(c);
}

void run_packed(const Kernel<SgemvArgs>& kernel, const SgemvArgs& args, SgemvArgs& layout, int device, void* stream,
                StatusWords* left) {
  const ConstMatrix given_x = as_row(args.x);
  ConstMatrix packed_x = as_row(layout.x);
  const auto a = a_of(args, layout);
  const PackedOperand<const float> x{given_x, packed_x, 1, args.n, args.batch, args.stored[1]};
  const Packing packing(device, stream, a, x);
  packing.pack(a), packing.pack(x);
  layout.x.data = packed_x.data;
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
  SgemmArgs layout = args;
  const bool a = lay_out(a_of(args, layout), layout.stored[0]), b = lay_out(b_of(args, layout), layout.stored[1]);
  const bool c = !rows_follow(args.c, args.n);
  if (c) pack_later(c_of(args, layout));
  return a || b || c ? std::optional(layout) : std::nullopt;
}
template <>
std::optional<SgemvArgs> packed_layout(const SgemvArgs& args) {
  SgemvArgs layout = args;
  const bool a = lay_out(a_of(args, layout), layout.stored[0]), x = args.stored[1].converted();
  if (x) {
    const ConstMatrix copy = copied_densely(as_row(args.x), 1, args.n, args.batch);
    layout.x = {nullptr, copy.cs, copy.bs};
    layout.stored[1] = {};
  }
  return a || x ? std::optional(layout) : std::nullopt;
}
template <>
std::optional<TransposeArgs> packed_layout(const TransposeArgs&) {
  return std::nullopt;  // the kernel "strided" takes any view
}

template <class Args>
void run_on_packed_operands(const Kernel<Args>& kernel, const Args& args, const Args& layout, int device, void* stream,
                            StatusWords* left) {
  const DeviceGuard guard(device);
  Args packed = layout;
  run_packed(kernel, args, packed, device, stream, left);
}

#define FL_INSTANTIATE(Args) \
  template void run_on_packed_operands(const Kernel<Args>&, const Args&, const Args&, int, void*, StatusWords*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
