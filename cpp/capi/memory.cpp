// The C interface: memory and streams of devices.
#include "capi/check.h"
#include "capi/errors.h"
#include "device/device_memory.h"
#include "device/streams.h"
#include "runtime/host_memory.h"
#include "runtime/huge_pages.h"

struct fl_buffer {
  fl::cuda::DeviceBuffer memory;
};

namespace fl {
namespace {

void require(const Check& check, const fl_buffer* buffer, const void* host, std::size_t bytes) {
  if (!buffer) check.refuse("buffer is NULL");
  if (!host && bytes > 0) check.refuse("host is NULL, but bytes is " + std::to_string(bytes));
}

}  // namespace
}  // namespace fl

using fl::Check;
using fl::guarded;

fl_status fl_get_memory_info(int device, fl_memory_info* info) {
  return guarded([&] {
    const auto memory = fl::cuda::memory_info(device);
    const fl_memory_info values{sizeof values, memory.used,  memory.reserved, memory.limit,
                                memory.free,   memory.total, memory.pinned,   fl::kept_results().bytes};
    fl::write_struct(Check("fl_get_memory_info"), "info", "FL_MEMORY_INFO_INIT", info, sizeof *info, values);
  });
}

fl_status fl_set_memory_limit(int device, size_t bytes) {
  return guarded([&] { fl::cuda::set_memory_limit(device, bytes); });
}

fl_status fl_trim(int device) {
  return guarded([&] {
    fl::trim_kept_memory();
    fl::cuda::trim(device);
  });
}

fl_status fl_buffer_create(fl_buffer** buffer, int device, size_t bytes) {
  return guarded([&] {
    if (!buffer) Check("fl_buffer_create").refuse("buffer is NULL");
    *buffer = nullptr;
    *buffer = new fl_buffer{fl::cuda::DeviceBuffer(bytes, device)};
  });
}

float* fl_buffer_data(const fl_buffer* buffer) { return buffer ? static_cast<float*>(buffer->memory.data()) : nullptr; }

fl_status fl_buffer_upload(fl_buffer* buffer, size_t offset, const void* host, size_t bytes) {
  return guarded([&] {
    fl::require(Check("fl_buffer_upload"), buffer, host, bytes);
    buffer->memory.upload(host, bytes, offset);
  });
}

fl_status fl_buffer_download(const fl_buffer* buffer, size_t offset, void* host, size_t bytes) {
  return guarded([&] {
    fl::require(Check("fl_buffer_download"), buffer, host, bytes);
    buffer->memory.download(host, bytes, offset);
  });
}

void fl_buffer_free(fl_buffer* buffer) { delete buffer; }

fl_status fl_own_stream(int device, void** stream) {
  return guarded([&] {
    if (!stream) Check("fl_own_stream").refuse("stream is NULL");
    *stream = fl::cuda::own_stream(device);
  });
}

fl_status fl_order_after(int device, void* later, void* earlier) {
  return guarded([&] {
    if (!fl::cuda::order_after(device, later, earlier))
      Check("fl_order_after").refuse("later is being captured, and cannot wait for what is outside its graph");
  });
}
