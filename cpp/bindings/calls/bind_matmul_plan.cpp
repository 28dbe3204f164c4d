// MatmulPlan as Python sees it. The class that users know is in python/fastlinalg/_plan.py.
#include <nanobind/stl/string.h>

#include "bindings/arrays/errors.h"
#include "bindings/arrays/objects.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/matmul_plan.h"
#include "core/errors.h"

namespace fl::py {
namespace {

// After its signature, which Python takes out.
constexpr const char* execute_doc = R"(execute($self, /, *, stream=None)
--

Compute the product of the bound operands as they are now. A call of the plan, ``plan()``, is the same.

Parameters
----------
stream : int or object with ``__cuda_stream__``, optional
    Instead of the stream that the plan was made with.

Returns
-------
array
    `out`, or a new array of the kind that `fastlinalg.matmul` returns.

Raises
------
ValueError
    The plan has been freed.
MemoryError, CudaError
    As for `fastlinalg.matmul`.)";

nb::handle stream_in(PyObject* const* values, PyObject* names) {
  nb::handle stream = nb::none();
  for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); ++i) {
    const nb::handle name = PyTuple_GetItem(names, i);
    if (PyUnicode_CompareWithASCIIString(name.ptr(), "stream") != 0)
      throw InvalidType("Matmul.execute() takes stream= alone, got " + text(name) + "=");
    stream = values[i];
  }
  return stream;
}

// A method of Python's own kind: nanobind's are objects to help(), answer wrong calls with types, and take longer.
PyObject* execute(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return or_error([&] {
    if (!nb::inst_ready(self)) throw InvalidType("Matmul.execute() of a plan that was not made");
    if (count > 0)
      throw InvalidType("Matmul.execute() takes no operands, got " + std::to_string(count) +
                        ": the plan is bound to its own; reset_operands(a, b) binds others");
    return nb::inst_ptr<MatmulPlan>(self)->execute(stream_in(arguments, names)).release().ptr();
  });
}

// By way of void*, as C++ calls casts between types of functions a mistake.
PyMethodDef methods[] = {{"execute", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(execute)),
                          METH_FASTCALL | METH_KEYWORDS, execute_doc},
                         {}};
PyType_Slot slots[] = {{Py_tp_methods, methods}, {}};

}  // namespace

nb::object MatmulPlan::kernel() {
  const Method method(*this);
  return kernel_of_first();
}
nb::object MatmulPlan::kernel_of_first() {
  return first_plan([](const auto& plan) { return nb::str(plan.kernel()); });
}

nb::object MatmulPlan::device() {
  const Method method(*this);
  return device_of_first();
}
nb::object MatmulPlan::device_of_first() {
  return first_plan([](const auto& plan) { return nb::str(device_text(plan.device()).c_str()); });
}

size_t MatmulPlan::workspace_bytes() {
  const Method method(*this);
  size_t bytes = 0;
  for_each_plan([&](const auto& plan) { bytes += plan.workspace_bytes(); });
  return bytes;
}

std::string MatmulPlan::repr() {
  const Method method(*this);
  std::string state = "freed";
  if (state_ != freed) state = to_string(a_.shape()) + " @ " + to_string(b_.shape()) + " -> " + to_string(shape_);
  if (state_ == unplanned) state += ", not planned";
  if (state_ == planned)
    state += ", kernel=" + text(nb::repr(kernel_of_first())) + ", device=" + text(nb::repr(device_of_first()));
  return "fastlinalg.Matmul(" + state + ")";
}

void bind_matmul_plan(nb::module_& m) {
  using nb::arg;
  if (take_registered<MatmulPlan>(m, "MatmulPlan")) return;
  nb::class_<MatmulPlan>(m, "MatmulPlan", nb::type_slots(slots), "What fastlinalg.Matmul is built on.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                    nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(),
           arg("a").none(), arg("b").none(), arg("c").none(), arg("out").none(), arg("alpha").none(),
           arg("beta").none(), arg("trans_a").none(), arg("trans_b").none(), arg("kernel").none(),
           arg("precision").none(), arg("device").none(), arg("stream").none(), arg("constant").none(),
           arg("dtype").none())
      .def("plan", &MatmulPlan::plan)
      .def("_reset_operands", &MatmulPlan::reset_operands, arg("a").none(), arg("b").none(), arg("c").none(),
           arg("out").none())
      .def("free", &MatmulPlan::free)
      .def("__repr__", &MatmulPlan::repr)
      .def_prop_ro("kernel", &MatmulPlan::kernel)
      .def_prop_ro("device", &MatmulPlan::device)
      .def_prop_ro("workspace_bytes", &MatmulPlan::workspace_bytes);
}

}  // namespace fl::py
