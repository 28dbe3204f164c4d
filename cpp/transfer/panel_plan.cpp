#include "transfer/panel_plan.h"

#include <algorithm>
#include <utility>

#include "core/operations.h"

namespace fl {
namespace {

// More cuts have to gain something.
constexpr double worthwhile = 0.98;
// Of the device's own memory, which a mirror image is read from and written to.
constexpr double device_bytes_per_us = 2e6;
// Panels begin where the tiles of most kernels do, and where every 16-byte access stays aligned.
constexpr int64_t unit = 128;
constexpr int64_t most_cuts = 64;
constexpr int64_t group_bytes = 4 << 20, most_groups = 32;  // of a batch
constexpr int64_t large_problem_bytes = 64 << 20;           // a problem of a batch that is worth cutting up itself
// From here on what steps find split (cuda/pipeline/pipeline.cpp) is not counted again, so plans are finer. Others
// gain nothing by that: short lines and the driver's time for each step cost them more than the estimate knows.
constexpr int64_t splits_once_bytes = int64_t(2) << 30;

double bytes(const Block& block) { return 4.0 * double(block.elements()); }

// The same with what copies of short lines lose: at n = 2048, accurate, 16 panels of both operands (512 bytes a line)
// took 1.06 to 1.08 ms, 8 of them 0.98, 4 of them 0.92, and 8 panels of whole lines 0.91 (H200, one run).
double bytes_on_link(const Block& block, int64_t line) {
  constexpr double half_speed = 82;  // floats
  const double share = line > 0 ? half_speed / double(line) : 0;
  return bytes(block) * (1 + share * share);
}

// ---------------------------------------------------------------- the pieces of a plan
// Chooses kernels for blocks, most of which have one of a few shapes. `ready`: the operands that steps before have
// prepacked (cuda/pipeline/pipeline.cpp).
template <class Args>
class Kernels {
 public:
  Kernels(const Args& layout, const KernelFor<Args>& kernel_for, bool splits_once = false)
      : layout_(layout), kernel_for_(kernel_for), splits_once_(splits_once) {}
  PanelStep<Args> step(const Block& block, std::size_t loads, ReadySides ready = {}) {
    for (const auto& [known, known_ready] : known_)
      if (known.block.rows == block.rows && known.block.cols == block.cols && known.block.problems == block.problems &&
          known_ready == ready)
        return {block, loads, known.kernel, known.us};
    const Args sub = sub_problem(layout_, block);
    const Kernel<Args>& kernel = kernel_for_(sub);
    const double saved = splits_once_ ? kernel_for_.saved_us(kernel, sub, ready) : 0;
    const double us = kernel_for_.us(kernel, sub) - saved;
    return known_.emplace_back(PanelStep<Args>{block, loads, &kernel, us}, ready).first;
  }

 private:
  const Args& layout_;
  const KernelFor<Args>& kernel_for_;
  bool splits_once_;
  std::vector<std::pair<PanelStep<Args>, ReadySides>> known_;
};

// Panels of equal size, the last of them halved: what follows the last copy in is then half as long.
std::vector<std::pair<int64_t, int64_t>> panels(int64_t total, int64_t cuts) {
  const int64_t step = std::max<int64_t>(ceil_div(ceil_div(total, cuts), unit), 1) * unit;
  std::vector<std::pair<int64_t, int64_t>> result;
  for (int64_t at = 0; at < total; at += step) result.emplace_back(at, std::min(step, total - at));
  auto& [at, size] = result.back();
  if (result.size() > 1 && size > 2 * unit) {
    const int64_t first = ceil_div(size, 2 * unit) * unit, rest = size - first;
    size = first;
    result.emplace_back(at + first, rest);
  }
  return result;
}

bool worth_cutting(int64_t total, int64_t cuts) { return cuts == 1 || total >= cuts * unit; }

// Panels of A and of B arrive in turns, and what they span of C grows as a rectangle: what is new of it is computed at
// once. With B in one piece, B comes first and then one panel of A after the other. `first` is the first problem of the
// plan: operands that all problems share come with it.
void add_rectangle(const SgemmArgs& p, int64_t problem, int64_t row_cuts, int64_t col_cuts, Kernels<SgemmArgs>& kernels,
                   PanelPlan<SgemmArgs>& plan) {
  const auto row_panels = panels(p.m, row_cuts), col_panels = panels(p.n, col_cuts);
  const bool load_a = problem == 0 || p.a.bs != 0, load_b = problem == 0 || p.b.bs != 0;
  const auto line = [](int64_t part, int64_t whole, int64_t stride) { return part < whole && stride == 1 ? part : 0; };
  // Of a new panel with all that is there of the other operand, which earlier steps have prepacked.
  const auto add_step = [&](int64_t row, int64_t row_count, int64_t col, int64_t col_count) {
    if (row_count == 0 || col_count == 0) return;
    const Block block{problem, 1, row, row_count, col, col_count};
    const int64_t piece = line(col_count, p.n, p.c.cs);
    if (p.beta != 0.0f) plan.loads.push_back({OperandRole::c, block, piece});
    plan.steps.push_back(kernels.step(block, plan.loads.size(), {col > 0, row > 0}));
    plan.steps.back().line = piece;
  };
  std::size_t i = 0, j = 0;
  int64_t have_rows = 0, have_cols = 0;
  while (i < row_panels.size() || j < col_panels.size()) {
    const bool take_b = j < col_panels.size() && (j == 0 || i == row_panels.size() ||
                                                  double(have_cols) * double(p.m) <= double(have_rows) * double(p.n));
    if (take_b) {
      const auto [col, count] = col_panels[j++];
      if (load_b)
        plan.loads.push_back({OperandRole::b, {p.b.bs ? problem : 0, 1, 0, p.k, col, count}, line(count, p.n, p.b.cs)});
      add_step(0, have_rows, col, count);
      have_cols += count;
    } else {
      const auto [row, count] = row_panels[i++];
      if (load_a)
        plan.loads.push_back({OperandRole::a, {p.a.bs ? problem : 0, 1, row, count, 0, p.k}, line(count, p.m, p.a.rs)});
      add_step(row, count, 0, have_cols);
      have_rows += count;
    }
  }
}

PanelPlan<SgemmArgs> rectangle(const SgemmArgs& p, int64_t row_cuts, int64_t col_cuts, Kernels<SgemmArgs>& kernels) {
  PanelPlan<SgemmArgs> plan;
  for (int64_t problem = 0; problem < p.batch; ++problem) add_rectangle(p, problem, row_cuts, col_cuts, kernels, plan);
  return plan;
}

// A matrix times its own transpose: of C the square on the diagonal of each panel of rows of A, and the block beside
// that, which is mirrored. The square comes first: it leaves the panel prepacked as columns for those below.
PanelPlan<SgemmArgs> lower_triangle(const SgemmArgs& p, int64_t cuts, Kernels<SgemmArgs>& kernels) {
  PanelPlan<SgemmArgs> plan;
  for (int64_t problem = 0; problem < p.batch; ++problem)
    for (const auto& [row, count] : panels(p.m, cuts)) {
      if (problem == 0 || p.a.bs != 0) {
        const int64_t line = count < p.m && p.a.rs == 1 ? count : 0;
        plan.loads.push_back({OperandRole::a, {p.a.bs ? problem : 0, 1, row, count, 0, p.k}, line});
      }
      plan.steps.push_back(kernels.step({problem, 1, row, count, row, count}, plan.loads.size()));
      plan.steps.back().line = count < p.n ? count : 0;
      if (row == 0) continue;
      plan.steps.push_back(kernels.step({problem, 1, row, count, 0, row}, plan.loads.size(), {true, true}));
      plan.steps.back().line = row;
      plan.steps.back().mirrored = true;
    }
  return plan;
}

bool same_matrix(const SgemmArgs& p) { return p.symmetric; }
bool same_matrix(const SgemvArgs&) { return false; }

// What goes in for some problems.
template <class Args>
std::vector<PanelLoad> inputs(const Args& p, const Part& problems) {
  std::vector<PanelLoad> loads;
  const auto add = [&](OperandRole role) { loads.push_back({role, block_of(p, role, problems)}); };
  add(OperandRole::a);
  if constexpr (has_b<Args>) {
    if (!same_matrix(p)) add(OperandRole::b);
    if (p.beta != 0.0f) add(OperandRole::c);
  }
  return loads;
}

// Whole problems, several to a step.
template <class Args>
PanelPlan<Args> groups(const Args& p, Kernels<Args>& kernels) {
  Part part = whole(p);
  double total = bytes(block_of(p, OperandRole::c, part));
  for (const PanelLoad& load : inputs(p, part)) total += bytes(load.block);
  const double wanted = std::clamp(total / double(group_bytes), 1.0, double(most_groups));
  const int64_t count = std::min(p.batch, int64_t(wanted)), each = ceil_div(p.batch, count);
  PanelPlan<Args> plan;
  for (; part.problem < p.batch; part.problem += each) {
    part.problems = std::min(each, p.batch - part.problem);
    for (const PanelLoad& load : inputs(p, part))
      if (part.problem == 0 || !is_shared(p, load.operand)) plan.loads.push_back(load);
    plan.steps.push_back(kernels.step(block_of(p, OperandRole::c, part), plan.loads.size()));
  }
  return plan;
}

double problem_bytes(const SgemmArgs& p) {
  const double b = p.symmetric ? 0 : double(p.k) * double(p.n);
  return 4.0 * (double(p.m) * double(p.k) + b + double(p.m) * double(p.n));
}

}  // namespace

// ---------------------------------------------------------------- sub-problems
namespace {

// The rows and columns of an operand.
struct Range {
  int64_t first, count;
};
using Ranges = std::pair<Range, Range>;
Ranges ranges(const SgemmArgs&, OperandRole role, const Range& rows, const Range& cols, const Range& depth) {
  if (role == OperandRole::c) return {rows, cols};
  return role == OperandRole::a ? Ranges{rows, depth} : Ranges{depth, cols};
}
Ranges ranges(const SgemvArgs&, OperandRole role, const Range& rows, const Range&, const Range& depth) {
  if (role == OperandRole::a) return {rows, depth};
  return {{0, 1}, role == OperandRole::b ? depth : rows};
}
Ranges ranges(const TransposeArgs&, OperandRole role, const Range& rows, const Range& cols, const Range&) {
  return role == OperandRole::a ? Ranges{rows, cols} : Ranges{cols, rows};
}

// The part whose result is a block.
Part part_of(const SgemmArgs& p, const Block& b) {
  return {b.problem, b.problems, b.row, b.rows, b.col, b.cols, 0, p.k};
}
Part part_of(const SgemvArgs& p, const Block& b) { return {b.problem, b.problems, b.col, b.cols, 0, 1, 0, p.n}; }
Part part_of(const TransposeArgs&, const Block& b) { return {b.problem, b.problems, b.col, b.cols, b.row, b.rows}; }

void set_sizes(SgemmArgs& p, const Part& part) {
  p.m = part.rows, p.n = part.cols, p.k = part.depths;
  p.symmetric = false;
}
void set_sizes(SgemvArgs& p, const Part& part) { p.m = part.rows, p.n = part.depths; }
void set_sizes(TransposeArgs& p, const Part& part) { p.m = part.rows, p.n = part.cols; }

template <class T>
void move_to(MatrixView<T>& x, const Block& b) {
  if (x.data) x.data += b.problem * x.bs + b.row * x.rs + b.col * x.cs;
}
template <class T>
void move_to(VectorView<T>& x, const Block& b) {
  if (x.data) x.data += b.problem * x.bs + b.col * x.inc;
}

}  // namespace

template <class Args>
Block block_of(const Args& p, OperandRole role, const Part& t) {
  const auto [rows, cols] = ranges(p, role, {t.row, t.rows}, {t.col, t.cols}, {t.depth, t.depths});
  const bool one = is_shared(p, role);
  return {one ? 0 : t.problem, one ? 1 : t.problems, rows.first, rows.count, cols.first, cols.count};
}

template <class Args>
Args sub_problem(const Args& p, const Part& part) {
  Args sub = p;
  set_sizes(sub, part);
  sub.batch = part.problems;
  constexpr auto inputs = Operation<Args>::inputs;
  move_to(sub.*std::get<0>(inputs), block_of(p, OperandRole::a, part));
  if constexpr (has_b<Args>) move_to(sub.*std::get<1>(inputs), block_of(p, OperandRole::b, part));
  move_to(sub.*Operation<Args>::output, block_of(p, OperandRole::c, part));
  return sub;
}

template <class Args>
Args sub_problem(const Args& p, const Block& block) {
  Args sub = sub_problem(p, part_of(p, block));
  if constexpr (requires { sub.symmetric; }) sub.symmetric = p.symmetric && block.rows == p.m && block.cols == p.n;
  return sub;
}

// ---------------------------------------------------------------- plans
// The plan of those below that is expected to end first: B before the rows of A, A before the columns of B, or both in
// turns. Where the link binds the first two are good, where the arithmetic does the third is, and the estimate knows.
template <>
PanelPlan<SgemmArgs> plan_panels(const SgemmArgs& p, const KernelFor<SgemmArgs>& kernel_for) {
  const double total = problem_bytes(p);
  Kernels<SgemmArgs> kernels(p, kernel_for, p.batch == 1 && total >= double(splits_once_bytes));
  if (p.batch > 1 && total < double(large_problem_bytes)) return groups(p, kernels);
  PanelPlan<SgemmArgs> best = p.batch == 1  ? groups(p, kernels)
                              : p.symmetric ? lower_triangle(p, 1, kernels)
                                            : rectangle(p, 1, 1, kernels);
  if (total < double(smallest_cut_bytes)) return best;
  double best_us = estimate_us(best, nominal_link);
  const auto consider = [&](int64_t row_cuts, int64_t col_cuts) {
    if (!worth_cutting(p.m, row_cuts) || !worth_cutting(p.n, col_cuts)) return;
    PanelPlan<SgemmArgs> plan =
        p.symmetric ? lower_triangle(p, row_cuts, kernels) : rectangle(p, row_cuts, col_cuts, kernels);
    const double us = estimate_us(plan, nominal_link);
    if (us < worthwhile * best_us) best = std::move(plan), best_us = us;
  };
  for (int64_t cuts = 2; cuts <= most_cuts; cuts *= 2) {
    if (!p.symmetric) {
      consider(cuts, 1);
      consider(1, cuts);
    }
    consider(cuts, cuts);
  }
  return best;
}

// The link always binds: nothing is gained by cutting a problem up.
template <>
PanelPlan<SgemvArgs> plan_panels(const SgemvArgs& p, const KernelFor<SgemvArgs>& kernel_for) {
  Kernels<SgemvArgs> kernels(p, kernel_for);
  return groups(p, kernels);
}

template <>
PanelPlan<TransposeArgs> plan_panels(const TransposeArgs& p, const KernelFor<TransposeArgs>& kernel_for) {
  Kernels<TransposeArgs> kernels(p, kernel_for);
  if (p.batch > 1) return groups(p, kernels);
  const double cuts = std::clamp(4.0 * double(p.m) * double(p.n) / double(group_bytes), 1.0, double(most_groups));
  PanelPlan<TransposeArgs> plan;
  for (const auto& [row, count] : panels(p.m, int64_t(cuts))) {
    plan.loads.push_back({OperandRole::a, {0, 1, row, count, 0, p.n}});
    plan.steps.push_back(kernels.step({0, 1, 0, p.n, row, count}, plan.loads.size()));
  }
  return plan;
}

template <class Args>
double estimate_us(const PanelPlan<Args>& plan, const HostLink& link) {
  double in = 0, product = 0, out = 0;
  std::size_t load = 0;
  for (const PanelStep<Args>& step : plan.steps) {
    for (; load < step.loads; ++load)
      in += bytes_on_link(plan.loads[load].block, plan.loads[load].line) / link.bytes_per_us;
    product = std::max(product, in) + step.us + panel_step_us;
    if (step.mirrored) product += 2 * bytes(step.block) / device_bytes_per_us;
    out = std::max(out, product) + bytes_on_link(step.block, step.line) / link.bytes_per_us;
    if (step.mirrored) {
      const Block image = mirror_image(step.block);
      out += bytes_on_link(image, image.cols) / link.bytes_per_us;
    }
  }
  return link.call_us + out;
}
#define FL_INSTANTIATE(Args)                                      \
  template Block block_of(const Args&, OperandRole, const Part&); \
  template Args sub_problem(const Args&, const Part&);            \
  template Args sub_problem(const Args&, const Block&);           \
  template double estimate_us(const PanelPlan<Args>&, const HostLink&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
