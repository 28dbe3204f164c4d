// The packed SGEMM: how the threads of a call share it.
//
// C is cut in M and N only, never in K. The threads of a group of columns take strips of rows from it, many while many
// are left and single ones in the end: a core that is slow, or lost for a while, takes fewer. Each packs the A and B it
// needs into buffers of its own and keeps B while it stays in the group, so threads share nothing but the number of
// strips taken and never wait for each other. Packing again what another thread packs costs less than a barrier: B is
// copied between the multiplications of the panel before, and A costs about as much as 9 columns.
#pragma once

#include "shared_groups.h"
#include "triangle_product.h"

namespace fl {
namespace {

// Product is BlockProduct<S>, or what walks a block in another way.
template <class Product>
class SharedProducts : public SharedGroups<SharedProducts<Product>, Cut> {
  using Base = SharedGroups<SharedProducts<Product>, Cut>;
  friend Base;
  using Base::buffers, Base::cut_, Base::p_, Base::waiting;
  static constexpr CpuBlocking blocking = Product::blocking;

 public:
  SharedProducts(const SgemmArgs& p, const Cut& cut, const PackLayout& layout, const Context& context)
      : Base(p, cut, layout, context),
        panels_{ceil_div(p.n, blocking.NR), cut.groups},
        strips_{p.m, ceil_div(p.m, blocking.MR)} {}

 private:
  void whole(int64_t batch, int slot) { Product(p_, batch, buffers(slot), waiting(slot)).run({0, p_.m, 0, p_.n}); }
  void work_on(int64_t group, int slot) {
    const int64_t panel = panels_.begin(group % cut_.groups), j = panel * blocking.NR;
    const int64_t n = smaller(panels_.begin(group % cut_.groups + 1) * blocking.NR, p_.n) - j;
    Product product(p_, group / cut_.groups, buffers(slot), waiting(slot));
    bool packed = false;
    for (Split::Part part; (part = take(group, packed)).size > 0; packed = true) {
      const int64_t i = strips_.begin(part.begin);
      const Block block{i, strips_.begin(part.begin + part.size) - i, j, n};
      cut_.keep ? product.run_keeping(block, packed) : product.run(block);
    }
  }
  // Half of what would be each thread's share of the strips left. Not fewer than take about 10 us, and at first as many
  // as B is packed in the shadow of.
  Split::Part take(int64_t group, bool packed) {
    const int64_t sharing = this->sharing();
    const int64_t shadow = sharing > 1 ? smaller(4, ceil_div(strips_.parts, sharing)) : 8;
    const int64_t worth = int64_t(6e5 / (double(blocking.MR) * double(cut_.columns) * double(p_.k)));
    const int64_t least = larger(cut_.keep && packed ? Product::least_strips : shadow, worth);
    return this->take_next(group, [&](int64_t begin) {
      const int64_t left = strips_.parts - begin;
      return smaller(left, larger(least, left / (2 * sharing)));
    });
  }

  Split panels_;
  typename Product::RowStrips strips_;
};

template <class S>
void packed_sgemm(const SgemmArgs& p, const Context& context) {
  if (p.k == 0) return scale(p);
  if (p.symmetric) return symmetric_sgemm<S>(p, context);
  const Cut cut = cut_for_threads(p, S::blocking, context.threads);
  SharedProducts<BlockProduct<S>>(p, cut, pack_layout(p, S::blocking, cut), context).run();
}

}  // namespace
}  // namespace fl
