// Two calls that differ in anything a rule of the kernel table may look at have different keys (dispatch/call_key.h).
#include "core/call_cache.h"

#include <cstdio>
#include <string>

#include "dispatch/call_key.h"

namespace {
unsigned generation = 1;
fl::LoadedCode loaded{90, true};
}  // namespace
unsigned fl::tuning_generation() { return generation; }
fl::LoadedCode fl::cuda::known_code(int) { return loaded; }

namespace {
using namespace fl;

// Changes the field with one number. A structured binding names all fields of a struct, or does not compile.
struct Change {
  int wanted;
  int count = 0;
  bool done = false;

  bool is_this() {
    const bool found = count++ == wanted;
    done = done || found;
    return found;
  }
  void change(int64_t& x) { x += is_this(); }
  void change(float& x) { x += float(is_this()); }
  void change(bool& x) { x ^= is_this(); }
  void change(Precision& x) {
    if (is_this()) x = x == Precision::strict ? Precision::accurate : Precision::strict;
  }
  void change(StoredInputs& x) {
    for (auto& [element, origin, overflowed] : x)
      if (is_this()) element = Element::float16;
  }
  template <class T>
  void change(T*& data) {
    data += is_this();
  }
  template <class T>
  void change(MatrixView<T>& x) {
    auto& [data, rs, cs, bs] = x;
    all(data, rs, cs, bs);
  }
  template <class T>
  void change(VectorView<T>& x) {
    auto& [data, inc, bs] = x;
    all(data, inc, bs);
  }
  void change(SgemmArgs& p) {
    auto& [m, n, k, batch, alpha, beta, a, b, c, addend, precision, symmetric, stored] = p;
    all(m, n, k, batch, alpha, beta, a, b, c, addend, precision, symmetric, stored);
  }
  void change(SgemvArgs& p) {
    auto& [m, n, batch, alpha, beta, a, x, y, stored] = p;
    all(m, n, batch, alpha, beta, a, x, y, stored);
  }
  void change(TransposeArgs& p) {
    auto& [m, n, batch, a, b, in_place, stored] = p;
    all(m, n, batch, a, b, in_place, stored);
  }
  template <class... Fields>
  void all(Fields&... fields) {
    (change(fields), ...);
  }
};

alignas(128) float memory[1024];

template <class Args>
void test_keys() {
  const std::string name = Operation<Args>::name;
  const Device cpu{Device::cpu, 0};
  Args call;
  if constexpr (requires { call.addend; }) {
    const CallKey<Args> without(call, cpu, 4);
    call.addend.data = memory;
    expect(without != CallKey<Args>(call, cpu, 4), name + ": whether there is an addend is overlooked");
  }
  for_each_operand(call, [](auto& view) { view.data = memory; });
  const CallKey<Args> key(call, cpu, 4);
  expect(key == CallKey<Args>(call, cpu, 4), name + ": a call is not like itself");

  int fields = 0;
  for (;; ++fields) {
    Args other = call;
    Change change{fields};
    change.change(other);
    if (!change.done) break;
    expect(key != CallKey<Args>(other, cpu, 4), name + ": field " + std::to_string(fields) + " is overlooked");
  }
  expect(fields > 10, name + ": there are more fields");

  Args moved = call;
  for_each_operand(moved, [](auto& view) { view.data += 32; });
  expect(key == CallKey<Args>(moved, cpu, 4), name + ": another line of 128 bytes is another call");

  const Kernel<Args> asked{};
  expect(key != CallKey<Args>(call, {Device::cuda, 0}, 4), name + ": the kind of device is overlooked");
  expect(key != CallKey<Args>(call, {Device::cpu, 1}, 4), name + ": the device is overlooked");
  expect(key != CallKey<Args>(call, cpu, 5), name + ": the number of threads is overlooked");
  expect(key != CallKey<Args>(call, cpu, 4, &asked), name + ": the kernel that is asked for is overlooked");
  const CallKey<Args> on_gpu(call, {Device::cuda, 0}, 4);
  loaded.features = !loaded.features;
  expect(on_gpu != CallKey<Args>(call, {Device::cuda, 0}, 4), name + ": the code on the device is overlooked");
  ++generation;
  expect(key != CallKey<Args>(call, cpu, 4), name + ": the tuning is overlooked");
}

struct Number {
  int value = 0;
  bool operator==(const Number&) const = default;
};

void test_cache() {
  CallCache<Number, int, 3> cache;
  expect(!cache.find({0}), "an empty cache has an answer");
  for (int i = 0; i < 5; ++i) expect(cache.keep({i}, 10 * i) == 10 * i, "what is kept is not returned");
  for (int i = 0; i < 5; ++i) {
    const int* const found = cache.find({i});
    expect(i < 2 ? !found : found && *found == 10 * i, "not the last three, but " + std::to_string(i));
  }
  cache.clear();
  expect(!cache.find({4}), "a cleared cache has an answer");
}

}  // namespace

int main() {
  for_each_operation([]<class Args>() { test_keys<Args>(); });
  test_cache();
  std::puts("all right");
}
