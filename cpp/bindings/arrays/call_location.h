// Where the operands of one call lie: in host memory, or in the memory of one CUDA device. There a call has a stream,
// which waits for the streams on which the operands' libraries queue their work, and for which those wait in turn.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <vector>

#include "bindings/arrays/libraries.h"

namespace fl::py {

// What becomes of operands of another real type than float32: an error, an error that speaks of `dtype`, or float32.
enum class OtherTypes { refuse, offer, convert };

class CallLocation {
 public:
  // `device` as the caller gave it; `stream` null if none was given.
  CallLocation(std::string_view device, void* stream, OtherTypes other_types = OtherTypes::refuse)
      : asked_(device), stream_(stream), other_types_(other_types) {}
  // A call of a torch operator, whose operands are tensors: torch has recorded its gradient already, and has resolved
  // what a subclass or a bit of a tensor may make of its elements.
  struct Operator {};
  explicit CallLocation(Operator) : asked_("auto"), stream_(nullptr), in_operator_(true) {}
  CallLocation(const CallLocation&) = delete;
  CallLocation& operator=(const CallLocation&) = delete;
  ~CallLocation() {
    if (unfinished()) finish_after_error();
  }

  // Every operand says where it is. The first decides, and its library makes the result; another that is elsewhere
  // is an InvalidValue that names both.
  void add_host(const char* name, nb::handle operand, const Library& library) {
    if (device_ >= 0) refuse(name, -1);
    if (!first_) set_first(name, operand, library);
  }
  void add_device(const char* name, nb::handle operand, const Library& library, int device);

  bool in_operator() const { return in_operator_; }
  OtherTypes other_types() const { return other_types_; }
  void set_other_types(OtherTypes other_types) { other_types_ = other_types; }
  bool* overflowed() const { return &overflowed_; }  // of operands that are converted
  bool on_device() const { return device_ >= 0; }
  int device() const { return device_; }
  void* stream() const { return stream_; }

  void wait_for(void* stream);  // a stream on which an operand is being computed
  void keep(nb::object owner);  // lives until the call's work is done
  // A result whose memory goes back on another stream than the call's lives until that one waits for the call, which
  // may fail when a part of it has been queued.
  void keep_result(nb::object result) { result_ = std::move(result); }

  // The first operand, of whose kind the result is. Only kept where that takes more than to know its library.
  nb::handle first() const { return operand_; }
  const Library& library() const { return library_; }

  void finish() {  // the operands' streams wait for the call
    if (unfinished()) order_others();
  }

 private:
  void set_first(const char* name, nb::handle operand, const Library& library) {
    first_ = name, library_ = library;
    if (library.kind != Library::numpy) operand_ = nb::borrow(operand);
  }
  bool unfinished() const { return !others_.empty() || !kept_.empty(); }
  void order_others();
  void finish_after_error() noexcept;
  [[noreturn]] void refuse(const char* name, int device) const;
  void start(const char* name, nb::handle operand, const Library& library, int device);
  void check_asked(const char* name, int device) const;

  std::string_view asked_;
  void* stream_;
  OtherTypes other_types_ = OtherTypes::refuse;
  bool in_operator_ = false;
  int device_ = -1;  // host
  const char* first_ = nullptr;
  nb::object operand_;
  Library library_;
  void* current_ = nullptr;  // where that library queues work
  std::vector<void*> others_;
  std::vector<nb::object> kept_;
  nb::object result_;
  mutable bool overflowed_ = false;
};

void drop_kept_operands();  // those of calls that are done; every call that keeps some does it too

}  // namespace fl::py
