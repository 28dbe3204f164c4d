#include "failing_calls.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "scheduler.h"

namespace simulated {
namespace {

long counted = 0, first_to_fail = 0, last_to_fail = 0;
cudaError_t error = cudaSuccess;
std::string failed;  // the first: function and place
bool polling = false;
thread_local bool asks = false;  // whether its requests are counted

// Polls that follow one another count as one, as their number is not the program's. The last error is asked for behind
// a launch, and elsewhere only to be forgotten. The mode of captures is the thread's own and reaches no device.
bool counts(std::string_view function, std::string_view file) {
  if (function == "cudaThreadExchangeStreamCaptureMode") return false;
  if (function == "cudaGetLastError") return file.ends_with("launch_kernel.h");
  const bool again = polling;
  polling = function == "cudaEventQuery";
  return !(polling && again);
}

bool is_one_of(std::string_view function, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](auto part) { return function.find(part) != function.npos; });
}
bool allocates(std::string_view function) {
  return is_one_of(function, {"Malloc", "Alloc", "Create", "Register", "Instantiate", "GraphLaunch"});
}

}  // namespace

bool fails(const char* function, const char* file, int line) {
  const Lock lock(mutex);
  if (error == no_host_memory || !counts(function, file)) return false;
  ++counted;
  if (counted < first_to_fail || counted > last_to_fail) return false;
  const bool lasts = last_to_fail > first_to_fail;
  if (lasts && error == cudaErrorMemoryAllocation && !allocates(function)) return false;
  if (failed.empty()) {
    if (lasts && error != cudaErrorMemoryAllocation) run_everything();  // nothing goes on when the device has failed
    failed = std::string(function) + " at " + (std::strrchr(file, '/') + 1) + ":" + std::to_string(line);
  }
  return true;
}

bool request_fails(const char* what, const void* caller) {
  if (!asks || locks) return false;
  ++counted;
  if (counted < first_to_fail || counted > last_to_fail) return false;
  const Lock lock(mutex);
  Dl_info library{};
  dladdr(caller, &library);
  const auto place = static_cast<const char*>(caller) - static_cast<const char*>(library.dli_fbase);
  if (failed.empty()) failed = std::string(what) + " at " + std::to_string(place);
  return true;
}

cudaError_t failure() { return status(error); }

bool gives_back(const char* function) { return is_one_of(function, {"Destroy", "Free", "Unregister", "EndCapture"}); }

void fail_calls(long first, long last, cudaError_t with) {
  const Lock lock(mutex);
  counted = 0, first_to_fail = first, last_to_fail = last, error = with;
  asks = with == no_host_memory;
  failed.clear();
}

const char* failed_call() { return failed.c_str(); }

}  // namespace simulated
