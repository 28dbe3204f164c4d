// In each file that tools/mutants has seeded faults in: whether a fault is the one that is tried.
//
// A page of memory that all processes of a test share says which one that is, and is told which ones have been reached.
// Kernels have a copy of both, of their own in each object.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace fl_mutants {

struct Page {
  int tried;
  unsigned char reached[8188];
};
inline Page none;
inline Page* page = &none;

__attribute__((constructor(101), unused)) static void open_page() {
  const char* path = std::getenv("MUTANTS_PAGE");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  if (page == &none) page = static_cast<Page*>(mmap(nullptr, sizeof none, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  close(file);
}

// The section lists what is evaluated when the program runs.
template <int N>
__attribute__((always_inline)) inline bool on_host() {
  asm volatile(".pushsection .mutants,\"\",@progbits\n\t.long %c0\n\t.popsection" ::"i"(N));
  page->reached[N] = 1;
  return page->tried == N;
}

#ifdef __CUDACC__
static __constant__ int tried_here;
static __device__ unsigned char reached_here[sizeof none.reached];

// To be called before the first kernel, and after each test.
struct Object {
  void (*exchange)(bool begin);
  Object* next;
};
inline Object* objects = nullptr;
inline unsigned char more[sizeof none.reached];
static void exchange(bool begin) {
  if (begin) {
    cudaMemcpyToSymbol(tried_here, &page->tried, sizeof page->tried);
    return;
  }
  if (cudaMemcpyFromSymbol(more, reached_here, sizeof more) != cudaSuccess) return;
  for (int i = 0; i < int(sizeof more); ++i) page->reached[i] |= more[i];
}
static Object object{exchange, nullptr};
__attribute__((constructor, unused)) static void add_object() { object.next = objects, objects = &object; }
extern "C" __attribute__((visibility("default"), weak)) void fl_mutants_exchange(bool begin) {
  for (Object* each = objects; each; each = each->next) each->exchange(begin);
}

template <int N>
__device__ __forceinline__ bool on_device() {
  if (!reached_here[N]) reached_here[N] = 1;
  return tried_here == N;
}
#define FL_MUTANTS_BOTH __host__ __device__
#else
#define FL_MUTANTS_BOTH
#endif

template <int N>
FL_MUTANTS_BOTH __attribute__((always_inline)) constexpr bool mutant() {
  if (__builtin_is_constant_evaluated()) return false;
#ifdef __CUDA_ARCH__
  return on_device<N>();
#else
  return on_host<N>();
#endif
}

}  // namespace fl_mutants
