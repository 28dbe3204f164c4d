#include "failing_calls.h"

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
  if (!counts(function, file)) return false;
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

cudaError_t failure() { return status(error); }

bool gives_back(const char* function) { return is_one_of(function, {"Destroy", "Free", "Unregister", "EndCapture"}); }

void fail_calls(long first, long last, cudaError_t with) {
  const Lock lock(mutex);
  counted = 0, first_to_fail = first, last_to_fail = last, error = with;
  failed.clear();
}

const char* failed_call() { return failed.c_str(); }

}  // namespace simulated
