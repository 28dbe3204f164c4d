// Squared distances of all rows of A to all rows of B: |a|^2 + |b|^2 - 2 a.b, whose last term is a product of matrices.
// Library, threads and memory are those of the Python package: a limit on its threads holds here too.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <fastlinalg/fastlinalg.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace {

using Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

std::vector<float> squared_norms(const Rows& rows) {
  std::vector<float> norms(rows.shape(0));
  for (std::size_t i = 0; i < rows.shape(0); ++i)
    for (std::size_t j = 0; j < rows.shape(1); ++j) norms[i] += rows(i, j) * rows(i, j);
  return norms;
}

void compute(const Rows& a, const Rows& b, float* result) {
  const auto m = std::int64_t(a.shape(0)), n = std::int64_t(b.shape(0)), k = std::int64_t(a.shape(1));
  const std::vector<float> of_a = squared_norms(a), of_b = squared_norms(b);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) result[i * n + j] = of_a[i] + of_b[j];
  fastlinalg::sgemm(false, true, m, n, k, -2.0f, a.data(), k, b.data(), k, 1.0f, result, n);
}

Result squared_distances(const Rows& a, const Rows& b) {
  if (a.shape(1) != b.shape(1))
    throw std::invalid_argument("squared_distances: rows of a have " + std::to_string(a.shape(1)) +
                                " elements, those of b " + std::to_string(b.shape(1)));
  float* const data = new float[a.shape(0) * b.shape(0)];
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  {
    const nb::gil_scoped_release released;
    compute(a, b, data);
  }
  return Result(data, {a.shape(0), b.shape(0)}, owner);
}

}  // namespace

NB_MODULE(_core, m) {
  m.def("squared_distances", squared_distances, nb::arg("a").noconvert(), nb::arg("b").noconvert(),
        "The squared distance of each row of a to each row of b, both float32 in C order.");
  m.def("get_num_threads", fastlinalg::get_num_threads, "The threads that fastlinalg uses, here and in Python.");
}
