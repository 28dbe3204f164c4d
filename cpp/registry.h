// The kernel table as typed rows. kernels.def is the only list; this turns it into arrays.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "export.h"
#include "problem.h"

namespace fl {

// What hardware a row needs. hardware.h answers whether this machine has it.
enum class Needs { baseline, avx2_fma, avx512f, cuda, sm_80, sm_90a };
constexpr bool on_cuda(Needs needs) { return needs >= Needs::cuda; }

struct KeptSplits;  // splits.h

// What a running kernel may use. A kernel never allocates, throws, reads the environment or picks a device.
struct Context {
  void* workspace = nullptr;           // at least Kernel::workspace(args) bytes, 256-byte aligned
  int threads = 1;                     // CPU rows: how many threads the call may use
  void* stream = nullptr;              // GPU rows: the cudaStream_t to launch on
  int sm_count = 0;                    // GPU rows: multiprocessors of the current device
  const KeptSplits* splits = nullptr;  // GPU rows that split their operands: what is kept of that
  bool repeated = false;               // GPU rows: a plan's, which runs on the same operands again and again
};

template <class Args>
struct Kernel {
  const char* name;
  Needs needs;
  const char* (*legal)(const Args&);         // nullptr if the row can compute this, else what it lacks
  double (*cost)(const Args&);               // estimated microseconds; dispatch takes the smallest
  std::size_t (*workspace)(const Args&);     // bytes
  const char* blurb;                         // one line for docs and `fastlinalg.kernels()`
  void (*run)(const Args&, const Context&);  // nullptr where this build has no CUDA
  // Float32 additions one after the other (chains.h); nullptr: any number will do.
  int64_t (*chain)(const Args&) = nullptr;
};

template <class Args>
std::span<const Kernel<Args>> kernels();
template <>
FL_EXPORT std::span<const Kernel<SgemmArgs>> kernels();
template <>
FL_EXPORT std::span<const Kernel<SgemvArgs>> kernels();
template <>
FL_EXPORT std::span<const Kernel<TransposeArgs>> kernels();

template <class Args>
constexpr const char* op_name();
template <>
constexpr const char* op_name<SgemmArgs>() {
  return "sgemm";
}
template <>
constexpr const char* op_name<SgemvArgs>() {
  return "sgemv";
}
template <>
constexpr const char* op_name<TransposeArgs>() {
  return "transpose";
}

}  // namespace fl
