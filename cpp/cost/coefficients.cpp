#include "cost/coefficients.h"

namespace fl {
namespace {

double ratio(double measured, double device) { return measured > 0 && device > 0 ? measured / device : 1.0; }

}  // namespace

Scales scales_between(const DeviceSpec& measured, const DeviceSpec& device) {
  const double clock = ratio(measured.clock_khz, device.clock_khz);
  return {.fma = clock * ratio(measured.fma_per_clock, device.fma_per_clock),
          .tensor = clock * ratio(measured.half_fma_per_clock, device.half_fma_per_clock),
          .memory = ratio(measured.bytes_per_us, device.bytes_per_us),
          .l2 = 1 / ratio(double(measured.l2_bytes), double(device.l2_bytes))};
}

}  // namespace fl
