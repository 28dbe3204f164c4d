/* A program for any CBLAS, compiled once and linked with several: prints what the functions computed, and the position
 * of a wrong argument that was reported. */
#include <stdio.h>
#include <string.h>

enum { RowMajor = 101, ColMajor = 102, NoTrans = 111, Trans = 112, Upper = 121, Lower = 122 };
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void cblas_sgemv(int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void cblas_ssyrk(int, int, int, int, int, float, const float*, int, float, float*, int);
void cblas_somatcopy(int, int, int, int, float, const float*, int, float*, int);

static int reported = 0;
void cblas_xerbla(int position, const char* function, const char* form, ...) {
  (void)function, (void)form;
  reported = position;
}

static void show(const char* what, const float* values, int count) {
  int i;
  printf("%s", what);
  for (i = 0; i < count; ++i) printf(" %g", values[i]);
  printf("\n");
}

int main(int count, char** arguments) {
  const float a[6] = {1, 2, 3, 4, 5, 6};
  float c[9], y[3], b[6];
  memset(c, 0, sizeof c);
  cblas_sgemm(RowMajor, Trans, NoTrans, 3, 3, 2, 1, a, 3, a, 3, 0, c, 3);
  show("sgemm", c, 9);
  cblas_sgemv(ColMajor, NoTrans, 3, 2, 2, a, 3, a, -1, 0, y, 1);
  show("sgemv", y, 3);
  cblas_ssyrk(ColMajor, Lower, NoTrans, 3, 2, 1, a, 3, -1, c, 3);
  show("ssyrk", c, 9);
  cblas_somatcopy(RowMajor, Trans, 2, 3, 0.5f, a, 3, b, 2);
  show("somatcopy", b, 6);
  if (count > 1 && !strcmp(arguments[1], "errors")) {
    cblas_sgemm(RowMajor, NoTrans, NoTrans, 2, 2, 3, 1, a, 2, a, 2, 0, c, 2);
    printf("reported %d\n", reported);
  }
  return 0;
}
