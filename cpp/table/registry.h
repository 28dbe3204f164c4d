// The kernel table as typed rows. kernels.def is the only list; this turns it into arrays.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/context.h"
#include "core/export.h"
#include "core/problem.h"
#include "plan/terms.h"

namespace fl {

// What hardware a row needs. hardware.h answers whether this machine has it.
enum class Needs { baseline, avx2_fma, avx512f, cuda, sm_80, sm_90a };
constexpr bool on_cuda(Needs needs) { return needs >= Needs::cuda; }

template <class Args>
struct Kernel {
  const char* name;
  Needs needs;
  const char* (*legal)(const Args&);         // nullptr if the row can compute this, else what it lacks
  double (*cost)(const Args&);               // estimated microseconds; dispatch takes the smallest
  std::size_t (*workspace)(const Args&);     // bytes
  const char* blurb;                         // one line for docs and `fastlinalg.kernels()`
  void (*run)(const Args&, const Context&);  // nullptr where this build has no CUDA
  // Float32 additions one after the other (accumulation_depth.h); nullptr: any number will do.
  int64_t (*depth)(const Args&) = nullptr;
  Terms terms = Terms::none;  // what it multiplies in place of float32 numbers
  bool wgmma = false;         // terms by warpgroup products, which have tiles of 96 columns and fall back on bf16x6
};

template <class Args>
std::span<const Kernel<Args>> kernels();
template <>
FL_EXPORT std::span<const Kernel<SgemmArgs>> kernels();
template <>
FL_EXPORT std::span<const Kernel<SgemvArgs>> kernels();
template <>
FL_EXPORT std::span<const Kernel<TransposeArgs>> kernels();

// The named kernel; throws InvalidValue with the list of names if there is none.
template <class Args>
FL_EXPORT const Kernel<Args>& find(std::string_view name);

}  // namespace fl
