// What programs with seeded faults have in common (cpp_program.py): which of them is there, by the number in
// SEEDED_FAULT, and how they say what is wrong.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

inline const int seeded_fault = [] {
  const char* const number = std::getenv("SEEDED_FAULT");
  return number ? std::atoi(number) : 0;
}();

constexpr bool seeded(int number) { return !std::is_constant_evaluated() && seeded_fault == number; }

[[noreturn]] inline void wrong(const std::string& what) {
  std::puts(what.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

template <class Text>
void expect(bool holds, const Text& what) {
  if (!holds) wrong(what);
}
