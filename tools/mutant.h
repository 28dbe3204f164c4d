// In each file that tools/mutants has seeded faults in: whether a fault is the one that is tried.
//
// A page of memory that all processes of a test share says which one that is, and is told which ones have been reached.
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

template <int N>
__attribute__((always_inline)) constexpr bool mutant() {
  if (__builtin_is_constant_evaluated()) return false;
  return on_host<N>();
}

}  // namespace fl_mutants
