// The kernel table as typed rows. kernels.def is the only list; this turns it into arrays.
#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>

#include "core/context.h"
#include "core/export.h"
#include "core/problem.h"
#include "table/measured.h"
#include "table/traits.h"

namespace fl {

// What hardware a row needs. hardware.h answers whether this machine has it.
enum class Needs { baseline, avx2_fma, avx512f, amx_bf16, neon, cuda, sm_80, sm_90, sm_90a };
constexpr bool on_cuda(Needs needs) { return needs >= Needs::cuda; }

// What each asks of a GPU, and the name that users see.
struct NeedsRow {
  Needs needs;
  const char* name;
  unsigned features;  // Feature bits, all of them
};
inline constexpr NeedsRow needs_rows[] = {
    {Needs::baseline, "baseline", 0},
    {Needs::avx2_fma, "avx2_fma", 0},
    {Needs::avx512f, "avx512f", 0},
    {Needs::amx_bf16, "amx_bf16", 0},
    {Needs::neon, "neon", 0},
    {Needs::cuda, "cuda", 0},
    {Needs::sm_80, "sm_80", feature_cp_async},
    {Needs::sm_90, "sm_90", feature_tma | feature_clusters | feature_pdl},
    {Needs::sm_90a, "sm_90a", feature_tma | feature_clusters | feature_pdl | feature_wgmma | feature_setmaxnreg},
};
constexpr const NeedsRow& needs_row(Needs needs) { return needs_rows[int(needs)]; }
static_assert([] {
  for (int i = 0; i < int(std::size(needs_rows)); ++i)
    if (needs_rows[i].needs != Needs(i)) return false;
  return true;
}());

template <class Args>
struct Kernel {
  const char* name;
  Needs needs;
  const char* (*legal)(const Args&);               // nullptr if the row can compute this, else what it lacks
  double (*cost)(const Args&, const DeviceSpec&);  // estimated microseconds; dispatch takes the smallest
  std::size_t (*workspace)(const Args&);           // bytes
  const char* blurb;                               // one line for docs and `fastlinalg.kernels()`
  void (*run)(const Args&, const Context&);        // nullptr where this build has no CUDA
  // Float32 additions one after the other (accumulation_depth.h); nullptr: any number will do.
  int64_t (*depth)(const Args&);
  Traits traits;
  CostModel<Args> model;  // what `cost` is made of
};

template <class Args>
FL_EXPORT std::span<const Kernel<Args>> kernels();

// The named kernel; throws InvalidValue with the list of names if there is none.
template <class Args>
FL_EXPORT const Kernel<Args>& find(std::string_view name);
template <class Args>
const Kernel<Args>* find_or_null(std::string_view name);

}  // namespace fl
