// The C interface: which kernel a call takes and why.
#include <new>
#include <string>
#include <type_traits>

#include "capi/calls.h"
#include "capi/errors.h"
#include "capi/struct.h"
#include "run/explanation.h"
#include "runtime/per_thread.h"

namespace fl {
namespace {

// checked(check, given..., options) has the arguments of the call.
template <class Checked, class... Given>
fl_status explain_checked(const char* function, Checked checked, fl_explanation* to, const fl_options* options,
                          Given... given) {
  return guarded([&] {
    const Check check(function, true);
    const Options parsed = parse(check, options);
    auto args = checked(check, given..., parsed);
    if constexpr (std::is_same_v<decltype(args), TransposeArgs>)
      args.in_place = args.in_place && (parsed.call.device_memory || transposes_in_place(args, parsed.call));
    struct Texts {
      std::string device, text;
    };
    Texts* const texts = per_thread<Texts>();  // what the caller gets is of this thread, until it asks again
    if (!texts) throw std::bad_alloc();
    const bool named = options && options->device && *options->device;
    const Explanation found = explanation(args, parsed.call, {.device = named ? options->device : "auto"});
    texts->device = found.taken.kernel ? device_text(found.taken.device) : "";
    texts->text = found.text;
    const fl_explanation values{sizeof values,         found.taken.kernel ? found.taken.kernel : "",
                                texts->device.c_str(), found.taken.us,
                                found.taken.steps,     found.taken.triangle,
                                texts->text.c_str()};
    write_struct(check, "explanation", "FL_EXPLANATION_INIT", to, sizeof values, values);
  });
}

}  // namespace
}  // namespace fl

fl_status fl_explain_sgemm(fl_explanation* explanation, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                           float alpha, const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                           int64_t stride_b, float beta, const float* c, int64_t ldc, int64_t stride_c, int64_t batch,
                           const fl_options* options) {
  return fl::explain_checked("fl_explain_sgemm", fl::checked_sgemm, explanation, options, trans_a, trans_b, m, n, k,
                             alpha, a, lda, stride_a, b, ldb, stride_b, beta, const_cast<float*>(c), ldc, stride_c,
                             batch);
}

fl_status fl_explain_sgemv(fl_explanation* explanation, int trans, int64_t m, int64_t n, float alpha, const float* a,
                           int64_t lda, int64_t stride_a, const float* x, int64_t incx, int64_t stride_x, float beta,
                           const float* y, int64_t incy, int64_t stride_y, int64_t batch, const fl_options* options) {
  return fl::explain_checked("fl_explain_sgemv", fl::checked_sgemv, explanation, options, trans, m, n, alpha, a, lda,
                             stride_a, x, incx, stride_x, beta, const_cast<float*>(y), incy, stride_y, batch);
}

fl_status fl_explain_transpose(fl_explanation* explanation, int64_t m, int64_t n, const float* a, int64_t lda,
                               int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, int64_t batch,
                               const fl_options* options) {
  return fl::explain_checked("fl_explain_transpose", fl::checked_transpose, explanation, options, m, n, a, lda,
                             stride_a, const_cast<float*>(b), ldb, stride_b, batch);
}
