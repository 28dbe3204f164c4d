#include "capi/errors.h"

#include <cstdio>
#include <new>

#include "core/errors.h"
#include "runtime/per_thread.h"

namespace fl {
namespace {

// A fixed buffer: of a thread that has got it, reporting that memory has run out must not need memory.
struct LastError {
  char text[2048] = "";
  int cuda_error = 0;
};

}  // namespace

fl_status fail(fl_status status, const char* message, int cuda_error, const char* advice) noexcept {
  if (LastError* const last = per_thread<LastError>()) {
    std::snprintf(last->text, sizeof last->text, "%s%s", message, advice);
    last->cuda_error = cuda_error;
  }
  return status;
}

fl_status fail_by_exception() noexcept {
  try {
    throw;
  } catch (const CudaError& error) {
    return fail(FL_CUDA_ERROR, error.what(), error.code);
  } catch (const OutOfMemory& error) {
    return fail(FL_OUT_OF_MEMORY, error.what());
  } catch (const std::bad_alloc&) {
    return fail(FL_OUT_OF_MEMORY, "out of host memory");
  } catch (const UnknownKernel& error) {
    return fail(FL_INVALID_VALUE, error.what(), 0, " (fl_kernel_at() lists all)");
  } catch (const std::invalid_argument& error) {
    return fail(FL_INVALID_VALUE, error.what());
  } catch (const std::exception& error) {
    return fail(FL_INTERNAL_ERROR, error.what());
  } catch (...) {
    return fail(FL_INTERNAL_ERROR, "an exception of unknown type");
  }
}

}  // namespace fl

const char* fl_last_error(void) {
  const auto* const last = fl::per_thread<fl::LastError>();
  return last ? last->text : "out of host memory, for the text of an error too";
}
int fl_last_cuda_error(void) {
  const auto* const last = fl::per_thread<fl::LastError>();
  return last ? last->cuda_error : 0;
}
