#include "core/element.h"

#include <algorithm>
#include <atomic>

#include "core/halves.h"

namespace fl {
namespace {

template <class T>
float to_float(T value) {
  return float(value);
}
// The processor's own prefetching ends with a page of 4 KiB and begins anew with each: asked for so far ahead, lines of
// the next page are there in time.
constexpr int64_t ahead = 4096;  // bytes
constexpr int64_t cache_line = 64;

template <class T>
inline __attribute__((always_inline)) void run_of_blocks(const T* from, float* to, int64_t count) {
  constexpr int64_t block = 4 * cache_line / int64_t(sizeof(T));
  int64_t i = 0;
  for (; i + block <= count; i += block) {
    const char* const next = reinterpret_cast<const char*>(from + i) + ahead;
    for (int64_t at = 0; at < 4 * cache_line; at += cache_line) __builtin_prefetch(next + at);
    for (int64_t j = 0; j < block; ++j) to[i + j] = to_float(from[i + j]);
  }
  for (; i < count; ++i) to[i] = to_float(from[i]);
}

// What one thread reads in a second counts where the link of a GPU or a kernel waits for it: of float64 7.8 GB by
// vectors of two, 8.7 by vectors of eight (15 threads at once, an H200's host). The bits are the same. Integers keep
// up with any vectors.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)  // whose calls of the resolver would come before its start
#define FL_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FL_WIDEST
#endif
FL_WIDEST void convert_run(const double* from, float* to, int64_t count) { run_of_blocks(from, to, count); }
FL_WIDEST void convert_run(const Half* from, float* to, int64_t count) { run_of_blocks(from, to, count); }
FL_WIDEST void convert_run(const Bfloat* from, float* to, int64_t count) { run_of_blocks(from, to, count); }
template <class T>
void convert_run(const T* from, float* to, int64_t count) {
  run_of_blocks(from, to, count);
}

// Without a unit step it goes tile by tile, so that each cache line fetched for one element is still there when its
// neighbours are due.
template <class T>
void convert_lines(const void* begin, int64_t line, int64_t step, float* to, int64_t to_line, int64_t lines,
                   int64_t length) {
  const T* const from = static_cast<const T*>(begin);
  if (step == 1) {
    for (int64_t l = 0; l < lines; ++l) convert_run(from + l * line, to + l * to_line, length);
    return;
  }
  constexpr int64_t TILE = 16;
  for (int64_t l0 = 0; l0 < lines; l0 += TILE)
    for (int64_t e0 = 0; e0 < length; e0 += TILE)
      for (int64_t l = l0; l < std::min(l0 + TILE, lines); ++l)
        for (int64_t e = e0; e < std::min(e0 + TILE, length); ++e)
          to[l * to_line + e] = to_float(from[l * line + e * step]);
}

struct Type {
  std::size_t size;
  void (*convert)(const void*, int64_t, int64_t, float*, int64_t, int64_t, int64_t);
};
template <class T>
constexpr Type type{sizeof(T), convert_lines<T>};

// In the order of Element.
constexpr Type types[] = {type<float>,   type<double>,  type<Half>,    type<Bfloat>,   type<int8_t>,   type<int16_t>,
                          type<int32_t>, type<int64_t>, type<uint8_t>, type<uint16_t>, type<uint32_t>, type<uint64_t>};

const Type& type_of(Element element) { return types[static_cast<std::size_t>(element)]; }

}  // namespace

std::size_t size_of(Element element) { return type_of(element).size; }

void convert(const Stored& stored, const float* from, int64_t line, int64_t step, float* to, int64_t to_line,
             int64_t lines, int64_t length) {
  const Type& type = type_of(stored.element);
  const char* const begin = reinterpret_cast<const char*>(stored.origin) + (from - stored.origin) * int64_t(type.size);
  type.convert(begin, line, step, to, to_line, lines, length);
}

OverflowWatch::OverflowWatch(const Stored& stored)
    : overflowed_(stored.element == Element::float64 ? stored.overflowed : nullptr) {
  if (!overflowed_) return;
  std::fegetexceptflag(&before_, FE_OVERFLOW);
  std::feclearexcept(FE_OVERFLOW);
}

OverflowWatch::~OverflowWatch() {
  if (!overflowed_) return;
  if (std::fetestexcept(FE_OVERFLOW)) std::atomic_ref(*overflowed_).store(true, std::memory_order_relaxed);
  std::fesetexceptflag(&before_, FE_OVERFLOW);
}

}  // namespace fl
