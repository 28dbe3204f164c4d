/* The C interface: products, transposes, a plan, why a kernel is chosen, the log, the kernel table, and an error. */
#include <fastlinalg/fastlinalg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if FL_VERSION_NUMBER < 100
#error "this program needs fastlinalg 0.1"
#endif

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, fl_last_error());
  return 1;
}

static void count_lines(const char* line, void* user) {
  (void)line;
  ++*(int*)user;
}

/* One matrix times many vectors that become known one after the other. */
static int execute_a_plan(void) {
  const float a[2 * 3] = {1, 2, 3, 4, 5, 6}, first[3] = {1, 0, 0}, second[3] = {0, 0, 1};
  float y[2];
  fl_plan* plan;
  fl_plan_info info = FL_PLAN_INFO_INIT;
  if (fl_plan_sgemv(&plan, 0, 2, 3, 1.0f, a, 3, first, 1, 0.0f, y, 1, NULL)) return failed("plan");
  if (fl_plan_execute(plan, NULL) || y[0] != 1 || y[1] != 4) return failed("first execution");
  if (fl_plan_reset_operands(plan, NULL, second, NULL)) return failed("reset_operands");
  if (fl_plan_execute(plan, NULL) || y[0] != 3 || y[1] != 6) return failed("second execution");
  if (fl_plan_get_info(plan, &info)) return failed("plan info");
  printf("a plan, computed by %s\n", info.kernel);
  fl_plan_free(plan);
  return 0;
}

static int list_kernels(void) {
  int i;
  for (i = 0; i < fl_kernel_count(FL_SGEMM); ++i) {
    fl_kernel_info kernel = FL_KERNEL_INFO_INIT;
    if (fl_kernel_at(FL_SGEMM, i, &kernel)) return failed("kernel");
    if (kernel.available) printf("  sgemm %s%s\n", kernel.name, kernel.strict ? "" : ", accurate only");
  }
  return 0;
}

/* Four matrices at once, and which kernel does it. */
static int transpose_a_batch(void) {
  float a[4 * 6], b[4 * 6];
  fl_explanation why = FL_EXPLANATION_INIT;
  int i;
  for (i = 0; i < 4 * 6; ++i) a[i] = (float)i;
  if (fl_transpose_batched_strided(2, 3, a, 3, 6, b, 2, 6, 4, NULL)) return failed("transpose of a batch");
  if (b[6] != 6 || b[7] != 9 || b[22] != 20 || b[23] != 23) return failed("transpose of a batch: wrong result");
  if (fl_explain_transpose(&why, 2, 3, a, 3, 6, b, 2, 6, 4, NULL)) return failed("explain");
  printf("%s\n", why.text);
  return 0;
}

/* The best of some products, by the time of one thread. */
static int time_products(void) {
  const int64_t n = 1024;
  float* const a = malloc((size_t)(n * n) * sizeof *a);
  float* const c = malloc((size_t)(n * n) * sizeof *c);
  const int before = fl_get_num_threads();
  double best = 1e9;
  int64_t i;
  fl_options on_cpu = FL_OPTIONS_INIT;
  on_cpu.device = "cpu";
  if (!a || !c || fl_set_num_threads(1)) return failed("one thread");
  for (i = 0; i < n * n; ++i) a[i] = (float)(i % 97) - 48;
  for (i = 0; i < 10; ++i) {
    const clock_t start = clock();
    double seconds;
    if (fl_sgemm(0, 0, n, n, n, 1.0f, a, n, a, n, 0.0f, c, n, &on_cpu)) return failed("sgemm");
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (seconds < best) best = seconds;
  }
  printf("%d cubed by one thread: %.1f GFLOP/s\n", (int)n, 2e-9 * (double)(n * n * n) / best);
  free(a);
  free(c);
  return fl_set_num_threads(before) ? failed("threads") : 0;
}

int main(void) {
  const float a[2 * 3] = {1, 2, 3, 4, 5, 6}; /* 2 x 3 */
  float c[2 * 2], y[2], b[3 * 2];
  int lines = 0;
  fl_options on_cpu = FL_OPTIONS_INIT;
  on_cpu.device = "cpu";
  printf("fastlinalg %s, %d CUDA devices, %d threads\n", fl_version(), fl_cuda_device_count(), fl_get_num_threads());
  if (fl_set_log(count_lines, &lines)) return failed("set_log");

  if (fl_sgemm(0, 1, 2, 2, 3, 1.0f, a, 3, a, 3, 0.0f, c, 2, NULL)) return failed("sgemm"); /* A A^T */
  if (c[0] != 14 || c[1] != 32 || c[2] != 32 || c[3] != 77) return failed("sgemm: wrong result");

  if (fl_sgemv(0, 2, 3, 1.0f, a, 3, a, 1, 0.0f, y, 1, &on_cpu)) return failed("sgemv"); /* A times its first row */
  if (y[0] != 14 || y[1] != 32) return failed("sgemv: wrong result");

  if (fl_transpose(2, 3, a, 3, b, 2, NULL)) return failed("transpose");
  if (b[0] != 1 || b[1] != 4 || b[4] != 3 || b[5] != 6) return failed("transpose: wrong result");

  if (execute_a_plan() || transpose_a_batch() || list_kernels() || time_products()) return 1;
  if (lines < 3) return failed("the log said too little");
  fl_set_log(NULL, NULL);

  on_cpu.kernel = "no such kernel";
  if (fl_sgemm(0, 1, 2, 2, 3, 1.0f, a, 3, a, 3, 0.0f, c, 2, &on_cpu) != FL_INVALID_VALUE) return failed("no error");
  printf("as it should be: %s\n", fl_last_error());
  return 0;
}
