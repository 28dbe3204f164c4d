#include "table/registry.h"

#include <string>

#include "core/errors.h"
#include "core/operations.h"
#include "cost/accurate_cost.h"
#include "cost/cpu_rules.h"
#include "cost/gemv_cuda_cost.h"
#include "cost/rules.h"
#include "cost/strict_cost.h"
#include "cost/tall_skinny_cost.h"
#include "plan/accumulation_depth.h"
#include "plan/accurate_plan.h"
#include "plan/gemv_cuda_plan.h"
#include "plan/strict_plan.h"
#include "plan/tall_skinny_plan.h"

namespace fl {

// 1. Declare every kernel of the table. A row whose function is missing is a link error that names it.
#define SGEMM(name, ...) void sgemm_##name(const SgemmArgs&, const Context&);
#define SGEMV(name, ...) void sgemv_##name(const SgemvArgs&, const Context&);
#define TRANSPOSE(name, ...) void transpose_##name(const TransposeArgs&, const Context&);
#define CUDA_SGEMM SGEMM
#define CUDA_SGEMV SGEMV
#define CUDA_TRANSPOSE TRANSPOSE
#include "table/kernels.def"

// 2. Tiles that are legal, and named after themselves.
#define STRICT_SGEMM(tile, ...)         \
  static_assert(must_be_sound<tile>()); \
  static_assert(tile.name() == #tile, "the name says what the tile is, by the grammar in kernels.def");
#include "table/kernels.def"

// 3. GPU rows stay in the table of a CPU-only build, without a function, so that users see why they are not there.
#if FASTLINALG_CUDA
#define FL_CUDA_FN(fn) fn
#else
#define FL_CUDA_FN(fn) nullptr
#endif

// 4. One array per operation.
namespace {
constexpr Terms terms_of(std::string_view name) {
  if (name == "fp16x2" || name == "fp16x2_mma") return Terms::fp16x2;
  return name == "bf16x6" ? Terms::bf16x6 : Terms::none;
}
constexpr bool is_wgmma(std::string_view name) { return name == "fp16x2" || name == "bf16x6"; }

constexpr Kernel<SgemmArgs> sgemm_rows[] = {
#define SGEMM(name, needs, legal, cost, workspace, blurb) \
  {#name, Needs::needs, legal, cost, workspace, blurb, sgemm_##name},
#define CUDA_SGEMM(name, needs, legal, cost, depth, workspace, blurb)                        \
  {#name, Needs::needs,    legal,          cost, workspace, blurb, FL_CUDA_FN(sgemm_##name), \
   depth, terms_of(#name), is_wgmma(#name)},
#include "table/kernels.def"
};
constexpr Kernel<SgemvArgs> sgemv_rows[] = {
#define SGEMV(name, needs, legal, cost, workspace, blurb) \
  {#name, Needs::needs, legal, cost, workspace, blurb, sgemv_##name},
#define CUDA_SGEMV(name, needs, legal, cost, workspace, blurb) \
  {#name, Needs::needs, legal, cost, workspace, blurb, FL_CUDA_FN(sgemv_##name)},
#include "table/kernels.def"
};
constexpr Kernel<TransposeArgs> transpose_rows[] = {
#define TRANSPOSE(name, needs, legal, cost, workspace, blurb) \
  {#name, Needs::needs, legal, cost, workspace, blurb, transpose_##name},
#define CUDA_TRANSPOSE(name, needs, legal, cost, workspace, blurb) \
  {#name, Needs::needs, legal, cost, workspace, blurb, FL_CUDA_FN(transpose_##name)},
#include "table/kernels.def"
};
}  // namespace

template <>
std::span<const Kernel<SgemmArgs>> kernels() {
  return sgemm_rows;
}
template <>
std::span<const Kernel<SgemvArgs>> kernels() {
  return sgemv_rows;
}
template <>
std::span<const Kernel<TransposeArgs>> kernels() {
  return transpose_rows;
}

template <class Args>
const Kernel<Args>& find(std::string_view name) {
  std::string names;
  for (const auto& kernel : kernels<Args>()) {
    if (name == kernel.name) return kernel;
    names += (names.empty() ? "" : ", ") + std::string(kernel.name);
  }
  throw InvalidValue("unknown " + std::string(Operation<Args>::name) + " kernel '" + std::string(name) +
                     "'; there are: " + names);
}

#define FL_INSTANTIATE(Args) template const Kernel<Args>& find(std::string_view);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
