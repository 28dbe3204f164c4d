#include "bindings/calls/bind.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays/array.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/names.h"
#include "bindings/calls/call.h"
#include "bindings/calls/tune.h"
#include "core/errors.h"
#include "device/device_memory.h"
#include "device/timing.h"

namespace fl::py {
namespace {

float* pointer(uintptr_t address) { return reinterpret_cast<float*>(address); }

CallOptions options(nb::handle kernel, int device, uintptr_t stream) {
  ensure_tuned();
  CallOptions call;
  if (!kernel.is_none()) call.kernel = nb::borrow<nb::str>(kernel).c_str();
  call.device = {Device::cuda, device};
  call.stream = reinterpret_cast<void*>(stream);
  call.device_memory = true;
  return call;
}

void device_sgemm(nb::handle kernel, int64_t m, int64_t n, int64_t k, float alpha, uintptr_t a, int64_t a_rs,
                  int64_t a_cs, uintptr_t b, int64_t b_rs, int64_t b_cs, float beta, uintptr_t c, int64_t ldc,
                  int64_t batch, int64_t a_bs, int64_t b_bs, int64_t c_bs, const char* precision, int device,
                  uintptr_t stream) {
  run(SgemmArgs{.m = m,
                .n = n,
                .k = k,
                .batch = batch,
                .alpha = alpha,
                .beta = beta,
                .a = {pointer(a), a_rs, a_cs, a_bs},
                .b = {pointer(b), b_rs, b_cs, b_bs},
                .c = {pointer(c), ldc, 1, c_bs},
                .precision = parse_precision(precision)},
      options(kernel, device, stream));
}

void device_sgemv(nb::handle kernel, int64_t m, int64_t n, float alpha, uintptr_t a, int64_t a_rs, int64_t a_cs,
                  uintptr_t x, int64_t incx, float beta, uintptr_t y, int64_t incy, int64_t batch, int64_t a_bs,
                  int64_t x_bs, int64_t y_bs, int device, uintptr_t stream) {
  run(SgemvArgs{.m = m,
                .n = n,
                .batch = batch,
                .alpha = alpha,
                .beta = beta,
                .a = {pointer(a), a_rs, a_cs, a_bs},
                .x = {pointer(x), incx, x_bs},
                .y = {pointer(y), incy, y_bs}},
      options(kernel, device, stream));
}

void device_transpose(nb::handle kernel, int64_t m, int64_t n, uintptr_t a, int64_t lda, uintptr_t b, int64_t ldb,
                      int64_t batch, int64_t a_bs, int64_t b_bs, int device, uintptr_t stream) {
  run(TransposeArgs{.m = m,
                    .n = n,
                    .batch = batch,
                    .a = {pointer(a), lda, 1, a_bs},
                    .b = {pointer(b), ldb, 1, b_bs},
                    .in_place = a == b},
      options(kernel, device, stream));
}

// Bytes of a contiguous float32 array, for copies to and from a DeviceBuffer.
size_t contiguous_bytes(const Array& x) {
  int64_t expected = 1;
  for (int i = x.ndim() - 1; i >= 0; --i) {
    if (x.shape(i) > 1 && x.stride(i) != expected) throw InvalidValue("a DeviceBuffer copies C-contiguous arrays only");
    expected *= x.shape(i);
  }
  return size_t(expected) * sizeof(float);
}

void upload(cuda::DeviceBuffer& self, nb::handle source, size_t offset) {
  const Array x(source, "source", Array::read);
  const size_t bytes = contiguous_bytes(x);
  const GilReleased released;
  self.upload(x.data(), bytes, offset);
}

void download(const cuda::DeviceBuffer& self, nb::handle target, size_t offset) {
  const Array x(target, "target", Array::write);
  const size_t bytes = contiguous_bytes(x);
  const GilReleased released;
  self.download(x.data(), bytes, offset);
}

std::vector<double> time_in_graph(const nb::callable& work, int launches, int replays, int device) {
  const GilReleased released;
  return cuda::time_in_graph(device, launches, replays, [&work](void* stream) {
    nb::gil_scoped_acquire gil;
    work(reinterpret_cast<uintptr_t>(stream));
  });
}

nb::dict time_link(size_t in_bytes, size_t out_bytes, int repeats, int device) {
  cuda::LinkTimes times;
  {
    const GilReleased released;
    times = cuda::time_link(device, in_bytes, out_bytes, repeats);
  }
  nb::dict row;
  row["in_us"] = times.in_us;
  row["out_us"] = times.out_us;
  row["both_us"] = times.both_us;
  return row;
}

}  // namespace

void bind_device_memory(nb::module_& m) {
  using nb::arg;
  if (!take_registered<cuda::DeviceBuffer>(m, "DeviceBuffer"))
    nb::class_<cuda::DeviceBuffer>(m, "DeviceBuffer", "Device memory of the library's pool.")
        .def(nb::init<size_t, int>(), arg("nbytes"), arg("device") = 0)
        .def_prop_ro("ptr", [](const cuda::DeviceBuffer& self) { return reinterpret_cast<uintptr_t>(self.data()); })
        .def_prop_ro("nbytes", &cuda::DeviceBuffer::bytes)
        .def("upload", upload, arg("source"), arg("offset") = 0)
        .def("download", download, arg("target"), arg("offset") = 0);
  m.def("device_sgemm", device_sgemm, arg("kernel").none(), arg("m"), arg("n"), arg("k"), arg("alpha"), arg("a"),
        arg("a_rs"), arg("a_cs"), arg("b"), arg("b_rs"), arg("b_cs"), arg("beta"), arg("c"), arg("ldc"),
        arg("batch") = 1, arg("a_bs") = 0, arg("b_bs") = 0, arg("c_bs") = 0, arg("precision") = "strict",
        arg("device") = 0, arg("stream") = 0);
  m.def("device_sgemv", device_sgemv, arg("kernel").none(), arg("m"), arg("n"), arg("alpha"), arg("a"), arg("a_rs"),
        arg("a_cs"), arg("x"), arg("incx"), arg("beta"), arg("y"), arg("incy"), arg("batch") = 1, arg("a_bs") = 0,
        arg("x_bs") = 0, arg("y_bs") = 0, arg("device") = 0, arg("stream") = 0);
  m.def("device_transpose", device_transpose, arg("kernel").none(), arg("m"), arg("n"), arg("a"), arg("lda"), arg("b"),
        arg("ldb"), arg("batch") = 1, arg("a_bs") = 0, arg("b_bs") = 0, arg("device") = 0, arg("stream") = 0);
  m.def("time_in_graph", time_in_graph, arg("work"), arg("launches"), arg("replays"), arg("device") = 0);
  m.def("time_link", time_link, arg("in_bytes"), arg("out_bytes"), arg("repeats"), arg("device") = 0);
}

}  // namespace fl::py
