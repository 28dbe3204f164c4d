#include "cuda/pipeline/panel_copies.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <climits>

#include "core/operations.h"

namespace fl::cuda {
namespace {

// Two-dimensional copies lose speed with rows of less than 1 KiB. Shorter lines travel with their padding instead.
constexpr int64_t shortest_line = 1024 / sizeof(float);
// The first copies in are small, so that the link and the first product start early.
constexpr int64_t first_copy = (256 << 10) / sizeof(float);

// ---------------------------------------------------------------- pinned host memory, copied from where it is
bool is_pinned(const void* host) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, host) == cudaSuccess) return attributes.type == cudaMemoryTypeHost;
  static_cast<void>(cudaGetLastError());
  return false;
}

// Whether any piece of the operand is one two-dimensional copy: lines in memory order, apart from each other and at one
// distance through all batches.
template <class T>
bool direct(const Lines<T>& host) {
  const int64_t pitch = host.line_stride;
  if (host.empty() || host.step != 1 || host.stored.converted()) return false;
  if (host.batch > 1 && host.bs != host.lines * pitch) return false;
  const bool no_overlap = pitch >= host.length && std::max(pitch, host.ld) <= INT_MAX / int64_t(sizeof(float));
  if (host.total() > 1 && (host.length < shortest_line || !no_overlap)) return false;
  return is_pinned(host.data) && is_pinned(host.data + (host.total() - 1) * pitch + host.length - 1);
}

// Whether this piece of such an operand is. Lines that are whole follow each other.
template <class T>
bool direct(const Piece& piece, const Lines<T>& host, const CopySizes& sizes) {
  return piece.lines == 1 || (piece.length == host.length && host.line_stride == host.length) ||
         piece.length >= sizes.direct_line;
}

// ---------------------------------------------------------------- pieces of a size
// Calls add(piece) for pieces of at most most() floats, whose lines take `width` each: whole lines, or parts of one
// that is too long.
template <class Most, class Add>
void for_each_piece(const Piece& whole, int64_t width, Most most, Add add) {
  if (whole.empty()) return;
  for (int64_t line = 0; line < whole.lines;) {
    const int64_t size = most();
    if (width <= size) {
      const int64_t lines = std::min(whole.lines - line, size / width);
      add(Piece{whole.first + line, lines, whole.from, whole.length});
      line += lines;
      continue;
    }
    for (int64_t from = 0; from < whole.length;) {
      const int64_t length = std::min(most(), whole.length - from);
      add(Piece{whole.first + line, 1, whole.from + from, length});
      from += length;
    }
    ++line;
  }
}

// The padding behind a line goes with it. A kernel may ask for 16 bytes there and say that it wants fewer; a checker of
// uninitialised memory counts all of them.
int64_t sent_width(const Piece& piece, const Lines<const float>& host) {
  return piece.from + piece.length == host.length ? host.ld - piece.from : piece.length;
}

void add_load(const PanelLoad& load, const Operands& operands, const Lines<const float>& old_output,
              const bool (&pinned)[3], const CopySizes& sizes, PanelCopies& copies) {
  const bool is_output = load.operand == OperandRole::c;
  const Input& input = operands.inputs[load.operand == OperandRole::b];
  const Lines<const float>& host = is_output ? old_output : input.host;
  float* const device = is_output ? *operands.output.device : const_cast<float*>(*input.device);
  const Piece whole = piece_of(host, !is_output && input.by_columns, load.block);
  const bool from_pinned = pinned[int(load.operand)] && direct(whole, host, sizes);
  const auto most = [&] {
    const auto shift = std::min<std::size_t>(copies.loads.size(), 16);
    return std::min(sizes.in, first_copy << shift);
  };
  // A line that a slot cannot hold with its padding is cut where the padding begins at the latest.
  for_each_piece(whole, std::max(sent_width(whole, host), int64_t{1}), most, [&](const Piece& piece) {
    const int64_t width =
        from_pinned ? piece.length : std::min(sent_width(piece, host), std::max(sizes.in, piece.length));
    copies.loads.push_back({&host, piece, device + piece.first * host.ld + piece.from, width, from_pinned, 0});
  });
}

void add_stores(const Block& block, std::size_t step, const Operands& operands, bool with_padding, bool pinned,
                const CopySizes& sizes, PanelCopies& copies) {
  const Lines<float>& host = operands.output.host;
  const Piece whole = piece_of(host, false, block);
  const bool to_pinned = pinned && direct(whole, host, sizes);
  const int64_t pitch = with_padding && whole.length == host.length ? host.ld : whole.length;
  for_each_piece(
      whole, pitch, [&] { return sizes.out; },
      [&](const Piece& piece) {
        copies.stores.push_back({&host, piece, *operands.output.device + piece.first * host.ld + piece.from,
                                 piece.lines == 1 ? piece.length : pitch, to_pinned, step});
      });
}

}  // namespace

Lines<const float> as_input(const Lines<float>& output) {
  return {output.data, output.batch,       output.lines, output.length,
          output.bs,   output.line_stride, output.step,  output.ld};
}

template <class Args>
void cut_up(const PanelPlan<Args>& plan, const Operands& operands, const Lines<const float>& old_output, bool store,
            const CopySizes& sizes, PanelCopies& copies) {
  const Lines<float>& output = operands.output.host;
  const bool pinned_output = direct(output);
  const bool pinned[3] = {direct(operands.inputs[0].host), direct(operands.inputs[1].host), pinned_output};
  const bool with_padding =
      !operands.output.read && output.ld != output.length && output.length < shortest_line && output.total() > 1;
  copies.clear_output = copies.clear_output || with_padding;
  std::size_t load = 0;
  const auto add_loads = [&](std::size_t count) {
    for (; load < count; ++load) {
      add_load(plan.loads[load], operands, old_output, pinned, sizes, copies);
      copies.load_ends.push_back(copies.loads.size());
    }
  };
  for (const PanelStep<Args>& step : plan.steps) {
    add_loads(step.loads);
    const std::size_t number = copies.steps++;
    (copies.loads.empty() ? copies.ready_steps : copies.loads.back().steps) = copies.steps;
    if (!store) continue;
    add_stores(step.block, number, operands, with_padding, pinned_output, sizes, copies);
    if (step.mirrored)
      add_stores(mirror_image(step.block), number, operands, with_padding, pinned_output, sizes, copies);
  }
  add_loads(plan.loads.size());  // what is passed on alone
}

#define FL_INSTANTIATE(Args)                                                                                       \
  template void cut_up(const PanelPlan<Args>&, const Operands&, const Lines<const float>&, bool, const CopySizes&, \
                       PanelCopies&);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
