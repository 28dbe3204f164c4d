// What this library asks the system for, memory, pages and threads, fails when a test says so. CMakeLists.txt keeps
// these functions to the library: others have those of the system.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "failing_calls.h"

namespace {

template <class Function>
Function* of_system(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void* take(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (simulated::request_fails("operator new", caller)) return nullptr;
  return std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}
constexpr std::size_t usual = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t bytes) {
  if (void* const p = take(bytes, usual, __builtin_return_address(0))) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (void* const p = take(bytes, std::size_t(alignment), __builtin_return_address(0))) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return take(bytes, usual, __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(bytes, std::size_t(alignment), __builtin_return_address(0));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

extern "C" void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static auto* const original = of_system<void*(void*, size_t, int, int, int, off_t)>("mmap");
  if (!simulated::request_fails("mmap", __builtin_return_address(0)))
    return original(address, bytes, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*body)(void*), void* arg) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const original = of_system<Create>("pthread_create");
  if (simulated::request_fails("pthread_create", __builtin_return_address(0))) return EAGAIN;
  return original(thread, how, body, arg);
}
