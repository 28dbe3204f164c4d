// One launch for several products, whose blocks follow one another. A kernel that offers it has a twin with the same
// body, and the parameters of many launches in place of those of one; its row of the table has Traits::grouped. A
// product has the bits that it has alone. A launch takes the host some microseconds, as long as small products compute.
#pragma once

#include <algorithm>
#include <climits>

#include "core/launch_group.h"
#include "core/problem.h"
#include "cuda/kernels/common/launch.cuh"

namespace fl {

template <class Plan>
struct GroupMember {
  SgemmArgs p;
  Plan plan;
};

// The parameters of a twin: which numbers the blocks of each product have, and what the kernel gets for it alone.
template <class Plan>
struct Group {
  static constexpr unsigned MOST = 32;  // products, a power of two
  unsigned ends[MOST];                  // UINT_MAX behind the last
  GroupMember<Plan> members[MOST];

  struct Place {
    const GroupMember<Plan>& of;
    unsigned block;  // of that product's
  };
  __device__ __forceinline__ Place place(unsigned block) const {
    unsigned i = 0;
#pragma unroll
    for (unsigned step = MOST / 2; step > 0; step /= 2)
      if (ends[i + step - 1] <= block) i += step;
    return {members[i], i > 0 ? block - ends[i - 1] : block};
  }
};

template <class Plan>
struct KeptMember {
  LaunchShape shape;
  GroupMember<Plan> member;
};

template <auto KERNEL, class Plan>
void launch_kept(std::span<const KeptLaunch* const> kept, const Context& ctx) {
  Group<Plan> group;
  while (!kept.empty()) {
    const std::span<const KeptLaunch* const> now = kept.first(std::min<std::size_t>(kept.size(), Group<Plan>::MOST));
    LaunchShape shape = now.front()->as<KeptMember<Plan>>().shape;
    shape.blocks = 0;
    std::fill(std::begin(group.ends), std::end(group.ends), UINT_MAX);
    for (std::size_t i = 0; i < now.size(); ++i) {
      const auto& one = now[i]->as<KeptMember<Plan>>();
      group.ends[i] = shape.blocks += one.shape.blocks;
      group.members[i] = one.member;
    }
    launch_kernel<KERNEL>(shape, ctx, group);
    kept = kept.subspan(now.size());
  }
}

// Alone, or with others if the call is of a list. What does not depend on the product is equal in all shapes.
template <auto KERNEL, auto TWIN, class Plan>
void launch_or_keep(const LaunchShape& shape, const Context& ctx, const SgemmArgs& p, const Plan& plan) {
  if (!ctx.group) return launch_kernel<KERNEL>(shape, ctx, p, plan);
  ctx.group->keep(launch_kept<TWIN, Plan>, KeptMember<Plan>{shape, {p, plan}});
}

}  // namespace fl
