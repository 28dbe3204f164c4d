/* The C interface: a product, a matrix-vector product, a transpose, and an error. */
#include <fastlinalg/fastlinalg.h>
#include <stdio.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, fl_last_error());
  return 1;
}

int main(void) {
  const float a[2 * 3] = {1, 2, 3, 4, 5, 6}; /* 2 x 3 */
  float c[2 * 2], y[2], b[3 * 2];
  fl_options on_cpu = FL_OPTIONS_INIT;
  on_cpu.device = "cpu";

  if (fl_sgemm(0, 1, 2, 2, 3, 1.0f, a, 3, a, 3, 0.0f, c, 2, NULL)) return failed("sgemm"); /* A A^T */
  if (c[0] != 14 || c[1] != 32 || c[2] != 32 || c[3] != 77) return failed("sgemm: wrong result");

  if (fl_sgemv(0, 2, 3, 1.0f, a, 3, a, 1, 0.0f, y, 1, &on_cpu)) return failed("sgemv"); /* A times its first row */
  if (y[0] != 14 || y[1] != 32) return failed("sgemv: wrong result");

  if (fl_transpose(2, 3, a, 3, b, 2, NULL)) return failed("transpose");
  if (b[0] != 1 || b[1] != 4 || b[4] != 3 || b[5] != 6) return failed("transpose: wrong result");

  on_cpu.kernel = "no such kernel";
  if (fl_sgemm(0, 1, 2, 2, 3, 1.0f, a, 3, a, 3, 0.0f, c, 2, &on_cpu) != FL_INVALID_VALUE) return failed("no error");
  printf("as it should be: %s\n", fl_last_error());
  return 0;
}
