// What the public functions share: where the result is written, and the call itself.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "bindings/arrays/array.h"
#include "bindings/arrays/call_location.h"
#include "bindings/calls/options.h"
#include "run/forecast.h"
#include "run/group.h"
#include "run/plan.h"

namespace fl::py {

// Where a result is written. Operands may overlap `out`: the result is then as if they had been copied first.
class Target {
 public:
  // `out` is None or an array of this shape (else InvalidValue); `inputs` are the arrays that the product reads.
  // `replaced`, if given, is one of them that the result may take the place of, if `out` is the same view.
  Target(const char* function, nb::handle out, const Shape& shape, std::initializer_list<const Array*> inputs,
         CallLocation& location, const Array* replaced = nullptr, const char* name = "out");
  // A new result that is there.
  Target(Array made, CallLocation& location) : location_(&location), fresh_(true), out_(std::move(made)) {}
  bool replaces() const { return replaces_; }
  void join_rows() { out_.join_rows(); }  // of a new result, which the product writes as one matrix
  const Array& array() const { return staged_ ? temporary_ : out_; }
  const Array& given() const { return out_; }
  bool overlaps(const Array& x) const { return out_.overlaps(x); }
  bool leaves_alone(const Array& x) const;  // whether x can be read while the result is written
  void preload(const Array& c);             // the values that beta multiplies
  void stage();                             // where an operand lies in the way: the kernels write elsewhere
  void load_out();                          // what `out` has beside that
  bool is(const Array& c) const { return out_.same_view(c); }
  bool fresh() const { return fresh_; }
  void write_back();    // what the kernels have written elsewhere
  nb::object result();  // `out` or the new array
  nb::object finish();  // the same, complete, when the call is done

  // Another call may write the same array: it begins in its own place. Not if the staging output is device memory,
  // which belongs to the order of one call's stream.
  bool reusable() const { return !fresh_ && !device_memory_ && !out_.has_to_be_read_again(); }
  void hold() { out_.hold(); }  // for other calls: `out` may be given another memory, and the first must stay
  void begin(CallLocation& location) {
    location_ = &location;
    out_.require_writeable("out");
    out_.join("out", location);
  }

 private:
  void copy(const Array& to, const Array& from) const;

  CallLocation* location_;
  bool fresh_, replaces_ = false;
  Array out_;            // what the caller gets
  bool staged_ = false;  // the kernels write temporary_ instead
  Array temporary_;
  std::shared_ptr<void> device_memory_;  // of temporary_
};

// Others may use the operands and the results from now on.
void finish_call(CallLocation& location);

// Before anything is decided: reads the tuning table, and warns of settings that mean nothing.
void before_any_call(const Options& options);

// Runs with the GIL released, reporting the choice of kernel to the logger for each new shape.
template <class Args>
void call(const Args& args, const Options& options);
// Of a list.
std::unique_ptr<Group> make_group(std::vector<Product> products, const Options& options, Group::Use use);
void call(Group& group, const Options& options, void* stream);
// One triangle of it.
void call_triangle(const SgemmArgs& args, Triangle part, OtherTriangle other_triangle, const Options& options);
// The same in two steps.
template <class Args>
Plan<Args> make_plan(const Args& args, const Options& options);
template <class Args>
void call(Plan<Args>& plan, void* stream);

}  // namespace fl::py
