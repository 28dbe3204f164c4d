// Calls that take so long that somebody may wait for them: Ctrl-C ends them, and who asked hears how far they are.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

namespace fl::py {

namespace nb = nanobind;

// Of calls of this thread from now on; None: nobody asks. Returns what was there before.
nb::object set_progress(nb::object callback);

// Of fewer steps even the slowest kernels make an end in some 50 ms, on one thread.
inline bool is_long(double steps) { return steps > 1e7; }

// run() without the GIL. On the main thread a signal's handler is called within 100 ms. What that raises, or the
// callback, is raised here, when nothing touches the operands any more.
void run_long(double steps, const std::function<void()>& run);

}  // namespace fl::py
