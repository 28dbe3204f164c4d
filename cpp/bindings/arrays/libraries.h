// The array libraries whose arrays a call may get. None is ever imported: a type that has reached a call is known, and
// its library is then in sys.modules.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings/arrays/dlpack.h"

namespace fl::py {

namespace nb = nanobind;

struct Library {
  enum Kind {
    none,    // not an array
    numpy,   // read by the buffer protocol
    own,     // fastlinalg.DeviceArray
    torch,   // by `api` where this version of torch has it, else by __dlpack__
    cupy,    // by __dlpack__
    dlpack,  // anything else with __dlpack__
    cuda_array_interface,
  };
  Kind kind = none;
  const dl::ExchangeApi* api = nullptr;
  bool immutable = false;  // JAX
};
Library library_of(nb::handle object);  // looked up once per type

bool is_from(const char* package, nb::handle type);  // by the name of the type's module

// That of any tensor inside a torch operator. InvalidType if this torch has no table.
const Library& torch_in_operator();

// A stream as callers and libraries write it: 0 and 1 are the legacy default stream, 2 the per-thread one.
// 1 and 2 are the CUDA runtime's own names. Here a null pointer is no stream at all.
inline void* stream_of(uintptr_t handle) { return reinterpret_cast<void*>(handle ? handle : 1); }

// The stream on which the library queues work on a device at this moment; null if it cannot be asked.
void* current_stream(const Library& library, int device);

}  // namespace fl::py
