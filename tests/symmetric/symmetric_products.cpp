// Products of matrices with their own transposes by the packed SGEMM, whose FMAs are counted: their bits are those of
// the general product, and half of the work is done. With other threads than the library's, as many as are asked for.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kernels/portable/simd.h"

#include "kernels/packed_sgemm.h"

namespace fl {

int num_threads() { return 1; }

// Every task has a thread of its own.
void run_tasks(int64_t tasks, int threads, void (*task)(void*, int64_t, int), void* arg) {
  if (threads == 1 || tasks > threads) {
    for (int64_t i = 0; i < tasks; ++i) task(arg, i, 0);
    return;
  }
  std::vector<std::thread> running;
  for (int64_t i = 0; i < tasks; ++i) running.emplace_back(task, arg, i, int(i));
  for (std::thread& each : running) each.join();
}

namespace {

thread_local int64_t counted_here = 0;
std::atomic<int64_t> counted = 0;
struct Count {
  ~Count() { counted += counted_here; }
};

// Small blocks, so that small products have many.
constexpr CpuBlocking small_blocking{6, 8, 24, 256, 64};

struct Counting : Simd {
  static constexpr CpuBlocking blocking = small_blocking;
  static void fma(V& acc, V x, V y) {
    thread_local Count at_the_end;
    static_cast<void>(at_the_end);
    ++counted_here;
    Simd::fma(acc, x, y);
  }
};

struct Answer {
  std::vector<float> c;
  int64_t fmas;
};

Answer compute(const std::vector<float>& a, int64_t n, int64_t k, int64_t batch, bool symmetric, int threads) {
  constexpr int64_t margin = 7;
  const int64_t ld = n + margin;
  Answer answer{std::vector<float>(size_t(n * ld * batch), -7.0f), 0};
  const SgemmArgs p{.m = n,
                    .n = n,
                    .k = k,
                    .batch = batch,
                    .a = {a.data(), k, 1, n * k},
                    .b = {a.data(), 1, k, n * k},
                    .c = {answer.c.data(), ld, 1, n * ld},
                    .addend = {},
                    .symmetric = symmetric};
  const auto floats = [&](const auto& cut) {
    const PackLayout layout = pack_layout(p, small_blocking, cut);
    return size_t(layout.counters + threads * layout.floats);
  };
  constexpr float canary = 12345.0f;
  const size_t of_triangle = floats(triangle_cut(p, small_blocking, threads));
  const size_t of_whole = floats(cut_for_threads(p, small_blocking, threads));
  const size_t room = symmetric ? of_triangle : of_whole;
  std::vector<float> workspace(of_triangle + of_whole + 64, canary);
  counted = 0;
  std::thread([&] { packed_sgemm<Counting>(p, {.workspace = workspace.data(), .threads = threads}); }).join();
  answer.fmas = counted;
  for (size_t i = room; i < workspace.size(); ++i) expect(workspace[i] == canary, "written beyond the workspace");
  for (int64_t i = 0; i < n * batch; ++i)
    for (int64_t j = n; j < ld; ++j) expect(answer.c[size_t(i * ld + j)] == -7.0f, "written beside C");
  return answer;
}

void test(int64_t n, int64_t k, int64_t batch, int threads) {
  std::vector<float> a(size_t(n * k * batch));
  uint32_t state = 1;
  for (float& x : a) x = float(int32_t(state = state * 1664525u + 1013904223u)) / 2147483648.0f;
  const Answer whole = compute(a, n, k, batch, false, threads), half = compute(a, n, k, batch, true, threads);
  const std::string call = std::to_string(n) + "x" + std::to_string(k) + ", batch " + std::to_string(batch) + ", " +
                           std::to_string(threads) + " threads: ";
  expect(std::memcmp(whole.c.data(), half.c.data(), whole.c.size() * sizeof(float)) == 0, call + "other bits");
  // A tile that crosses the diagonal has up to MR + NR columns beyond it, a panel that is not full up to NR.
  const double chains = k > 256 ? 1.0 + 1.0 / 100 : 1.0;  // C is updated by an FMA after each chain
  const double least = double(n) * double(n) / 2, most = double(n) * (double(n) / 2 + 6 + 8 + 8);
  const double computed = double(half.fmas) * Counting::W / double(k) / double(batch);
  expect(computed >= least && computed <= most * chains, call + std::to_string(computed) + " elements computed, not " +
                                                             std::to_string(least) + " to " + std::to_string(most));
  if (n >= 300) expect(half.fmas * 10 < whole.fmas * 6, call + "more than 0.6 of the general product's FMAs");
}

}  // namespace
}  // namespace fl

int main() {
  for (const int threads : {1, 2, 4})
    for (const auto& [n, k, batch] : {std::tuple<int64_t, int64_t, int64_t>{2, 5, 1},
                                      {7, 300, 1},
                                      {24, 30, 1},
                                      {25, 30, 1},
                                      {97, 100, 1},
                                      {130, 520, 1},
                                      {333, 40, 1},
                                      {50, 60, 3},
                                      {160, 30, 9}})
      fl::test(n, k, batch, threads);
  std::puts("all right");
}
