/* fastlinalg for C (C99): float32 matrix products, matrix-vector products and transposes, on the CPU and NVIDIA GPUs.
 *
 * Matrices are row-major: element (i, j) of a matrix `a` with leading dimension `lda` is a[i * lda + j], with
 * lda >= columns and `a` aligned to 4 bytes; a flag `trans_a` of 1 makes the operand the transpose of what is stored;
 * nothing is copied. docs/column_major.md says what a caller passes whose matrices are column-major.
 *
 * What can fail returns fl_status, and leaves the process alone: no printing, no abort, no exception. After a failure
 * fl_last_error() says what was given and what is wanted, and the operands are untouched if it is FL_INVALID_VALUE.
 * All functions may be called from any number of threads at once.
 *
 * No CUDA header or toolkit is needed to use this file: a stream is the cudaStream_t as void*. */
#ifndef FASTLINALG_H
#define FASTLINALG_H

#include <stddef.h>
#include <stdint.h>

/* Of this header, the one place where the version stands; fl_version() is that of the library that is loaded. */
#define FL_VERSION_MAJOR 0
#define FL_VERSION_MINOR 1
#define FL_VERSION_PATCH 0
#define FL_VERSION_NUMBER (FL_VERSION_MAJOR * 10000 + FL_VERSION_MINOR * 100 + FL_VERSION_PATCH)

#if defined(__GNUC__)
#define FL_API __attribute__((visibility("default")))
#else
#define FL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fl_status {
  FL_OK = 0,
  FL_INVALID_VALUE = 1, /* an argument: sizes, leading dimensions, null pointers, names, a kernel with other needs */
  FL_OUT_OF_MEMORY = 2, /* host or device; the next call works */
  FL_CUDA_ERROR = 3,    /* no usable CUDA device, or a CUDA call failed: see fl_last_cuda_error() */
  FL_INTERNAL_ERROR = 4 /* a bug of fastlinalg */
} fl_status;

/* The message of this thread's last call that failed, "" if none has. Valid until this thread's next failure. */
FL_API const char* fl_last_error(void);
/* The cudaError_t of this thread's last failure if that was FL_CUDA_ERROR, else 0. */
FL_API int fl_last_cuda_error(void);

typedef enum fl_precision {
  FL_ACCURATE = 0,    /* each element within k * 2^-24 * (|A||B|) of the true product; may use tensor cores, AMX */
  FL_STRICT = 1,      /* float32 FMA in an order that the shape and the device decide: the same bits on every run */
  FL_REPRODUCIBLE = 2 /* the bits of an element depend on its row of A, its column of B, alpha, beta and k alone */
} fl_precision;

/* What the memory of an operand holds, with pointers, leading dimensions, strides and increments in elements of it. */
typedef enum fl_dtype { FL_FLOAT32 = 0, FL_FLOAT16 = 1, FL_BFLOAT16 = 2 } fl_dtype;

/* Start from FL_OPTIONS_INIT: struct_size lets later versions add fields at the end. A NULL fl_options* means that. */
typedef struct fl_options {
  size_t struct_size;     /* sizeof(fl_options) */
  const char* kernel;     /* a name from fl_kernel_at(); NULL: the fastest for this call */
  fl_precision precision; /* FL_STRICT matters on a GPU, or a CPU with AMX. Not of fl_sgemv */
  const char* device;     /* "auto", "cpu", "cuda", "cuda:1"; NULL: "auto", the faster one, transfers included. Host
                             memory: also "cuda:all" or "cuda:0,cuda:2", GPUs of one kind that share the call */
  void* stream;           /* cudaStream_t. NULL: one of the library's own, or the default stream if device_memory */
  int device_memory;      /* 1: all pointers are memory of `device` ("auto" is "cuda:0") and the call returns once it is
                             queued on `stream`. 0: host memory, and the call returns with the result in place */
  fl_dtype a_type, b_type; /* of the operands that are read, A and B or A and x: pass the address of a 16-bit one as
                              const float*. Each number is the float32 of its value. fl_ssyrk has A alone, fl_transpose
                              FL_FLOAT32 */
} fl_options;
#define FL_OPTIONS_INIT {sizeof(fl_options), NULL, FL_ACCURATE, NULL, NULL, 0, FL_FLOAT32, FL_FLOAT32}

/* C[m,n] = alpha * op(A)[m,k] op(B)[k,n] + beta * C. With beta == 0, C is not read; with alpha == 0 or k == 0, A and B
 * are not. C must not overlap A or B. A pointer to an operand without elements may be NULL. */
FL_API fl_status fl_sgemm(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a,
                          int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc,
                          const fl_options* options);

/* The same for `batch` problems whose operands start stride_a, stride_b and stride_c elements apart, each >= 0. A
 * stride of 0 uses one A or B for the whole batch. Different results may not share elements. */
FL_API fl_status fl_sgemm_batched_strided(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                                          const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                                          int64_t stride_b, float beta, float* c, int64_t ldc, int64_t stride_c,
                                          int64_t batch, const fl_options* options);

/* One of many products: the arguments of fl_sgemm(). Start from FL_SGEMM_PROBLEM_INIT. */
typedef struct fl_sgemm_problem {
  size_t struct_size; /* sizeof(fl_sgemm_problem), the same in all of an array */
  int trans_a, trans_b;
  int64_t m, n, k;
  float alpha;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float beta;
  float* c;
  int64_t ldc;
} fl_sgemm_problem;
#define FL_SGEMM_PROBLEM_INIT {sizeof(fl_sgemm_problem), 0, 0, 0, 0, 0, 1.0f, NULL, 1, NULL, 1, 0.0f, NULL, 1}

/* fl_sgemm() for each of `count` problems, of equal or unequal shapes, beside each other: short ones by a thread each,
 * on a GPU on several streams. No C may overlap an A, a B or another C of the list. Each has the bits of fl_sgemm().
 * All are checked first, and a message names the one that is wrong, as problems[3]. */
FL_API fl_status fl_sgemm_grouped(int64_t count, const fl_sgemm_problem* problems, const fl_options* options);

/* C[n,n] = alpha * op(A)[n,k] op(A)^T + beta * C: A is stored as n x k, or as k x n if trans == 1. With FL_LOWER and
 * FL_UPPER only that triangle of C, with the diagonal, is read and written; a GPU computes the whole in memory of the
 * library's own, n * n floats. */
typedef enum fl_uplo { FL_WHOLE = 0, FL_LOWER = 1, FL_UPPER = 2 } fl_uplo;
FL_API fl_status fl_ssyrk(fl_uplo uplo, int trans, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                          float beta, float* c, int64_t ldc, const fl_options* options);

/* y = alpha * op(A) x + beta * y for a stored A[m,n]: y has m elements, x has n, or the other way round if trans == 1.
 * Increments are not 0; as in the BLAS a negative one walks the vector from its end, the pointer still being to the
 * lowest address. With beta == 0, y is not read. y must not overlap A or x. */
FL_API fl_status fl_sgemv(int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda, const float* x,
                          int64_t incx, float beta, float* y, int64_t incy, const fl_options* options);

/* The same for `batch` problems, with strides as those of fl_sgemm_batched_strided(): 0 uses one A or x for all. */
FL_API fl_status fl_sgemv_batched_strided(int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda,
                                          int64_t stride_a, const float* x, int64_t incx, int64_t stride_x, float beta,
                                          float* y, int64_t incy, int64_t stride_y, int64_t batch,
                                          const fl_options* options);

/* B[n,m] = transpose of A[m,n]. B must not overlap A, or be A: b == a and ldb == lda transpose a square in place. */
FL_API fl_status fl_transpose(int64_t m, int64_t n, const float* a, int64_t lda, float* b, int64_t ldb,
                              const fl_options* options);

/* The same for `batch` matrices that start stride_a and stride_b elements apart. In place if b == a and the leading
 * dimensions and the strides are equal. */
FL_API fl_status fl_transpose_batched_strided(int64_t m, int64_t n, const float* a, int64_t lda, int64_t stride_a,
                                              float* b, int64_t ldb, int64_t stride_b, int64_t batch,
                                              const fl_options* options);

/* ---- plans: a call that is decided once and executed many times. The kernel, its workspace and, on a GPU, a CUDA
 * graph of the call are kept; results are those of the call itself. Threads may share a plan: they take turns. */
typedef struct fl_plan fl_plan;
typedef enum fl_operand { FL_NO_OPERAND = 0, FL_OPERAND_A = 1, FL_OPERAND_B = 2 } fl_operand;

/* Makes a plan for the arguments of fl_sgemm_batched_strided(); batch is 1 and strides are 0 for those of fl_sgemm().
 * Nothing is computed. `constant` names an operand whose values stay the same, so that what a kernel makes of it may be
 * kept. On failure *plan is NULL. The strings of `options` need not outlive this call. */
FL_API fl_status fl_plan_sgemm(fl_plan** plan, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                               const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                               int64_t stride_b, float beta, float* c, int64_t ldc, int64_t stride_c, int64_t batch,
                               fl_operand constant, const fl_options* options);
/* For the arguments of fl_sgemm_grouped(). Its operands stay, and it has no kernel of one name. */
FL_API fl_status fl_plan_sgemm_grouped(fl_plan** plan, int64_t count, const fl_sgemm_problem* problems,
                                       const fl_options* options);
FL_API fl_status fl_plan_sgemv(fl_plan** plan, int trans, int64_t m, int64_t n, float alpha, const float* a,
                               int64_t lda, const float* x, int64_t incx, float beta, float* y, int64_t incy,
                               const fl_options* options);
FL_API fl_status fl_plan_sgemv_batched_strided(fl_plan** plan, int trans, int64_t m, int64_t n, float alpha,
                                               const float* a, int64_t lda, int64_t stride_a, const float* x,
                                               int64_t incx, int64_t stride_x, float beta, float* y, int64_t incy,
                                               int64_t stride_y, int64_t batch, const fl_options* options);
/* Computes, on `stream` or, if that is NULL, where fl_options said. It returns when the call itself would. */
FL_API fl_status fl_plan_execute(fl_plan* plan, void* stream);
/* Other addresses for the operands, a, b and c or a, x and y; NULL leaves one as it is. A constant operand that is
 * given, at whatever address, has new values. */
FL_API fl_status fl_plan_reset_operands(fl_plan* plan, const float* a, const float* b, float* c);

typedef struct fl_plan_info {
  size_t struct_size;     /* sizeof(fl_plan_info) */
  const char* kernel;     /* its name; "" where nothing is computed. It lives as long as the library */
  int device;             /* the ordinal of a CUDA device, or -1 for the CPU */
  size_t workspace_bytes; /* memory that the plan keeps on its device */
} fl_plan_info;
#define FL_PLAN_INFO_INIT {sizeof(fl_plan_info), NULL, 0, 0}
FL_API fl_status fl_plan_get_info(fl_plan* plan, fl_plan_info* info);
/* NULL is allowed. Not while another thread uses the plan. */
FL_API void fl_plan_free(fl_plan* plan);

/* ---- why: which kernel such a call takes, where, in about what time, and what else was considered. Nothing is
 * computed or read. Operands may be NULL, for any aligned memory that no two of them share. */
typedef struct fl_explanation {
  size_t struct_size; /* sizeof(fl_explanation) */
  const char* kernel; /* its name; "" where nothing would be computed. It lives as long as the library */
  const char* device; /* "cpu", "cuda:0", "cuda:0,cuda:2"; "" likewise. Valid until this thread asks again, as `text` */
  double estimated_us; /* microseconds it is expected to take, copies of operands in host memory included */
  int64_t steps;    /* of operands in host memory on a GPU: in so many parts, and `kernel` is of the largest; else 0 */
  int triangle;     /* 1: the product is symmetric, and one triangle of it is computed and mirrored */
  const char* text; /* all of it in sentences, lines of UTF-8 */
} fl_explanation;
#define FL_EXPLANATION_INIT {sizeof(fl_explanation), NULL, NULL, 0, 0, 0, NULL}
FL_API fl_status fl_explain_sgemm(fl_explanation* explanation, int trans_a, int trans_b, int64_t m, int64_t n,
                                  int64_t k, float alpha, const float* a, int64_t lda, int64_t stride_a, const float* b,
                                  int64_t ldb, int64_t stride_b, float beta, const float* c, int64_t ldc,
                                  int64_t stride_c, int64_t batch, const fl_options* options);
FL_API fl_status fl_explain_sgemv(fl_explanation* explanation, int trans, int64_t m, int64_t n, float alpha,
                                  const float* a, int64_t lda, int64_t stride_a, const float* x, int64_t incx,
                                  int64_t stride_x, float beta, const float* y, int64_t incy, int64_t stride_y,
                                  int64_t batch, const fl_options* options);
FL_API fl_status fl_explain_transpose(fl_explanation* explanation, int64_t m, int64_t n, const float* a, int64_t lda,
                                      int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b, int64_t batch,
                                      const fl_options* options);

/* ---- what there is */
typedef enum fl_op { FL_SGEMM = 0, FL_SGEMV = 1, FL_TRANSPOSE = 2 } fl_op;

/* One row of the kernel table. All strings live as long as the library. Start from FL_KERNEL_INFO_INIT. */
typedef struct fl_kernel_info {
  size_t struct_size; /* sizeof(fl_kernel_info) */
  const char* name;   /* for fl_options.kernel */
  const char* device; /* "cpu" or "cuda" */
  const char* needs;  /* the hardware: "baseline", "avx2_fma", "avx512f", "amx_bf16", "neon", "cuda", "sm_80", ... */
  int available;      /* 1 if this machine and this build have it */
  const char* reason; /* why not; "" if available */
  const char* blurb;  /* one line of text */
  const char* passed_over;          /* why it is chosen by its name alone where it is available; "" if it is not so */
  int strict;                       /* 1: it serves FL_STRICT, the others FL_ACCURATE alone */
  int ladder;                       /* 1: a step of the course on kernels, there to be read */
  int tile_rows, tile_cols;         /* of the result, for a block; 0 if that is not fixed */
  const char* terms;                /* what it multiplies in place of float32: "fp16x2", "bf16x6" or "" */
  int split_k, cluster_k, stream_k; /* 1: blocks may take ranges of k; share them in a cluster; share out tiles */
  int tma;                          /* 1: the tensor memory accelerator moves operands or results where it can */
  const char* measured_on;          /* the chips its cost was fitted to, "h200" or "zen4,zen5"; "" if there is none */
  int addend;                       /* 1: it reads what beta multiplies where it lies, 0: that is copied to C first */
  int triangle;                     /* 1: of a symmetric product, A A^T, it computes one triangle and mirrors it */
  int reproducible;                 /* 1: it serves FL_REPRODUCIBLE too */
} fl_kernel_info;
#define FL_KERNEL_INFO_INIT \
  {sizeof(fl_kernel_info), NULL, NULL, NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, NULL, 0, 0, 0, 0, NULL, 0, 0, 0}

/* The number of kernels of one operation; -1 if there is no such operation. */
FL_API int fl_kernel_count(fl_op op);
/* Kernel number `index`, 0 <= index < fl_kernel_count(op), whether it can run here or not. */
FL_API fl_status fl_kernel_at(fl_op op, int index, fl_kernel_info* info);

/* Lets calls follow what `fastlinalg tune` measured on this machine; NULL is the file that the command writes. Call it
 * before the products: results may have other bits with a table than without. That file may be missing, which means no
 * table; one that is named, here or by FASTLINALG_TUNE, may not. What cannot be used is FL_INVALID_VALUE and changes
 * nothing. */
FL_API fl_status fl_load_tuning(const char* path);

/* Calls `write` with a line of text: the kernel chosen for each new shape and why not the others, which calls go to a
 * GPU in parts, and environment variables that mean nothing. A line is said once, from the thread of its call, which
 * goes on when `write` returns; it must not throw, nor use the plan that is being made. NULL ends it: calls that have
 * begun may still write. */
typedef void (*fl_log_function)(const char* line, void* user);
FL_API fl_status fl_set_log(fl_log_function write, void* user);

FL_API const char* fl_version(void);        /* "major.minor.patch" */
FL_API int fl_cuda_device_count(void);      /* 0 is a normal state; creates no CUDA context */
FL_API int fl_get_num_threads(void);        /* the most CPU threads a call uses */
FL_API fl_status fl_set_num_threads(int n); /* 1 to 256, for the whole process */
FL_API int fl_max_threads(void);            /* what affinity and cgroup allow */

/* What was built and what was found. All strings live as long as the library. */
typedef struct fl_info {
  size_t struct_size;        /* sizeof(fl_info) */
  const char* isa;           /* the instruction set that CPU kernels use: "baseline", "avx2_fma", "avx512f", "neon" */
  int cuda_built;            /* 1: the library has GPU kernels */
  const char* architectures; /* the GPUs that it has code for, as CMake names them */
  int cuda_error;            /* why there is no device: a cudaError_t, 0 if there is one */
  const char* cuda_message;  /* in words, "" if there is one */
  const char* missing_code;  /* why a device lacks kernels that its hardware could run; "" if it has them all */
  int driver, runtime;       /* CUDA versions, 13000 is 13.0; 0: none */
} fl_info;
#define FL_INFO_INIT {sizeof(fl_info), NULL, 0, NULL, 0, NULL, NULL, 0, 0}
FL_API fl_status fl_get_info(fl_info* info);

/* A CUDA device. All strings live as long as the library. */
typedef struct fl_device_info {
  size_t struct_size;      /* sizeof(fl_device_info) */
  const char* name;        /* as its driver says it */
  int compute_capability;  /* 90 is 9.0; what calls go by, which FASTLINALG_COMPUTE_CAPABILITY may lower */
  int hardware_capability; /* what it is */
  const char* pretended;   /* that the variable is set, or why it is ignored; "" */
  int sm_count;
  int clock_khz;  /* the highest */
  int64_t memory; /* bytes, as those below */
  int64_t l2_cache;
  int64_t shared_per_block;
  double memory_bytes_per_us;
  double peak_gflops;     /* of the float32 FMA pipes at the highest clock */
  const char* costs_from; /* the measured chip whose costs are used, carried over if it is another */
} fl_device_info;
#define FL_DEVICE_INFO_INIT {sizeof(fl_device_info), NULL, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0, NULL}
/* 0 <= device < fl_cuda_device_count() */
FL_API fl_status fl_get_device_info(int device, fl_device_info* info);

/* ---- memory. `device` is the ordinal of a CUDA device. */
typedef struct fl_memory_info {
  size_t struct_size; /* sizeof(fl_memory_info) */
  size_t used;        /* bytes in live buffers of the library on the device */
  size_t reserved;    /* that its pool holds there */
  size_t limit;       /* of fl_set_memory_limit(); 0: none */
  size_t free, total; /* of the device, as the driver reports */
  size_t pinned;      /* staging memory on the host */
  size_t results;     /* freed results on the host that are kept for later ones: of the Python package */
} fl_memory_info;
#define FL_MEMORY_INFO_INIT {sizeof(fl_memory_info), 0, 0, 0, 0, 0, 0, 0}
FL_API fl_status fl_get_memory_info(int device, fl_memory_info* info);
/* The most device memory of the library; 0 removes the limit. Calls on host memory that need more are computed part by
 * part, others are FL_OUT_OF_MEMORY. */
FL_API fl_status fl_set_memory_limit(int device, size_t bytes);
/* Gives back what is kept for later calls, on the device and on the host. */
FL_API fl_status fl_trim(int device);

/* Device memory of the library's pool, for programs without a CUDA toolkit; others may have theirs from anywhere.
 * Copies are made in the order of fl_own_stream() and are done on return. */
typedef struct fl_buffer fl_buffer;
FL_API fl_status fl_buffer_create(fl_buffer** buffer, int device, size_t bytes); /* on failure *buffer is NULL */
FL_API float* fl_buffer_data(const fl_buffer* buffer);
FL_API fl_status fl_buffer_upload(fl_buffer* buffer, size_t offset, const void* host, size_t bytes);
FL_API fl_status fl_buffer_download(const fl_buffer* buffer, size_t offset, void* host, size_t bytes);
FL_API void fl_buffer_free(fl_buffer* buffer); /* NULL is allowed */

/* The library's own stream of a device, for fl_options.stream. */
FL_API fl_status fl_own_stream(int device, void** stream);
/* What is queued on `later` from now on waits for what is on `earlier` now. */
FL_API fl_status fl_order_after(int device, void* later, void* earlier);

#ifdef __cplusplus
}
#endif

#endif
