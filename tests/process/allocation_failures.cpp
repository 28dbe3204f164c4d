// Calls of the C interface in which the n-th request for memory or a thread fails, for every n, from the state of a
// fresh process and a fresh thread: each is a forked child's. What the library asks for goes through the definitions
// here, because those of a program come before those of its libraries; so does what the C library asks for on behalf of
// a thread. The library is loaded while the program runs, as Python loads it, and the C++ runtime with it, which this
// program does without: what is thread_local in either has no memory yet then.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "fastlinalg/fastlinalg.h"

namespace {

thread_local long failing = -1, requests = 0;  // of this thread: other threads of the library ask for nothing
bool all_from_there = false;

bool refused() {
  if (failing < 0) return false;
  ++requests;
  const bool refuse = all_from_there ? requests >= failing : requests == failing;
  if (refuse) errno = ENOMEM;  // which the C library expects of what it asks for itself
  return refuse;
}
template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
// A request right behind a large block that was given back is granted, as malloc() does.
thread_local size_t given_back = 0;
bool refused(size_t bytes) {
  const size_t there = given_back;
  given_back = 0;
  return (there < 32768 || bytes > 16384) && refused();
}

constexpr int64_t m = 150, n = 130, k = 170;
float a[m * k], b[k * n], c[m * n], square[m * m];

void fill(float* x, int64_t count, float value) {
  for (int64_t i = 0; i < count; ++i) x[i] = value;
}
bool all_are(const float* x, int64_t count, float value) {
  for (int64_t i = 0; i < count; ++i)
    if (x[i] != value) return false;
  return true;
}

// Whether the result is right, if the call says that it is there.
bool call(fl_op op, const fl_options& options, fl_status& status) {
  fill(c, m * n, 0);
  switch (op) {
    case FL_SGEMM:
      status = fl_sgemm(0, 0, m, n, k, 1, a, k, b, n, 0, c, n, &options);
      return status != FL_OK || all_are(c, m * n, k);
    case FL_SGEMV:
      status = fl_sgemv(1, k, m, 1, a, m, b, 1, 0, c, 1, &options);
      return status != FL_OK || all_are(c, m, k);
    case FL_TRANSPOSE:
      status = fl_transpose(n, k, b, k, a, n, &options);
      if (status != FL_OK || !all_are(a, n * k, 1)) return status != FL_OK;
      status = fl_transpose(m, m, square, m, square, m, &options);
      return all_are(square, m * m, 1);
  }
  return false;
}

int fault(const char* which, bool right, fl_status status) {
  std::printf("%s: %s, status %d: %s\n", which, right ? "no wrong result" : "a wrong result", status, fl_last_error());
  std::fflush(stdout);  // _exit does not
  return 2;
}

// 0: memory ran out, or the result was right without it; 1: nothing was left to fail; 2: a fault.
int child(fl_op op, const fl_options& options, long nth) {
  fl_status status = FL_OK;
  failing = nth;
  bool right = call(op, options, status);
  failing = -1;
  if (!right || (status != FL_OK && status != FL_OUT_OF_MEMORY)) return fault("the call", right, status);
  right = call(op, options, status);
  if (!right || status != FL_OK) return fault("the next call", right, status);
  return requests < nth ? 1 : 0;
}

struct InThread {
  fl_op op;
  const fl_options& options;
  long nth;
  int answer;
};
int child_in_thread(fl_op op, const fl_options& options, int threads, long nth) {
  InThread call{op, options, nth, 2};
  pthread_t thread;
  fl_set_num_threads(threads);
  const auto body = [](void* arg) -> void* {
    auto& in = *static_cast<InThread*>(arg);
    in.answer = child(in.op, in.options, in.nth);
    return nullptr;
  };
  return pthread_create(&thread, nullptr, body, &call) || pthread_join(thread, nullptr) ? 2 : call.answer;
}

int run(fl_op op, const fl_options& options, const char* name) {
  for (int threads : {1, 4})
    for (long nth = 1, status = 0; status == 0; ++nth) {
      std::fflush(stdout);
      const pid_t pid = fork();
      if (pid == 0) _exit(child_in_thread(op, options, threads, nth));
      int how = 0;
      waitpid(pid, &how, 0);
      status = WIFEXITED(how) ? WEXITSTATUS(how) : 100 + how;
      if (status > 1 || nth > 1000) {
        std::printf("%s, %d threads, request %ld%s: status %ld\n", name, threads, nth,
                    all_from_there ? " and all later ones" : "", status);
        return 1;
      }
    }
  return 0;
}

}  // namespace

extern "C" void* __libc_malloc(size_t);
extern "C" void* __libc_calloc(size_t, size_t);
extern "C" void* __libc_memalign(size_t, size_t);
extern "C" void __libc_free(void*);
extern "C" void* malloc(size_t bytes) noexcept { return refused(bytes) ? nullptr : __libc_malloc(bytes); }
extern "C" void* calloc(size_t count, size_t bytes) noexcept {
  return refused(count * bytes) ? nullptr : __libc_calloc(count, bytes);
}
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return refused(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}
extern "C" void free(void* block) noexcept {
  given_back = block ? malloc_usable_size(block) : 0;
  __libc_free(block);
}
extern "C" void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  static auto* const original = real<void*(void*, size_t, int, int, int, off_t)>("mmap");
  return refused() ? MAP_FAILED : original(address, bytes, protection, flags, file, offset);
}
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*body)(void*), void* arg) noexcept {
  static auto* const original = real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return refused() ? EAGAIN : original(thread, how, body, arg);
}

int main(int, char** argv) {
  fill(a, m * k, 1), fill(b, k * n, 1), fill(square, m * m, 1);
  if (!dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) return std::puts(dlerror()), 1;
  int faults = 0;
  for (const bool all : {false, true}) {
    all_from_there = all;
    for (const fl_op op : {FL_SGEMM, FL_SGEMV, FL_TRANSPOSE}) {
      fl_options options = FL_OPTIONS_INIT;
      options.device = "cpu";
      faults += run(op, options, "dispatched");
      for (int row = 0; row < fl_kernel_count(op); ++row) {
        fl_kernel_info info = FL_KERNEL_INFO_INIT;
        if (fl_kernel_at(op, row, &info) != FL_OK || !info.available || std::strcmp(info.device, "cpu")) continue;
        options.kernel = info.name;
        faults += run(op, options, info.name);
      }
    }
  }
  std::puts(faults ? "FAULTS" : "all right");
  return faults;
}
