#include "bindings/calls/copies.h"

#include "bindings/arrays/batch.h"
#include "bindings/arrays/gil.h"
#include "bindings/arrays/results.h"
#include "bindings/calls/options.h"

namespace fl::py {

void copy_elements(const Array& to, const Array& from, CallOptions options) {
  if (!options.device_memory) options.device = {Device::cpu, 0};
  const int ndim = from.ndim();
  const auto size = [&](int from_end) { return ndim < from_end ? 1 : from.shape(ndim - from_end); };
  const auto stride = [&](const Array& x, int from_end) { return ndim < from_end ? 1 : x.stride(ndim - from_end); };
  Batch batch({{&from, ndim < 2 ? 0 : ndim - 2}}, "copy");
  batch.add(to);
  const GilReleased released;
  batch.for_each_run([&](int64_t count, const int64_t* offsets, const int64_t* strides) {
    run(TransposeArgs{.m = size(1),
                      .n = size(2),
                      .batch = count,
                      .a = {from.data() + offsets[0], stride(from, 1), stride(from, 2), strides[0]},
                      .b = {to.data() + offsets[1], stride(to, 2), stride(to, 1), strides[1]},
                      .stored = {from.stored()}},
        options);
  });
}

Array float32_copy(const Array& x, CallLocation& location) {
  Array copy = x.densely(new_result({x.different_elements()}, location));
  CallOptions options;
  set_location(options, location);
  copy_elements(copy, x, options);
  location.keep(nb::borrow(copy.object()));
  return copy;
}

}  // namespace fl::py
