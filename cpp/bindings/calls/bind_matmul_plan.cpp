// MatmulPlan as Python sees it. The class that users know is in python/fastlinalg/_plan.py.
#include <nanobind/stl/string.h>

#include "bindings/arrays/names.h"
#include "bindings/calls/matmul_plan.h"

namespace fl::py {
namespace {

constexpr const char* execute_doc = R"(Compute the product of the bound operands as they are now.

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

}  // namespace

nb::object MatmulPlan::kernel() {
  const Method method(*this);
  return first_plan([](const auto& plan) { return nb::str(plan.kernel()); });
}

nb::object MatmulPlan::device() {
  const Method method(*this);
  return first_plan([](const auto& plan) { return nb::str(device_text(plan.device()).c_str()); });
}

size_t MatmulPlan::workspace_bytes() {
  const Method method(*this);
  size_t bytes = 0;
  for_each_plan([&](const auto& plan) { bytes += plan.workspace_bytes(); });
  return bytes;
}

std::string MatmulPlan::repr() {
  std::string state = "freed";
  if (state_ != freed) state = to_string(a_.shape()) + " @ " + to_string(b_.shape()) + " -> " + to_string(shape_);
  if (state_ == unplanned) state += ", not planned";
  if (state_ == planned) state += ", kernel=" + text(nb::repr(kernel())) + ", device=" + text(nb::repr(device()));
  return "fastlinalg.Matmul(" + state + ")";
}

void bind_matmul_plan(nb::module_& m) {
  using nb::arg;
  if (take_registered<MatmulPlan>(m, "MatmulPlan")) return;
  nb::class_<MatmulPlan>(m, "MatmulPlan", "What fastlinalg.Matmul is built on.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                    nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(),
           arg("a").none(), arg("b").none(), arg("c").none(), arg("out").none(), arg("alpha").none(),
           arg("beta").none(), arg("trans_a").none(), arg("trans_b").none(), arg("kernel").none(),
           arg("precision").none(), arg("device").none(), arg("stream").none(), arg("constant").none())
      .def("plan", &MatmulPlan::plan)
      .def("execute", &MatmulPlan::execute, nb::kw_only(), arg("stream") = nb::none(), execute_doc)
      .def("_reset_operands", &MatmulPlan::reset_operands, arg("a").none(), arg("b").none(), arg("c").none(),
           arg("out").none())
      .def("free", &MatmulPlan::free)
      .def("__repr__", &MatmulPlan::repr)
      .def_prop_ro("kernel", &MatmulPlan::kernel)
      .def_prop_ro("device", &MatmulPlan::device)
      .def_prop_ro("workspace_bytes", &MatmulPlan::workspace_bytes);
}

}  // namespace fl::py
