/* The names of the CBLAS for what fastlinalg computes. A program that calls these functions only, compiled with the
 * header of any CBLAS whose integers have 32 bits, is linked with -lfastlinalg_cblas in place of that library; one that
 * calls others too names this library before it. Built where CMake was given FASTLINALG_CBLAS=ON.
 *
 * An argument that is not allowed is reported to cblas_xerbla() with its position, as the reference implementation
 * does it, and nothing is computed. That of this library writes a line to stderr and returns; one that the program
 * defines is called in its place. Where a call fails for another reason (memory, a GPU), the position is 0. */
#ifndef FASTLINALG_CBLAS_H
#define FASTLINALG_CBLAS_H

#include <fastlinalg/fastlinalg.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum CBLAS_LAYOUT { CblasRowMajor = 101, CblasColMajor = 102 } CBLAS_LAYOUT;
typedef enum CBLAS_TRANSPOSE {
  CblasNoTrans = 111,
  CblasTrans = 112,
  CblasConjTrans = 113,  /* of real numbers, as CblasTrans */
  CblasConjNoTrans = 114 /* for cblas_somatcopy alone */
} CBLAS_TRANSPOSE;
typedef enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 } CBLAS_UPLO;

/* C = alpha * op(A) op(B) + beta * C */
FL_API void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n, int k,
                        float alpha, const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
/* y = alpha * op(A) x + beta * y */
FL_API void cblas_sgemv(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int m, int n, float alpha, const float* a, int lda,
                        const float* x, int incx, float beta, float* y, int incy);
/* The upper or lower triangle of C = alpha * op(A) op(A)^T + beta * C; op(A) is n by k. */
FL_API void cblas_ssyrk(CBLAS_LAYOUT layout, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans, int n, int k, float alpha,
                        const float* a, int lda, float beta, float* c, int ldc);
/* B = alpha * op(A) for a stored A of so many rows and columns: an extension that OpenBLAS has. */
FL_API void cblas_somatcopy(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE trans, int rows, int cols, float alpha, const float* a,
                            int lda, float* b, int ldb);

FL_API void cblas_xerbla(int position, const char* function, const char* form, ...);

#ifdef __cplusplus
}
#endif

#endif
