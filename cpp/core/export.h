// Everything is hidden in the shared library but the C interface and what the Python bindings call.
#pragma once
#define FL_EXPORT __attribute__((visibility("default")))
