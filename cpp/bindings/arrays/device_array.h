// fastlinalg.DeviceArray: results on the device for callers whose library cannot be named.
#pragma once

#include <memory>

#include "bindings/arrays/array.h"

namespace fl::py {

// C order, float32. Everything that was queued to compute it comes before what is queued on the library's own stream of
// the device after it was made, so that stream is all that a consumer has to wait for, and the memory goes back in its
// order.
struct DeviceArray {
  DeviceArray(Shape shape, int device);  // values undefined
  std::shared_ptr<void> memory;
  Shape shape;
  int device;
};

void bind_device_array(nb::module_& m);

}  // namespace fl::py
