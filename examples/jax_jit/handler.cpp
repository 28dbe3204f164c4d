// fastlinalg's products as targets of XLA's foreign function interface, on the CPU and on CUDA devices. It is compiled
// with the headers of the JAX that is installed, and with no CUDA toolkit: a stream is a pointer.
#include <fastlinalg/fastlinalg.h>
#include <xla/ffi/api/ffi.h>

#include <cstdint>

namespace ffi = xla::ffi;

namespace {

using Operand = ffi::Buffer<ffi::F32>;
using Result = ffi::ResultBuffer<ffi::F32>;

// Stacks of as many matrices. Each may be stored as its transpose.
ffi::Error multiply(Operand a, Operand b, Result c, bool trans_a, bool trans_b, fl_options options) {
  const auto dims = a.dimensions(), b_dims = b.dimensions(), c_dims = c->dimensions();
  const std::size_t rank = c_dims.size();
  if (rank < 2 || dims.size() != rank || b_dims.size() != rank)
    return ffi::Error::InvalidArgument("operands and result need the same number of dimensions, at least 2");
  int64_t batch = 1;
  for (std::size_t d = 0; d + 2 < rank; ++d) batch *= c_dims[d];
  const int64_t m = c_dims[rank - 2], n = c_dims[rank - 1], k = dims[trans_a ? rank - 2 : rank - 1];
  const int64_t lda = dims[rank - 1], ldb = b_dims[rank - 1];
  const fl_status status = fl_sgemm_batched_strided(trans_a, trans_b, m, n, k, 1.0f, a.typed_data(), lda > 0 ? lda : 1,
                                                    m * k, b.typed_data(), ldb > 0 ? ldb : 1, k * n, 0.0f,
                                                    c->typed_data(), n > 0 ? n : 1, m * n, batch, &options);
  return status == FL_OK ? ffi::Error::Success() : ffi::Error::Internal(fl_last_error());
}

ffi::Error on_cpu(Operand a, Operand b, Result c, bool trans_a, bool trans_b) {
  fl_options options = FL_OPTIONS_INIT;
  options.device = "cpu";
  return multiply(a, b, c, trans_a, trans_b, options);
}

// XLA calls it with the device current and the stream on which its operands are computed.
ffi::Error on_cuda(void* stream, int32_t ordinal, Operand a, Operand b, Result c, bool trans_a, bool trans_b) {
  const char device[] = {'c', 'u', 'd', 'a', ':', char('0' + ordinal), '\0'};
  fl_options options = FL_OPTIONS_INIT;
  options.device = device;
  options.stream = stream;
  options.device_memory = 1;
  return multiply(a, b, c, trans_a, trans_b, options);
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    fastlinalg_matmul_cpu, on_cpu,
    ffi::Ffi::Bind().Arg<Operand>().Arg<Operand>().Ret<Operand>().Attr<bool>("trans_a").Attr<bool>("trans_b"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(fastlinalg_matmul_cuda, on_cuda,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<void*>>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Arg<Operand>()
                                  .Arg<Operand>()
                                  .Ret<Operand>()
                                  .Attr<bool>("trans_a")
                                  .Attr<bool>("trans_b"),
                              {ffi::Traits::kCmdBufferCompatible});
