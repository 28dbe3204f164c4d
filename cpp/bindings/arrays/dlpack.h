// DLPack as its specification lays it out (version 1.3; https://dmlc.github.io/dlpack): tensors, their owners, and the
// table of functions that a library may publish for others that are written in C.
#pragma once

#include <cstdint>

namespace fl::py::dl {

struct Version {
  uint32_t major, minor;
};
inline constexpr Version version{1, 3};

enum DeviceType : int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
struct Device {
  int32_t type;
  int32_t id;
};

enum TypeCode : uint8_t {
  signed_int = 0,
  unsigned_int = 1,
  floating = 2,
  opaque = 3,
  bfloat = 4,
  complex = 5,
  boolean = 6
};
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
  bool operator==(const DataType&) const = default;
};
inline constexpr DataType float32{floating, 32, 1}, float16{floating, 16, 1}, bfloat16{bfloat, 16, 1};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: C order
  uint64_t byte_offset;
};

struct ManagedTensor {  // before version 1.0
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};
struct ManagedTensorVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedTensorVersioned*);
  uint64_t flags;
  Tensor tensor;
};
inline constexpr uint64_t read_only = 1, is_copied = 2;  // flags

inline constexpr const char *capsule = "dltensor", *capsule_versioned = "dltensor_versioned";

// What a type publishes as `__dlpack_c_exchange_api__`, a capsule of this name. Functions return 0, or -1 with a Python
// exception set. None of them orders streams: the caller is to use the library's current one.
struct ExchangeApi {
  Version version;
  ExchangeApi* previous;
  int (*allocate)(Tensor* prototype, ManagedTensorVersioned** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*managed_tensor_from_object)(void* object, ManagedTensorVersioned** out);
  int (*managed_tensor_to_object)(ManagedTensorVersioned* tensor, void** object);
  int (*tensor_from_object)(void* object, Tensor* out);  // borrowed; may be null
  int (*current_stream)(DeviceType type, int32_t id, void** stream);
};
inline constexpr const char* exchange_capsule = "dlpack_exchange_api";

}  // namespace fl::py::dl
