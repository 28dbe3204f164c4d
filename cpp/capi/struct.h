// Structs of the C interface, which later versions make longer: struct_size says which one the caller was built with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "capi/check.h"

namespace fl {

// `first_size` is that of the first version with this struct, `init` the macro to begin with.
template <class Struct>
void check_struct_size(const Check& check, const char* name, const char* init, const Struct& given,
                       std::size_t first_size) {
  if (given.struct_size < first_size)
    check.refuse(std::string(name) + "->struct_size is " + std::to_string(given.struct_size) +
                 ", this library knows sizes from " + std::to_string(first_size) + " on; start from " + init);
}

// What the caller knows of it; the rest of `initial` stays. A newer caller must not ask for what this library lacks.
template <class Struct>
Struct read_struct(const Check& check, const char* name, const char* init, const Struct& given, std::size_t first_size,
                   const Struct& initial) {
  check_struct_size(check, name, init, given, first_size);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = sizeof(Struct); i < given.struct_size; ++i)
    if (bytes[i] != 0)
      check.refuse(std::string(name) + " sets a field that this library, which knows " +
                   std::to_string(sizeof(Struct)) + " bytes of it, does not have");
  Struct known = initial;
  std::memcpy(&known, &given, std::min(given.struct_size, sizeof(Struct)));
  return known;
}

// As much of `values` as the caller has room for. What a newer caller has beyond that is 0.
template <class Struct>
void write_struct(const Check& check, const char* name, const char* init, Struct* target, std::size_t first_size,
                  Struct values) {
  if (!target) check.refuse(std::string(name) + " is NULL");
  check_struct_size(check, name, init, *target, first_size);
  values.struct_size = target->struct_size;
  const std::size_t known = std::min(target->struct_size, sizeof(Struct));
  std::memset(reinterpret_cast<unsigned char*>(target) + known, 0, target->struct_size - known);
  std::memcpy(target, &values, known);
}

}  // namespace fl
