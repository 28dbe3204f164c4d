// Corrections of the cost rules, from and for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace fl::py {

// Before anything is dispatched: reads the user's table, once in a process. What is wrong with it goes to the log.
void ensure_tuned();

void bind_tuning(nanobind::module_& m);

}  // namespace fl::py
