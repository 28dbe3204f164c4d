// From exceptions to the status and the message of the C interface.
#pragma once

#include "fastlinalg/fastlinalg.h"
#include "runtime/per_thread.h"

namespace fl {

// `advice` follows the message.
fl_status fail(fl_status status, const char* message, int cuda_error = 0, const char* advice = "") noexcept;
fl_status fail_by_exception() noexcept;  // in a handler

template <class Body>
fl_status guarded(Body&& body) noexcept {
  if (!has_thread_block()) return FL_OUT_OF_MEMORY;  // nor for an exception that says so
  try {
    body();
    return FL_OK;
  } catch (...) {
    return fail_by_exception();
  }
}

}  // namespace fl
