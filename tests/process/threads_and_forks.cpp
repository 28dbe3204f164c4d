// The C interface from several threads at once, with plans that they share, settings that change and children that are
// forked meanwhile: for sanitizers (tools/sanitize), which see what no result shows. Whole numbers, so that results do
// not depend on the kernel. Arguments: rounds of each thread, and children. Prints what is wrong, or "all right".
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "fastlinalg/fastlinalg.h"

namespace {

using Matrix = std::vector<float>;
constexpr int callers = 3;

void require(bool right, const char* what) {
  if (right) return;
  std::printf("%s: %s\n", what, fl_last_error());
  std::fflush(stdout);
  std::_Exit(1);
}
bool all_are(const Matrix& x, float value) {
  for (const float element : x)
    if (element != value) return false;
  return true;
}

void calls(int64_t m, int64_t n, int64_t k) {
  const Matrix a(size_t(m * k), 1), b(size_t(k * n), 2), x(size_t(k), 3);
  Matrix c(size_t(m * n), 1), y(size_t(m), 0), t(size_t(m * k), 0);
  require(!fl_sgemm(0, 0, m, n, k, 1, a.data(), k, b.data(), n, 2, c.data(), n, nullptr), "sgemm");
  require(all_are(c, float(2 * k + 2)), "a product");
  require(!fl_sgemv(0, m, k, 1, a.data(), k, x.data(), 1, 0, y.data(), 1, nullptr), "sgemv");
  require(all_are(y, float(3 * k)), "a matrix-vector product");
  require(!fl_transpose(m, k, a.data(), k, t.data(), m, nullptr), "transpose");
  require(all_are(t, 1), "a transpose");
  Matrix square(size_t(m * m), 0);
  require(!fl_ssyrk(FL_WHOLE, 0, m, k, 1, a.data(), k, 0, square.data(), m, nullptr), "ssyrk");
  require(all_are(square, float(k)), "a product with the transpose");
}

// Their results have another size each time, so that nothing is remembered for long.
void work(int caller, int rounds, fl_plan* shared) {
  for (int i = 0; i < rounds; ++i) {
    calls(1 + (37 * i + 11 * caller) % 150, 1 + 29 * i % 140, 1 + (53 * i + caller) % 130);
    require(!fl_plan_execute(shared, nullptr), "a plan of several threads");
    fl_explanation why = FL_EXPLANATION_INIT;
    require(
        !fl_explain_sgemm(&why, 0, 0, 99 + i, 80, 70, 1, nullptr, 70, 0, nullptr, 80, 0, 0, nullptr, 80, 0, 1, nullptr),
        "an explanation");
  }
}

void fork_and_call(int child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    calls(70, 60 + child, 50);
    _exit(0);
  }
  int how = 0;
  require(pid > 0 && waitpid(pid, &how, 0) == pid, "fork");
  require(WIFEXITED(how) && WEXITSTATUS(how) == 0, "a child");
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 20, children = count > 2 ? std::atoi(arguments[2]) : rounds;
  alarm(600);
  constexpr int64_t n = 90;
  const Matrix a(n * n, 1);
  Matrix c(n * n);
  fl_plan* plan = nullptr;
  require(!fl_plan_sgemm(&plan, 0, 0, n, n, n, 1, a.data(), n, 0, a.data(), n, 0, 0, c.data(), n, 0, 1, FL_OPERAND_B,
                         nullptr),
          "making a plan");
  fl_set_log([](const char*, void* lines) { ++*static_cast<std::atomic<int>*>(lines); }, new std::atomic<int>(0));
  std::vector<std::thread> threads;
  std::atomic<int> at_work{callers};
  for (int caller = 0; caller < callers; ++caller)
    threads.emplace_back([&, caller] { work(caller, rounds, plan), --at_work; });
  for (int i = 0; at_work > 0; ++i) {
    fl_set_num_threads(1 + i % 4);
    if (i < children) fork_and_call(i);
    else std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  require(all_are(c, n), "the plan's result");
  fl_plan_free(plan);
  fl_trim(0);
  std::puts("all right");
}
