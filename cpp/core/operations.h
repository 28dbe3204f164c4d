// The operations of the library, listed once, and what code that is the same for all of them asks of each. What it
// takes to add one: ARCHITECTURE.md.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "core/errors.h"
#include "core/problem.h"

namespace fl {

// X(Args) for each: explicit instantiations are made with it, and everything below.
#define FL_FOR_EACH_OPERATION(X) \
  X(SgemmArgs)                   \
  X(SgemvArgs)                   \
  X(TransposeArgs)

// `name` is that of the kernel table and of users. `sizes` are those of one problem of the batch, `inputs` the operands
// that are read only, `output` the one that is written.
template <class Args>
struct Operation;
template <>
struct Operation<SgemmArgs> {
  static constexpr const char* name = "sgemm";
  static constexpr std::tuple sizes{&SgemmArgs::m, &SgemmArgs::n, &SgemmArgs::k};
  static constexpr std::tuple inputs{&SgemmArgs::a, &SgemmArgs::b};
  static constexpr auto output = &SgemmArgs::c;
};
template <>
struct Operation<SgemvArgs> {
  static constexpr const char* name = "sgemv";
  static constexpr std::tuple sizes{&SgemvArgs::m, &SgemvArgs::n};
  static constexpr std::tuple inputs{&SgemvArgs::a, &SgemvArgs::x};
  static constexpr auto output = &SgemvArgs::y;
};
template <>
struct Operation<TransposeArgs> {
  static constexpr const char* name = "transpose";
  static constexpr std::tuple sizes{&TransposeArgs::m, &TransposeArgs::n};
  static constexpr std::tuple inputs{&TransposeArgs::a};
  static constexpr auto output = &TransposeArgs::b;
};

// ---------------------------------------------------------------- the list
// Calls body.operator()<Args>() for each.
template <class Body>
constexpr void for_each_operation(Body&& body) {
#define FL_CALL(Args) body.template operator()<Args>();
  FL_FOR_EACH_OPERATION(FL_CALL)
#undef FL_CALL
}

#define FL_ONE(Args) +1
inline constexpr std::size_t operation_count = 0 FL_FOR_EACH_OPERATION(FL_ONE);
#undef FL_ONE

template <class Args>
constexpr std::size_t operation_index() {
  std::size_t index = 0, found = operation_count;
  for_each_operation([&]<class Other>() {
    if (std::is_same_v<Args, Other>) found = index;
    ++index;
  });
  return found;
}

// "'sgemm', 'sgemv' or 'transpose'"
inline std::string operation_names() {
  std::string names;
  for_each_operation([&]<class Args>() {
    constexpr std::size_t i = operation_index<Args>();
    names += i == 0 ? "'" : i + 1 == operation_count ? " or '" : ", '";
    names += Operation<Args>::name + std::string("'");
  });
  return names;
}

inline bool is_operation(std::string_view name) {
  bool found = false;
  for_each_operation([&]<class Args>() { found = found || name == Operation<Args>::name; });
  return found;
}

// body.operator()<Args>() of the operation with that name; throws InvalidValue if there is none.
template <class Body>
auto with_operation(std::string_view name, Body&& body) {
  using Result = decltype(body.template operator()<SgemmArgs>());
#define FL_CALL(Args) \
  if (name == Operation<Args>::name) return Result(body.template operator()<Args>());
  FL_FOR_EACH_OPERATION(FL_CALL)
#undef FL_CALL
  throw InvalidValue("op must be " + operation_names() + ", got '" + std::string(name) + "'");
}

// ---------------------------------------------------------------- one call
// Calls visit(view) for the operands that are only read, an addend that is not the result, and the result.
template <class Args, class Visit>
constexpr void for_each_operand(Args& args, Visit&& visit) {
  using Traits = Operation<std::remove_const_t<Args>>;
  std::apply([&](auto... input) { (visit(args.*input), ...); }, Traits::inputs);
  if constexpr (requires { args.addend; })
    if (args.addend.data) visit(args.addend);
  visit(args.*Traits::output);
}

template <class Args>
constexpr auto sizes_of(const Args& args) {  // the batch last
  return std::apply([&](auto... size) { return std::array{args.*size..., args.batch}; }, Operation<Args>::sizes);
}

// How many elementary steps: multiplications of products, elements of a transpose.
template <class Args>
double step_count(const Args& args) {
  const auto product = [&](auto first, auto... others) {
    return (double(args.*first) * ... * double(args.*others)) * double(args.batch);
  };
  return std::apply(product, Operation<Args>::sizes);
}

// "3x4x5", "3x4 batch 2"
template <class Args>
std::string sizes_text(const Args& args) {
  std::string text;
  const auto add = [&](auto size) { text += (text.empty() ? "" : "x") + std::to_string(args.*size); };
  std::apply([&](auto... size) { (add(size), ...); }, Operation<Args>::sizes);
  return args.batch > 1 ? text + " batch " + std::to_string(args.batch) : text;
}

// "sgemm 3x4x5", "transpose 3x4 batch 2"
template <class Args>
std::string describe(const Args& args) {
  return Operation<Args>::name + (" " + sizes_text(args));
}

}  // namespace fl
