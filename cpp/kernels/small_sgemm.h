// SGEMM without packed A: its elements are read in place, whatever its strides, those of another type from a copy of a
// few rows. B, of any type, is read in place if its rows are contiguous, else one panel at a time is packed. For
// products that fit the caches, where packing costs more than it saves, and for thin ones, where what is packed would
// be used once.
#pragma once

#include "direct_tile.h"
#include "packed_sgemm.h"

namespace fl {
namespace {

// `total` rows in strips of at most `most`, whose sizes differ by one at most. Calls strip(first row, rows).
template <class F>
inline __attribute__((always_inline)) void for_each_strip(int64_t total, int64_t most, F strip) {
  if (total <= most) return strip(0, total);
  const int64_t parts = ceil_div(total, most), size = total / parts, longer = total - size * parts;
  for (int64_t i = 0, s = 0, rows; i < total; i += rows, ++s) {
    rows = size + (s < longer);
    strip(i, rows);
  }
}

// any_type: operands may be of other types than float32.
template <class S, bool any_type>
class SmallProduct {
  static constexpr int64_t NR = S::NV * S::W;

 public:
  SmallProduct(const SgemmArgs& p, int64_t batch, const Block& block)
      : p_(p),
        block_(block),
        a_(p.a.data + batch * p.a.bs + block.i * p.a.rs),
        b_(p.b.data + batch * p.b.bs + block.j * p.b.cs),
        c_(p.c.data + batch * p.c.bs + block.i * p.c.rs + block.j * p.c.cs),
        t_{.k = p.k, .a_rs = p.a.rs, .a_cs = p.a.cs, .b_rs = p.b.rs, .c_rs = p.c.rs, .alpha = p.alpha, .beta = p.beta} {
  }

  void run(float* panel) {
    auto run_with = [&](const auto* b) {
      if (p_.b.cs != 1) run_packed(b, panel);
      else if (any_type && p_.stored[0].converted()) run_converting(b);
      else run_in_place(b);
    };
    if constexpr (any_type) with_elements(p_.stored[1], b_, run_with);
    else run_with(b_);
  }

 private:
  // Rows of A 4 KiB apart are in one set of an L1 cache, of eight lines at least.
  template <class T>
  int64_t most_rows() const {
    if (block_.n <= S::W) return narrow_rows;
    return p_.a.rs % 1024 == 0 ? smaller(narrow_rows, wide_rows<S, T>) : wide_rows<S, T>;
  }
  void begin_slice(int64_t k) {
    t_.k = smaller(small_depth, p_.k - k);
    t_.first = k == 0;
  }

  template <class T>
  void run_in_place(const T* b) {
    const int64_t m = block_.m, n = block_.n, most = most_rows<T>();
    // The rows of A at hand stay in L1 while all of B, in L2, passes by; a larger B is read once, panel by panel.
    if (4 * n * p_.k <= 512 * 1024) {
      for_each_strip(m, most, [&](int64_t i, int64_t rows) {
        read_rows(i);
        for (int64_t j = 0; j < n; j += NR) tile(i, rows, j, b + j);
      });
    } else {
      for (int64_t j = 0; j < n; j += NR)
        for_each_strip(m, most, [&](int64_t i, int64_t rows) {
          read_rows(i);
          tile(i, rows, j, b + j);
        });
    }
  }
  template <class T>
  void run_converting(const T* b) {
    float rows_of_a[staged_floats];
    for (int64_t k = 0; k < p_.k; k += small_depth) {
      begin_slice(k);
      for_each_strip(block_.m, most_rows<T>(), [&](int64_t i, int64_t rows) {
        convert_rows(i, rows, k, rows_of_a);
        for (int64_t j = 0; j < block_.n; j += NR) tile(i, rows, j, b + k * p_.b.rs + j);
      });
    }
  }
  template <class T>
  void run_packed(const T* b, float* panel) {
    float rows_of_a[staged_floats];
    for (int64_t j = 0; j < block_.n; j += NR) {
      const int64_t width = smaller(NR, block_.n - j);
      t_.b_rs = width <= S::W ? S::W : NR;
      for (int64_t k = 0; k < p_.k; k += small_depth) {
        begin_slice(k);
        pack_strip<S>(panel, t_.b_rs, width, b + k * p_.b.rs + j * p_.b.cs, p_.b.cs, p_.b.rs, t_.k);
        for_each_strip(block_.m, most_rows<float>(), [&](int64_t i, int64_t rows) {
          if (any_type && p_.stored[0].converted()) convert_rows(i, rows, k, rows_of_a);
          else read_rows(i, k);
          tile<float>(i, rows, j, panel);
        });
      }
    }
  }

  // Where the tiles of a strip find A.
  void read_rows(int64_t i, int64_t k = 0) { t_.a = a_ + i * p_.a.rs + k * p_.a.cs; }
  static constexpr int64_t most_strip = strip_rows<S, float>;
  static constexpr int64_t staged_floats = most_strip * small_depth + S::W;
  void convert_rows(int64_t i, int64_t rows, int64_t k, float* staged) {
    with_elements(p_.stored[0], a_ + i * p_.a.rs + k * p_.a.cs, [&](const auto* a) {
      const bool along_k = p_.a.cs == 1;
      if (along_k) widen_lines<S>(staged, small_depth, a, p_.a.rs, rows, t_.k);
      else pack_strip<S>(staged, most_strip, rows, a, p_.a.rs, p_.a.cs, t_.k);
      t_.a_rs = along_k ? small_depth : 1, t_.a_cs = along_k ? 1 : most_strip;
    });
    t_.a = staged;
  }

  template <class T>
  void tile(int64_t i, int64_t rows, int64_t j, const T* b) {
    t_.b = reinterpret_cast<const float*>(b);
    t_.c = c_ + i * p_.c.rs + j * p_.c.cs;
    t_.width = smaller(NR, block_.n - j);
    const int64_t pitch = t_.width <= S::W ? S::W : NR;
    put_tile<most_strip * NR>(direct_function_for<S, T>(t_.width, rows), t_, rows, p_.c.cs, pitch);
  }

  const SgemmArgs& p_;
  const Block block_;
  const float *a_, *b_;
  float* c_;
  Tile t_;
};

template <class S, bool any_type>
void small_tasks(const SgemmArgs& p, const Context& context) {
  float* const panels = static_cast<float*>(context.workspace);  // null where no product needs one
  auto product = [&](int64_t batch, const Block& block, int slot) {
    SmallProduct<S, any_type>(p, batch, block).run(panels ? panels + slot * small_panel_floats : nullptr);
  };
  if (context.threads == 1) {
    constexpr int64_t at_once = 64;  // between looks at the clock, which take as long as the smallest product
    const Waiting waiting{context.watch, 0};
    for (int64_t batch = 0; batch < p.batch; ++batch) {
      if (batch % at_once == 0 && !waiting.goes_on(at_once * p.m * p.n * p.k)) return;
      product(batch, {0, p.m, 0, p.n}, 0);
    }
    return;
  }
  const int64_t group = p.batch < context.threads ? 1 : batch_group(p, context.threads);
  const Tasks tasks(p, S::blocking, context.threads);
  auto task = [&](int64_t index, int slot) {
    const int64_t first = index / tasks.each * group, last = smaller(p.batch, first + group);
    for (int64_t batch = first; batch < last; ++batch) product(batch, tasks.block(index % tasks.each), slot);
  };
  parallel_for(ceil_div(p.batch, group) * tasks.each, context.threads, task);
}

template <class S, bool any_type>
void small_sgemm(const SgemmArgs& p, const Context& context) {
  if (p.k == 0) return scale(p);
  if (few_columns(p))
    return small_tasks<S, any_type>(transposed(p), context);  // few columns fill few lanes: as rows they cost nothing
  small_tasks<S, any_type>(p, context);
}

}  // namespace
}  // namespace fl
