// A whole call on operands in host or device memory. Its way down: bring it to one form (normalise.h), settle where it
// runs and which kernel answers (decision.h), then launch that or carry out a plan of many launches. What repeats keeps
// a Decision, or the part of one that it needs.
#pragma once

#include <array>
#include <cstddef>

#include "core/errors.h"
#include "core/triangle_copy.h"
#include "run/decision.h"

namespace fl {

// Computes it, with a workspace of the call's own; `options` are those of decide() but for the stream.
template <class Args>
void execute(const Decision<Args>& decision, const CallOptions& options);

// What a call gives up when it finds no memory, in this order. False, and nothing has changed, if there is nothing.
template <class Args>
bool drop_kept_operands(Decision<Args>& decision, CallOptions& options);  // of all calls: they only save time
template <class Args>
bool do_without_workspace(Decision<Args>& decision, CallOptions& options);  // by another kernel, if none was named

// Calls attempt() until it has had the memory that it needs.
template <class Args, class Attempt>
void with_concessions(Decision<Args>& decision, CallOptions& options, Attempt&& attempt) {
  constexpr std::array concessions{drop_kept_operands<Args>, do_without_workspace<Args>};
  for (std::size_t next = 0;;) try {
      return attempt();
    } catch (const OutOfMemory&) {
      while (next < concessions.size() && !concessions[next](decision, options)) ++next;
      if (next++ == concessions.size()) throw;
    }
}

// If this thread has just decided a call like this one, which takes less than alone_us on the CPU: computes it and
// returns true.
template <class Args>
FL_EXPORT bool run_short(const Args& args, const CallOptions& options);
// decide() and execute(). What it decides run_short() may find again.
template <class Args>
FL_EXPORT void decide_and_run(const Args& args, const CallOptions& options);
template <class Args>
void run(const Args& args, const CallOptions& options) {
  if (!run_short(args, options)) decide_and_run(args, options);
}

// One triangle of a matrix times its own transpose: SSYRK, as a few products like any other.
//
// C = alpha A A^T + beta C, where of C the triangle and the diagonal are read and written; the rest stays as it is, or
// becomes zero. `product` is the whole, B being A transposed; an addend shares no memory with C, and is read in the
// same triangle. On the CPU about half of the whole is computed; a GPU, or a kernel asked for by name, computes the
// whole in memory of its own. With operands in device memory the call returns once that is queued on its stream.
FL_EXPORT void run_triangle(const SgemmArgs& product, Triangle part, OtherTriangle other_triangle,
                            const CallOptions& options);

// Whether a transpose may have its operand as its result (args.in_place). Not in host memory on the way to a GPU, and
// only if some kernel, or the one asked for, exchanges views like these.
FL_EXPORT bool transposes_in_place(const TransposeArgs& args, const CallOptions& options);

}  // namespace fl
