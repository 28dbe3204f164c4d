// Calls of the runtime that fail when a test says so. The host layer is compiled with each of its functions as a macro
// (CMakeLists.txt), so that all its calls come through here, from wherever they are made.
#pragma once

#include <cuda_runtime_api.h>

namespace simulated {

// Counts the call; whether it is to fail.
bool fails(const char* function, const char* file, int line);
cudaError_t failure();
bool request_fails(const char* what, const void* caller);  // the same of memory and threads (host_requests.cpp)
// What gives something back does so, and answers with the error of earlier work.
bool gives_back(const char* function);

template <class Call>
cudaError_t checked(const char* function, const char* file, int line, Call&& call) {
  if (!fails(function, file, line)) return call();
  if (gives_back(function)) static_cast<void>(call());
  return failure();
}

}  // namespace simulated
