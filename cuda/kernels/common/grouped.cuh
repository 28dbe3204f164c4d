// One launch for several products, whose blocks follow one another. A kernel that offers it has a twin with the same
// body, and the parameters of many launches in place of those of one; its row of the table has Traits::grouped. A
// product has the bits that it has alone. A launch takes the host some microseconds, as long as small products compute.
#pragma once

#include <algorithm>
#include <climits>
#include <type_traits>

#include "core/launch_group.h"
#include "core/problem.h"
#include "cuda/kernels/common/launch.cuh"

namespace fl {

template <class Plan, class Args>
struct GroupMember {
  Args p;
  Plan plan;
};

// The parameters of a twin: which numbers the blocks of each product have, and what the kernel gets for it alone.
template <class Plan, class Args = SgemmArgs>
struct Group {
  static constexpr unsigned MOST = 32;  // products, a power of two
  unsigned ends[MOST];                  // UINT_MAX behind the last
  GroupMember<Plan, Args> members[MOST];

  struct Place {
    const GroupMember<Plan, Args>& of;
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

// The twin of a kernel of which a block does BODY; REST is what that takes behind the number of the block.
template <auto BODY, int THREADS, int BLOCKS, class Plan, class Args = SgemmArgs, auto... REST>
__global__ void __launch_bounds__(THREADS, BLOCKS) group_kernel(const __grid_constant__ Group<Plan, Args> group) {
  const auto [of, block] = group.place(blockIdx.x);
  BODY(of.p, of.plan, block, REST...);
}

template <class Plan, class Args>
struct KeptMember {
  LaunchShape shape;
  GroupMember<Plan, Args> member;
};

template <class Plan, class Args>
void launch_groups(const LaunchedKernel& twin, std::span<const KeptLaunch* const> kept, const Context& ctx) {
  Group<Plan, Args> group;
  while (!kept.empty()) {
    LaunchShape shape = kept.front()->as<KeptMember<Plan, Args>>().shape;
    shape.blocks = 0;
    std::fill(std::begin(group.ends), std::end(group.ends), UINT_MAX);
    std::size_t count = 0;
    for (; count < std::min<std::size_t>(kept.size(), group.MOST); ++count) {
      const auto& one = kept[count]->as<KeptMember<Plan, Args>>();
      if (one.shape.cluster != shape.cluster) break;
      group.ends[count] = shape.blocks += one.shape.blocks;
      group.members[count] = one.member;
    }
    void* arguments[] = {&group};
    launch_kernel(twin, shape, ctx, arguments);
    kept = kept.subspan(count);
  }
}

template <auto TWIN, class Plan, class Args>
void launch_kept(std::span<const KeptLaunch* const> kept, const Context& ctx) {
  static_assert(std::is_same_v<decltype(TWIN), void (*)(Group<Plan, Args>)>);
  launch_groups<Plan, Args>(launched<TWIN>(), kept, ctx);
}

// Keeps a launch if the call is of a list. What does not depend on the product is equal in all shapes, but for the size
// of clusters.
template <auto TWIN, class Args, class Plan>
bool keep(const LaunchShape& shape, const Context& ctx, const Args& p, const Plan& plan) {
  if (ctx.group) ctx.group->keep(launch_kept<TWIN, Plan, Args>, KeptMember<Plan, Args>{shape, {p, plan}});
  return ctx.group;
}

// Alone, or with others if the call is of a list.
template <auto KERNEL, auto TWIN, class Plan>
void launch_or_keep(const LaunchShape& shape, const Context& ctx, const SgemmArgs& p, const Plan& plan) {
  if (!keep<TWIN>(shape, ctx, p, plan)) launch_kernel<KERNEL>(shape, ctx, p, plan);
}

}  // namespace fl
