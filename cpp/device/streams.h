// Streams of callers and their order. A stream is a cudaStream_t; 1 and 2 are the runtime's names for the legacy and
// the per-thread default stream.
#pragma once

#include <cstddef>
#include <utility>

#include "core/export.h"

namespace fl::cuda {

FL_EXPORT void* own_stream(int device);  // of calls that name none: they run in the order they were made
FL_EXPORT bool capturing(int device, void* stream);

// What is queued on `later` from now on waits for what is on `earlier` now. A stream that a CUDA graph is captured from
// cannot wait for work outside the graph; nothing is done then, and the answer is false.
FL_EXPORT bool order_after(int device, void* later, void* earlier);

FL_EXPORT void wait_for(int device, void* stream);  // on the host, if the stream itself takes part in no capture

// The work that is on a stream now. Nothing is recorded of work that goes into a graph.
class FL_EXPORT StreamEvent {
 public:
  StreamEvent(int device, void* stream);
  ~StreamEvent();
  StreamEvent(StreamEvent&& other) noexcept : device_(other.device_), event_(std::exchange(other.event_, nullptr)) {}
  StreamEvent& operator=(StreamEvent&& other) noexcept {
    std::swap(device_, other.device_), std::swap(event_, other.event_);
    return *this;
  }
  bool passed() const;  // the device has done it

 private:
  int device_;
  void* event_;
};

// A stream of one device.
struct DeviceStream {
  int device;
  void* stream;
};

// As order_after(), of streams on different devices. Neither may be captured.
FL_EXPORT void order_across(const DeviceStream& later, const DeviceStream& earlier);

// Copies between the memory of two devices on the stream `to`, after what is on `from`, where what comes next waits for
// the copy. Straight from one to the other where they can reach each other's memory, else through host memory.
FL_EXPORT void copy_across(const DeviceStream& to, void* target, const DeviceStream& from, const void* source,
                           std::size_t bytes);

}  // namespace fl::cuda
