// What the public functions share: their keyword arguments, where the result is written, and the call itself.
#pragma once

#include <memory>
#include <string_view>

#include "bindings/arrays/array.h"
#include "bindings/arrays/place.h"
#include "core/problem.h"
#include "run/plan.h"
#include "run/run.h"

namespace fl::py {

struct Options {
  Precision precision = Precision::accurate;
  CallOptions call;
};
Options parse_options(const char* function, nb::handle kernel, std::string_view precision, std::string_view device,
                      nb::handle stream);
Precision parse_precision(std::string_view text);
bool parse_flag(const char* function, const char* name, nb::handle flag);  // True or False, NumPy's too
float to_float32(const char* function, const char* name, double value);    // what is finite has to stay so
void* parse_stream(nb::handle stream);  // None, an int, or an object with __cuda_stream__

// Where a result is written. Operands may overlap `out`: the result is then as if they had been copied first.
class Target {
 public:
  // `out` is None or an array of this shape (else InvalidValue); `inputs` are the arrays that the product reads.
  // `replaced`, if given, is one of them that the result may take the place of, if `out` is the same view.
  Target(const char* function, nb::handle out, const Shape& shape, std::initializer_list<const Array*> inputs,
         Place& place, const Array* replaced = nullptr);
  bool replaces() const { return replaces_; }
  const Array& array() const { return stand_in_ ? temporary_ : out_; }
  bool overlaps(const Array& x) const { return out_.overlaps(x); }
  void preload(const Array& c);  // the values that beta multiplies
  nb::object finish();           // `out` or the new array, complete

  // Another call may write the same array: it begins in its own place. Not if what stands in is device memory, which
  // belongs to the order of one call's stream.
  bool reusable() const { return !fresh_ && !device_memory_ && !out_.has_to_be_read_again(); }
  void hold() { out_.hold(); }  // for other calls: `out` may be given another memory, and the first must stay
  void begin(Place& place) {
    place_ = &place;
    out_.require_writeable("out");
    out_.join("out", place);
  }

 private:
  void use_stand_in(const Shape& shape);
  void copy(const Array& to, const Array& from) const;

  Place* place_;
  bool fresh_, replaces_ = false;
  Array out_;              // what the caller gets
  bool stand_in_ = false;  // the kernels write temporary_ in its stead
  Array temporary_;
  std::shared_ptr<void> device_memory_;  // of temporary_
};

// Where a call whose operands are known runs.
inline void set_place(CallOptions& options, const Place& place) {
  if (!place.on_device()) return;
  options.device = {Device::cuda, place.device()};
  options.stream = place.stream();
  options.device_memory = true;
}

// Runs with the GIL released, reporting the choice of kernel to the logger for each new shape.
template <class Args>
void call(const Args& args, const Options& options);
// The same in two steps.
template <class Args>
Plan<Args> make_plan(const Args& args, const Options& options);
template <class Args>
void call(Plan<Args>& plan, void* stream);

void set_logger(nb::object logger);
void warn(const std::string& line);  // with the GIL

}  // namespace fl::py
