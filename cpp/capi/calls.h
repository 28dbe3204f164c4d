// The calls of the C interface as checked problems.
#pragma once

#include <vector>

#include "capi/check.h"
#include "core/problem.h"
#include "fastlinalg/fastlinalg.h"
#include "run/group.h"
#include "run/run.h"

namespace fl {

struct Options {
  CallOptions call;  // its kernel is the caller's string
  Precision precision = Precision::accurate;
  Element a = Element::float32, b = Element::float32;
};
Options parse(const Check& check, const fl_options* given);

// What an operand holds that the caller gives as this address.
inline Stored stored_at(Element element, const float* data) {
  return element == Element::float32 ? Stored{} : Stored{element, data};
}

// Element 0 of a vector that is walked from its end lies behind all others.
template <class T>
T* first_element(T* data, int64_t size, int64_t inc) {
  return data && inc < 0 && size > 0 ? data - (size - 1) * inc : data;
}

SgemmArgs checked_sgemm(const Check& check, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                        const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b,
                        float beta, float* c, int64_t ldc, int64_t stride_c, int64_t batch, const Options& options);
std::vector<Product> checked_group(const char* function, int64_t count, const fl_sgemm_problem* problems,
                                   const fl_options* options, CallOptions& call);
SgemmArgs checked_ssyrk(const Check& check, int trans, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                        float beta, float* c, int64_t ldc, const Options& options);
SgemvArgs checked_sgemv(const Check& check, int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda,
                        int64_t stride_a, const float* x, int64_t incx, int64_t stride_x, float beta, float* y,
                        int64_t incy, int64_t stride_y, int64_t batch, const Options& options);
// With b == a the result says so; whether it is to be computed that way is for the caller.
TransposeArgs checked_transpose(const Check& check, int64_t m, int64_t n, const float* a, int64_t lda, int64_t stride_a,
                                float* b, int64_t ldb, int64_t stride_b, int64_t batch, const Options& options);

}  // namespace fl
