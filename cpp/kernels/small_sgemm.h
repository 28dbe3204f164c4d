// SGEMM without packed A: its elements are read in place, whatever its strides. B is read in place if its rows are
// contiguous, else one panel at a time is packed. For products that fit the caches, where packing costs more than it
// saves, and for thin ones, where what is packed would be used once.
#pragma once

#include "packed_sgemm.h"

namespace fl {
namespace {

template <class S>
void small_product(const SgemmArgs& p, int64_t batch, const Block& block, float* panel) {
  constexpr int64_t NR = S::NV * S::W;
  constexpr int64_t KC = small_depth;
  const float* const b = p.b.data + batch * p.b.bs;
  const Split strips{block.m, ceil_div(block.m, S::MR_in_place)};
  const bool pack = p.b.cs != 1;
  Tile t{.a_rs = p.a.rs, .a_cs = p.a.cs, .b_rs = p.b.rs, .c_rs = p.c.rs, .alpha = p.alpha, .beta = p.beta};
  for (int64_t j = block.j; j < block.j + block.n; j += NR) {
    t.width = smaller(NR, block.j + block.n - j);
    const bool narrow = t.width <= S::W, part = !pack && t.width != S::W && t.width != NR;
    // Without a pack there is nothing to keep in cache, and the tiles of C are finished in one go.
    const int64_t step = pack ? KC : p.k;
    for (int64_t k = 0; k < p.k; k += step) {
      t.k = smaller(step, p.k - k);
      t.first = k == 0;
      t.b = b + k * p.b.rs + j * p.b.cs;
      if (pack) {
        t.b_rs = narrow ? S::W : NR;
        pack_strip<S>(panel, t.b_rs, t.width, t.b, p.b.cs, p.b.rs, t.k);
        t.b = panel;
      }
      for (int64_t s = 0; s < strips.parts; ++s) {
        const int64_t i = block.i + strips.begin(s), rows = strips.size(s);
        t.a = p.a.data + batch * p.a.bs + i * p.a.rs + k * p.a.cs;
        t.c = p.c.data + batch * p.c.bs + i * p.c.rs + j * p.c.cs;
        const TileFunction f = narrow ? (part ? tile_function<S, 1, false, BSource::in_place_part>(rows)
                                              : tile_function<S, 1, false, BSource::in_place>(rows))
                                      : (part ? tile_function<S, S::NV, false, BSource::in_place_part>(rows)
                                              : tile_function<S, S::NV, false, BSource::in_place>(rows));
        put_tile<S>(f, t, rows, p.c.cs);
      }
    }
  }
}

template <class S>
void small_sgemm(SgemmArgs p, const Context& context) {
  if (p.k == 0) return scale(p);
  if (few_columns(p)) p = transposed(p);  // few columns fill few lanes: as rows they cost nothing
  const int64_t group = p.batch < context.threads ? 1 : batch_group(p, context.threads);
  const Tasks tasks(p, S::blocking, context.threads);
  const int64_t groups = ceil_div(p.batch, group);
  auto task = [&](int64_t index, int slot) {
    float* const panel = static_cast<float*>(context.workspace) + slot * small_panel_floats;
    const Block block = tasks.block(index % tasks.each);
    const int64_t first = index / tasks.each * group, last = smaller(p.batch, first + group);
    for (int64_t batch = first; batch < last; ++batch) small_product<S>(p, batch, block, panel);
  };
  if (groups * tasks.each == 1) return task(0, 0);
  parallel_for(groups * tasks.each, context.threads, task);
}

}  // namespace
}  // namespace fl
