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

template <class T>
T* advance(T* data, int64_t offset) {
  return data ? data + offset : nullptr;
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

// The matrices of a call that go in, with whether all problems share them, and the result.
struct WholeInput {
  PanelLoad load;
  bool shared;
};
struct WholeCall {
  std::vector<WholeInput> inputs;
  Block result;
};
WholeCall whole(const SgemmArgs& p) {
  WholeCall call{{{{OperandRole::a, {0, 1, 0, p.m, 0, p.k}}, p.a.bs == 0},
                  {{OperandRole::b, {0, 1, 0, p.k, 0, p.n}}, p.b.bs == 0}},
                 {0, 1, 0, p.m, 0, p.n}};
  if (p.symmetric) call.inputs.pop_back();
  if (p.beta != 0.0f) call.inputs.push_back({{OperandRole::c, call.result}, p.batch == 1});
  return call;
}
WholeCall whole(const SgemvArgs& p) {
  WholeCall call{
      {{{OperandRole::a, {0, 1, 0, p.m, 0, p.n}}, p.a.bs == 0}, {{OperandRole::b, {0, 1, 0, 1, 0, p.n}}, p.x.bs == 0}},
      {0, 1, 0, 1, 0, p.m}};
  if (p.beta != 0.0f) call.inputs.push_back({{OperandRole::c, call.result}, p.batch == 1});
  return call;
}
WholeCall whole(const TransposeArgs& p) {
  return {{{{OperandRole::a, {0, 1, 0, p.m, 0, p.n}}, p.a.bs == 0}}, {0, 1, 0, p.n, 0, p.m}};
}

// Whole problems, several to a step.
template <class Args>
PanelPlan<Args> groups(const Args& p, Kernels<Args>& kernels) {
  const WholeCall call = whole(p);
  double total = bytes(call.result) * double(p.batch);
  for (const WholeInput& input : call.inputs) total += bytes(input.load.block) * (input.shared ? 1.0 : double(p.batch));
  const double wanted = std::clamp(total / double(group_bytes), 1.0, double(most_groups));
  const int64_t count = std::min(p.batch, int64_t(wanted)), each = ceil_div(p.batch, count);
  PanelPlan<Args> plan;
  for (int64_t problem = 0; problem < p.batch; problem += each) {
    const int64_t problems = std::min(each, p.batch - problem);
    for (const WholeInput& input : call.inputs) {
      if (input.shared && problem > 0) continue;
      plan.loads.push_back(input.load);
      if (input.shared) continue;
      plan.loads.back().block.problem = problem;
      plan.loads.back().block.problems = problems;
    }
    Block result = call.result;
    result.problem = problem, result.problems = problems;
    plan.steps.push_back(kernels.step(result, plan.loads.size()));
  }
  return plan;
}

double problem_bytes(const SgemmArgs& p) {
  const double b = p.symmetric ? 0 : double(p.k) * double(p.n);
  return 4.0 * (double(p.m) * double(p.k) + b + double(p.m) * double(p.n));
}

}  // namespace

// ---------------------------------------------------------------- sub-problems
SgemmArgs sub_problem(const SgemmArgs& p, const Part& t) {
  SgemmArgs sub = p;
  sub.symmetric = false;
  sub.m = t.rows, sub.n = t.cols, sub.k = t.depths, sub.batch = t.problems;
  sub.a.data = advance(p.a.data, t.problem * p.a.bs + t.row * p.a.rs + t.depth * p.a.cs);
  sub.b.data = advance(p.b.data, t.problem * p.b.bs + t.depth * p.b.rs + t.col * p.b.cs);
  sub.c.data = advance(p.c.data, t.problem * p.c.bs + t.row * p.c.rs + t.col * p.c.cs);
  return sub;
}
SgemvArgs sub_problem(const SgemvArgs& p, const Part& t) {
  SgemvArgs sub = p;
  sub.m = t.rows, sub.n = t.depths, sub.batch = t.problems;
  sub.a.data = advance(p.a.data, t.problem * p.a.bs + t.row * p.a.rs + t.depth * p.a.cs);
  sub.x.data = advance(p.x.data, t.problem * p.x.bs + t.depth * p.x.inc);
  sub.y.data = advance(p.y.data, t.problem * p.y.bs + t.row * p.y.inc);
  return sub;
}
TransposeArgs sub_problem(const TransposeArgs& p, const Part& t) {
  TransposeArgs sub = p;
  sub.m = t.rows, sub.n = t.cols, sub.batch = t.problems;
  sub.a.data = advance(p.a.data, t.problem * p.a.bs + t.row * p.a.rs + t.col * p.a.cs);
  sub.b.data = advance(p.b.data, t.problem * p.b.bs + t.col * p.b.rs + t.row * p.b.cs);
  return sub;
}
SgemmArgs sub_problem(const SgemmArgs& p, const Block& b) {
  SgemmArgs sub = sub_problem(p, Part{b.problem, b.problems, b.row, b.rows, b.col, b.cols, 0, p.k});
  sub.symmetric = p.symmetric && b.rows == p.m && b.cols == p.n;
  return sub;
}
SgemvArgs sub_problem(const SgemvArgs& p, const Block& b) {
  return sub_problem(p, Part{b.problem, b.problems, b.col, b.cols, 0, 0, 0, p.n});
}
TransposeArgs sub_problem(const TransposeArgs& p, const Block& b) {
  return sub_problem(p, Part{b.problem, b.problems, b.col, b.cols, b.row, b.rows, 0, 0});
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
#define FL_INSTANTIATE(Args) template double estimate_us(const PanelPlan<Args>&, const HostLink&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl
