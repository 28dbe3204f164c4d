#include "bindings/grouped/members.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "bindings/calls/compute.h"
#include "core/errors.h"

namespace fl::py {
namespace {

nb::object tuple_of(const std::string& function, nb::handle list, const char* name) {
  const std::string wanted = function + ": " + name + " must be a list of arrays, got ";
  const bool plain = PyList_CheckExact(list.ptr()) || PyTuple_CheckExact(list.ptr());
  if (!plain && nb::hasattr(list, "shape"))
    throw InvalidType(wanted + "an array of shape " + text(list.attr("shape")) +
                      "; matmul multiplies stacks of matrices, list(" + name + ") is the list of its matrices");
  PyObject* const iterator = PyObject_GetIter(list.ptr());
  if (!iterator && !PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
  if (!iterator) {
    PyErr_Clear();
    throw InvalidType(wanted + shown(list));
  }
  const nb::object all = nb::steal(iterator);
  PyObject* const members = PySequence_Tuple(all.ptr());
  if (!members) throw nb::python_error();
  return nb::steal(members);
}

std::size_t size_of(nb::handle tuple) { return std::size_t(PyTuple_Size(tuple.ptr())); }
nb::handle item(nb::handle tuple, std::size_t i) { return PyTuple_GetItem(tuple.ptr(), Py_ssize_t(i)); }

std::string place(const char* name, std::size_t i) { return std::string(name) + "[" + std::to_string(i) + "]"; }

// ---------------------------------------------------------------- results that share memory
// Every second column and the others: all steps, and no way from one to the other, are multiples of one number.
bool are_on_other_steps(const Array& x, const Array& y) {
  int64_t common = 0;
  for (const Array* const array : {&x, &y})
    for (int i = 0; i < array->ndim(); ++i)
      if (array->shape(i) > 1) common = std::gcd(common, array->stride(i));
  return common > 1 && (y.data() - x.data()) % common != 0;
}

// Blocks of one matrix, side by side: their ranges of memory interleave, and they have no element in common.
bool are_blocks_apart(const Array& x, const Array& y) {
  if (x.ndim() != 2 || y.ndim() != 2) return false;
  int64_t strides[2];
  for (int i = 0; i < 2; ++i) {
    strides[i] = x.shape(i) > 1 ? x.stride(i) : y.stride(i);
    if (y.shape(i) > 1 && y.stride(i) != strides[i]) return false;
  }
  const int minor = strides[0] < strides[1] ? 0 : 1;
  const int64_t ld = strides[1 - minor], step = strides[minor];
  if (step <= 0) return false;
  const int64_t distance = y.data() - x.data(), behind = ((distance % ld) + ld) % ld;
  return behind > (x.shape(minor) - 1) * step && behind + (y.shape(minor) - 1) * step < ld;
}

// In device memory, as in a product alone; else all is float32 by now.
template <class Args>
bool convert_member(const Problem<Args>& problem, GroupMember& member, CallLocation& location) {
  const auto& stored = problem.args.stored;
  if (!stored[0].converted() && !stored[1].converted()) return false;
  return convert_stacks(problem, member.target->array(), {&member.a, &member.b}, location);
}

// Intervals of memory that are asked whether any of them has a byte of another one.
class Ranges {
 public:
  explicit Ranges(std::vector<Array::Extent> all) : all_(std::move(all)) {
    std::erase_if(all_, [](const Array::Extent& x) { return !x.first; });
    std::ranges::sort(all_, {}, &Array::Extent::first);
    const char* reach = nullptr;
    for (const Array::Extent& x : all_) reach_.push_back(reach = std::max(reach, x.last));
  }
  bool overlap(const Array::Extent& x) const {
    if (!x.first) return false;
    const auto behind = std::ranges::upper_bound(all_, x.last, {}, &Array::Extent::first);
    return behind != all_.begin() && reach_[std::size_t(behind - all_.begin()) - 1] >= x.first;
  }

 private:
  std::vector<Array::Extent> all_;
  std::vector<const char*> reach_;  // the last byte of those up to each
};

}  // namespace

GroupMembers::GroupMembers(const char* function, nb::handle a, nb::handle b, nb::handle out)
    : function_(function),
      a_(tuple_of(function_, a, "a")),
      b_(tuple_of(function_, b, "b")),
      out_(out.is_none() ? nb::none() : tuple_of(function_, out, "out")) {
  const std::size_t size = size_of(a_);
  if (size_of(b_) != size)
    throw InvalidValue(function_ + ": a has " + std::to_string(size) + " arrays and b has " +
                       std::to_string(size_of(b_)) + "; each of a is multiplied by the one in its place in b");
  if (!out_.is_none() && size_of(out_) != size)
    throw InvalidValue(function_ + ": out has " + std::to_string(size_of(out_)) + " arrays, and there are " +
                       std::to_string(size) + " products");
}

void GroupMembers::read(Precision precision, CallLocation& location) {
  precision_ = precision;
  members_.reserve(size_of(a_));  // where they stay
  for (std::size_t i = 0; i < size_of(a_); ++i) read(members_.emplace_back(), i, location);
  std::vector<double> steps;
  for (const GroupMember& member : members_)
    steps.push_back(std::visit([](const auto& p) { return step_count(p.args); }, *member.problem));
  longest_first_.resize(members_.size());
  std::iota(longest_first_.begin(), longest_first_.end(), std::size_t{0});
  std::ranges::stable_sort(longest_first_, std::greater(), [&](std::size_t i) { return steps[i]; });
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (out_.is_none() || item(out_, i).is_none()) results_.expect(members_[i].shape(), location);
  if (out_.is_none()) return;
  for (GroupMember& member : members_) set_target(member, location);
  require_results_apart();
  keep_operands();
}

void GroupMembers::read(GroupMember& member, std::size_t i, CallLocation& location) {
  member.a_name = place("a", i), member.b_name = place("b", i);
  member.a = Array(item(a_, i), member.a_name.c_str(), Array::read, location);
  member.b = Array(item(b_, i), member.b_name.c_str(), Array::read, location);
  if (!location.on_device())
    for (Array* const operand : {&member.a, &member.b}) operand->convert();
  set_problem(member);
}

void GroupMembers::set_problem(GroupMember& member) const {
  const std::string call = function_ + ", member " + std::to_string(&member - members_.data());
  require_dims(call.c_str(), "a", member.a, 1);
  require_dims(call.c_str(), "b", member.b, 1);
  with_product_problem({.function = call.c_str(), .precision = precision_}, member.a, member.b, [&](auto problem) {
    problem.function = nullptr;  // `call` has been told
    member.problem.emplace(std::move(problem));
  });
}

void GroupMembers::set_target(GroupMember& member, CallLocation& location) {
  const auto i = std::size_t(&member - members_.data());
  member.out_name = place("out", i);
  const nb::handle out = out_.is_none() ? nb::handle(out_) : item(out_, i);
  if (out.is_none()) member.target.emplace(results_.make(member.shape(), location), location);
  else
    member.target.emplace(function_.c_str(), out, member.shape(), std::initializer_list<const Array*>{}, location,
                          nullptr, member.out_name.c_str());
}

// The operands are read while results are written, those of other members too.
void GroupMembers::keep_operands() {
  std::vector<Array::Extent> read;
  for (const GroupMember& member : members_) read.push_back(member.a.extent()), read.push_back(member.b.extent());
  const Ranges operands(std::move(read));
  for (GroupMember& member : members_)
    if (operands.overlap(member.target->array().extent())) member.target->stage();
}

// Of results whose ranges of memory overlap.
void GroupMembers::require_apart(const GroupMember& x, const GroupMember& y) const {
  const Array &of_x = x.target->given(), &of_y = y.target->given();
  const bool aligned = !of_x.misaligned() && !of_y.misaligned();
  if (aligned && (are_on_other_steps(of_x, of_y) || are_blocks_apart(of_x, of_y))) return;
  throw InvalidValue(function_ + ": " + std::min(&x, &y)->out_name + " and " + std::max(&x, &y)->out_name +
                     " share memory; each product needs a result of its own");
}

void GroupMembers::require_results_apart() const {
  std::vector<std::pair<Array::Extent, const GroupMember*>> all;
  for (const GroupMember& member : members_)
    if (const auto extent = member.target->given().extent(); extent.first) all.emplace_back(extent, &member);
  std::ranges::sort(all, {}, [](const auto& x) { return x.first.first; });
  for (auto x = all.begin(); x != all.end(); ++x)
    for (auto y = x + 1; y != all.end() && y->first.overlaps(x->first); ++y) require_apart(*x->second, *y->second);
}

std::vector<Product> GroupMembers::products(std::size_t first, std::size_t count, CallLocation& location) {
  std::vector<Product> all;
  all.reserve(count);
  for (const std::size_t i : std::span(longest_first_).subspan(first, count)) {
    GroupMember& member = members_[i];
    if (!member.target) set_target(member, location);
    if (std::visit([&](const auto& problem) { return convert_member(problem, member, location); }, *member.problem))
      set_problem(member);
    std::visit(
        [&](auto problem) {  // a copy, as it can do that once
          problem.for_each_run(member.target->array(), [&](const auto& args) { all.push_back(args); });
        },
        *member.problem);
  }
  return all;
}

void GroupMembers::hold() {
  const auto refuse = [&](const std::string& what) { throw InvalidValue(function_ + ": " + what); };
  for (GroupMember& member : members_) {
    for (auto [operand, name, given] : {std::tuple(&member.a, &member.a_name, &a_), {&member.b, &member.b_name, &b_}}) {
      if (!operand->object().is(item(*given, std::size_t(&member - members_.data()))))
        refuse("the elements of " + *name + " are not aligned to 4 bytes, which a plan cannot use; pass a copy");
      if (operand->has_to_be_read_again())
        refuse(*name + " is of a library whose arrays have to be asked for their memory at each call; call " +
               "grouped_matmul");
      operand->hold();
    }
    if (&member.target->array() != &member.target->given() || member.target->given().has_to_be_read_again())
      refuse(member.out_name + " overlaps an operand, or is not aligned to 4 bytes, or is of a library whose arrays " +
             "have to be asked for their memory at each call; call grouped_matmul");
    member.target->hold();
  }
}

void GroupMembers::join(CallLocation& location) {
  for (GroupMember& member : members_) {
    member.a.join(member.a_name.c_str(), location);
    member.b.join(member.b_name.c_str(), location);
    member.target->begin(location);
  }
}

nb::list GroupMembers::finish(CallLocation& location) {
  for (GroupMember& member : members_) member.target->write_back();
  finish_call(location);
  nb::list results;
  for (GroupMember& member : members_) results.append(member.target->result());
  return results;
}

}  // namespace fl::py
