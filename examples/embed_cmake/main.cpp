// Multiplies two matrices with fastlinalg, compares every element with a triple loop in double precision, and says how
// fast larger products are.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <fastlinalg/fastlinalg.hpp>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The worst error of C = A B in units of 2^-24 * |A||B|; the product is right if it stays below k.
double worst_error(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c,
                   std::int64_t m, std::int64_t n, std::int64_t k) {
  double worst = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double exact = 0, magnitude = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const double term = double(a[i * k + l]) * double(b[l * n + j]);
        exact += term;
        magnitude += std::fabs(term);
      }
      worst = std::fmax(worst, std::fabs(c[i * n + j] - exact) / (magnitude * 0x1p-24));
    }
  }
  return worst;
}

std::vector<float> some_values(std::int64_t count, float step) {
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i) values[i] = std::sin(step * float(i));
  return values;
}

int multiply() {
  const std::int64_t m = 129, n = 65, k = 257;
  const std::vector<float> a = some_values(m * k, 0.7f), b = some_values(k * n, 0.3f);
  std::vector<float> c(m * n, NAN);  // beta is 0: never read
  fastlinalg::sgemm(m, n, k, a.data(), k, b.data(), n, c.data(), n);
  const double error = worst_error(a, b, c, m, n, k);
  std::cout << m << " x " << n << " x " << k << ": error " << error << " units, allowed " << k << '\n';

  std::vector<float> y(m), square(m * m), product(m * m), stored_by_columns(k * m);
  fastlinalg::sgemv(m, k, a.data(), k, b.data(), y.data());
  fastlinalg::ssyrk(m, k, a.data(), k, square.data(), m);
  fastlinalg::transpose(m, k, a.data(), k, stored_by_columns.data(), m);
  // Flags, alpha, beta, and options by name.
  fastlinalg::options strict;
  strict.precision = fastlinalg::precision::strict;
  fastlinalg::sgemm(false, true, m, m, k, 2.0f, a.data(), k, a.data(), k, 0.0f, product.data(), m, strict);
  const double others = std::max(worst_error(a, b, y, m, 1, k), worst_error(a, stored_by_columns, square, m, m, k));
  return error <= double(k) && others <= double(k) && std::fabs(product[1] - 2 * square[1]) < 1e-3 ? 0 : 1;
}

// A product that is planned once, the best time of some executions.
void time_products() {
  const std::int64_t n = 1024;
  const std::vector<float> a = some_values(n * n, 0.7f), b = some_values(n * n, 0.3f);
  std::vector<float> c(n * n);
  auto plan = fastlinalg::plan::sgemm(n, n, n, a.data(), n, b.data(), n, c.data(), n);
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    plan.execute();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const std::string where = plan.device() < 0 ? std::to_string(fastlinalg::get_num_threads()) + " threads of the CPU"
                                              : "cuda:" + std::to_string(plan.device());
  std::cout << n << " cubed by " << plan.kernel() << " on " << where << ": " << 2e-9 * double(n * n * n) / best
            << " GFLOP/s\n";
}

// What the batched calls give is what the single ones do, and an answer says which kernel that is.
int transpose_batch() {
  const std::int64_t m = 37, n = 53, batch = 5;
  const std::vector<float> a = some_values(batch * m * n, 0.7f);
  std::vector<float> together(a.size()), one_by_one(a.size());
  fastlinalg::transpose_batched_strided(m, n, a.data(), n, m * n, together.data(), m, m * n, batch);
  for (std::int64_t i = 0; i < batch; ++i)
    fastlinalg::transpose(m, n, a.data() + i * m * n, n, one_by_one.data() + i * m * n, m);
  const auto why = fastlinalg::explanation::of_sgemm(false, false, 1000, 2000, 500);
  std::cout << why.text << '\n';
  const bool known = fastlinalg::info().isa && !why.kernel.empty() && why.estimated_us > 0;
  return known && together == one_by_one && one_by_one[1] == a[n] ? 0 : 1;
}

int refuse() {
  float value = 1;
  try {
    fastlinalg::sgemm(false, false, 2, 2, 2, 1.0f, &value, 1, &value, 2, 0.0f, &value, 2);
  } catch (const std::invalid_argument& error) {
    std::cout << "as it should be: " << error.what() << '\n';
    return 0;
  }
  return 1;
}

}  // namespace

int main() try {
  std::cout << "fastlinalg " << fastlinalg::version() << ", " << fastlinalg::cuda_device_count() << " CUDA devices, "
            << fastlinalg::get_num_threads() << " threads\n";
  for (const fastlinalg::kernel& kernel : fastlinalg::kernels(FL_SGEMM))
    if (kernel.available) std::cout << "  sgemm " << kernel.name << ": " << kernel.blurb << '\n';
  time_products();
  return multiply() | transpose_batch() | refuse();
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
