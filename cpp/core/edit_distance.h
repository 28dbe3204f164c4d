// How many letters two names differ by, for suggestions in error messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace fl {

// The fewest letters to insert, delete or replace (Levenshtein, Soviet Physics Doklady 10, 1966; the algorithm of
// R. A. Wagner and M. J. Fischer, JACM 21(1), 1974, one row at a time).
inline std::size_t edit_distance(std::string_view x, std::string_view y) {
  std::vector<std::size_t> row(y.size() + 1);
  for (std::size_t j = 0; j <= y.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < y.size(); ++j) {
      const std::size_t replaced = diagonal + (x[i] != y[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row[y.size()];
}

}  // namespace fl
