#include "bindings/calls/bind.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays/array.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/objects.h"
#include "core/errors.h"
#include "device/device_memory.h"
#include "device/timing.h"

namespace fl::py {
namespace {

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
    const GilAcquired acquired;
    work(reinterpret_cast<uintptr_t>(stream));
  });
}

nb::dict time_link(size_t in_bytes, size_t out_bytes, int repeats, int device) {
  cuda::LinkTimes times;
  {
    const GilReleased released;
    times = cuda::time_link(device, in_bytes, out_bytes, repeats);
  }
  return dict_of({{"in_us", times.in_us}, {"out_us", times.out_us}, {"both_us", times.both_us}});
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
  m.def("time_in_graph", time_in_graph, arg("work"), arg("launches"), arg("replays"), arg("device") = 0);
  m.def("time_link", time_link, arg("in_bytes"), arg("out_bytes"), arg("repeats"), arg("device") = 0);
}

}  // namespace fl::py
