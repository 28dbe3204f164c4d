// What a call changes in its thread and gives back at its end, on exceptions too.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <atomic>
#include <new>

#include "cuda/runtime/check.h"
#include "cuda/runtime/per_device.h"

namespace fl::cuda {

// Makes a device current. What the caller had current comes back through the driver's context, not through
// cudaSetDevice: that would replace a context of the caller's own by the device's primary one, and would create a
// context on device 0 for a thread that had none.
// Most callers have the device current already: then one question is all it costs.
class DeviceGuard {
 public:
  // Throws CudaError for a device that is not there.
  explicit DeviceGuard(int device) : calls_((require_device(device), driver())) {
    if (const cudaError_t error = make_current(device); error != cudaSuccess) {
      calls_.set(previous_);
      fail(error, "cudaSetDevice(device)", __FILE__, __LINE__);
    }
  }
  // For destructors, of what a guard has been there for before: if the device cannot be made current it has failed, or
  // the driver has gone. What is given back then is all the same given back and no longer counted.
  DeviceGuard(int device, std::nothrow_t) noexcept : calls_(driver()) { ignore_errors(make_current(device)); }
  ~DeviceGuard() {
    if (changed_) calls_.set(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  struct DriverCalls {
    CUresult (*get)(CUcontext*) = nullptr;
    CUresult (*set)(CUcontext) = nullptr;
  };
  // Looked up by name: linking with libcuda would keep the library from loading on a machine without a driver.
  static DriverCalls look_up() {
    DriverCalls calls;
    FL_CUDA(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", reinterpret_cast<void**>(&calls.get), 12000,
                                             cudaEnableDefault));
    FL_CUDA(cudaGetDriverEntryPointByVersion("cuCtxSetCurrent", reinterpret_cast<void**>(&calls.set), 12000,
                                             cudaEnableDefault));
    return calls;
  }
  static const DriverCalls& driver() {
    static const DriverCalls calls = look_up();
    return calls;
  }

  cudaError_t make_current(int device) {
    if (calls_.get(&previous_) != CUDA_SUCCESS) previous_ = nullptr;
    std::atomic<CUcontext>& primary = per_device<PrimaryContext>(device).seen;
    if (previous_ && previous_ == primary.load(std::memory_order_relaxed)) return cudaSuccess;
    changed_ = true;
    if (const cudaError_t error = cudaSetDevice(device); error != cudaSuccess) return error;
    CUcontext context = nullptr;
    if (calls_.get(&context) == CUDA_SUCCESS) primary.store(context, std::memory_order_relaxed);
    return cudaSuccess;
  }

  struct PrimaryContext {
    std::atomic<CUcontext> seen{nullptr};  // null until the device has been current
  };

  const DriverCalls& calls_;
  CUcontext previous_ = nullptr;
  bool changed_ = false;
};

// Lets this thread create streams, pools and pinned memory while another library captures a CUDA graph in the default
// mode, in which the driver refuses such calls and spoils the capture. Stands behind a DeviceGuard, never before it: in
// a thread without a context the runtime would make one current here, and again when this ends.
class AllowDuringCapture {
 public:
  AllowDuringCapture() { exchange(); }
  ~AllowDuringCapture() { exchange(); }
  AllowDuringCapture(const AllowDuringCapture&) = delete;
  AllowDuringCapture& operator=(const AllowDuringCapture&) = delete;

 private:
  void exchange() noexcept { ignore_errors(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace fl::cuda
