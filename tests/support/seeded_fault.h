// Which of its seeded faults a program has: the variable SEEDED_FAULT is its number (cpp_program.py).
#pragma once
#include <cstdlib>
#include <type_traits>

inline const int seeded_fault = [] {
  const char* const number = std::getenv("SEEDED_FAULT");
  return number ? std::atoi(number) : 0;
}();

constexpr bool seeded(int number) { return !std::is_constant_evaluated() && seeded_fault == number; }
