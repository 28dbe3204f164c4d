#include "plan/accurate/workspace.h"

#include <algorithm>

#include "plan/accurate/mma_plan.h"
#include "plan/accurate/wgmma_plan.h"

namespace fl {

namespace {
// A device with few multiprocessors takes other tiles, but sums up in the same order.
constexpr bool same_parts_of_k(int64_t m, int64_t n, int64_t k) {
  for (const int64_t multiprocessors : {1, 16, 114, 148})
    if (fp16x2_tiles[choose_wgmma_tile(m, n, k, multiprocessors).index].k_parts() !=
        fp16x2_tiles[choose_wgmma_tile(m, n, k, PLAN_MULTIPROCESSORS).index].k_parts())
      return false;
  return true;
}
static_assert(same_parts_of_k(512, 512, 1024) && same_parts_of_k(768, 768, 1024) && same_parts_of_k(2048, 2048, 1024),
              "in how many parts k is summed must not depend on the device");
}  // namespace

std::size_t bf16x6_workspace(const SgemmArgs& p) {
  if (!terms_fit(p.k)) return 0;
  return AccuratePlan(p, Terms::bf16x6, TERM_BLOCK, three_terms_split_k(p)).bytes;
}

std::size_t own_fp16x2_workspace(const SgemmArgs& p) {
  const SgemmArgs order = in_16_bits_first(p);
  // Which tile a device takes depends on its number of multiprocessors.
  return AccuratePlan(order, Terms::fp16x2, order.n <= LARGEST_N_OF_96 ? 96 : TERM_BLOCK, wgmma_split_k(order)).bytes;
}

std::size_t fp16x2_workspace(const SgemmArgs& p) {
  if (!terms_fit(p.k)) return 0;
  const std::size_t own = own_fp16x2_workspace(p);
  const std::size_t fallback = falls_back_to_three_terms(p) ? bf16x6_workspace(p) : 0;
  return has_room_for_three_terms(p) ? own + fallback : std::max(own, fallback);
}

std::size_t bf16x6_mma_workspace(const SgemmArgs& p) {
  return terms_fit(p.k) ? AccuratePlan(p, Terms::bf16x6).bytes : 0;
}

std::size_t fp16x2_mma_workspace(const SgemmArgs& p) {
  if (!terms_fit(p.k)) return 0;
  const AccurateSplitK split_k = mma_split_k(MmaProduct::fp16x2, p.m, p.n, p.k);
  const std::size_t own = AccuratePlan(p, Terms::fp16x2, TERM_BLOCK, split_k).bytes;
  const std::size_t fallback = has_bf16x6_fallback(p) ? bf16x6_mma_workspace(p) : 0;
  return own > fallback ? own : fallback;
}

std::size_t fp16x2_mma_k8_workspace(const SgemmArgs& p) {
  return terms_fit(p.k) ? AccuratePlan(p, Terms::fp16x2).bytes : 0;
}

}  // namespace fl
