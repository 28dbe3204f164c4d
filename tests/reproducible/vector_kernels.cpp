// The kernels of reproducible_vector without a GPU: their own code, compiled for the host, whose threads go on by turns
// from one barrier to the next. Asynchronous copies arrive as late as they may, and until then there is NaN where they
// go. The bits are those of the order, and nothing beside C and the workspace is written.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "stand_ins.h"

namespace {

// What kernels may read and write. Copies and loads are asked; beside an array there are numbers that have to stay.
struct Array {
  static constexpr int BESIDE = 64;
  std::vector<float> memory;
  float* data;
  int64_t size;

  Array(int64_t floats, int offset, float (*value)()) : memory(floats + offset + 2 * BESIDE, 0x1.23p45f), size(floats) {
    const auto begin = reinterpret_cast<uintptr_t>(memory.data());
    data = memory.data() + BESIDE - begin % 16 / sizeof(float) + offset;
    for (int64_t i = 0; i < size; ++i) data[i] = value();
    all().push_back(this);
  }
  Array(const Array&) = delete;
  ~Array() {
    for (float* x = memory.data(); x < memory.data() + memory.size(); ++x)
      if ((x < data || x >= data + size) && *x != 0x1.23p45f) wrong("something beside an array was written");
    std::erase(all(), this);
  }
  static std::vector<Array*>& all() {
    static std::vector<Array*> arrays;
    return arrays;
  }
};
const void* readable(const void* from, int bytes) {
  const auto* const first = static_cast<const float*>(from);
  for (const Array* array : Array::all())
    if (first >= array->data && first + bytes / 4 <= array->data + array->size) return from;
  wrong("something beside the arrays was read");
}

struct Copy {
  unsigned char* to;
  const float* from;
  int size, bytes;
};
// What a thread has besides: the last group of copies is open.
struct {
  uint64_t exchanged;
  std::deque<std::vector<Copy>> groups;
} own[1024];

BlockOnHost& block = BlockOnHost::current();
bool reversed = false;

}  // namespace

float __ldg(const float* from) { return *static_cast<const float*>(readable(from, 4)); }
float __ldcg(const float* from) { return __ldg(from); }
float4 __ldcg(const float4* from) { return *static_cast<const float4*>(readable(from, 16)); }

uint64_t exchange(uint64_t mine, int lane) {
  own[block.at].exchanged = mine;
  __syncwarp();
  const uint64_t theirs = own[block.at / 32 * 32 + lane].exchanged;
  __syncwarp();
  return theirs;
}

namespace fl {

void run_kernel(unsigned blocks, int threads, int shared_bytes, const std::function<void()>& kernel) {
  if (shared_bytes > SHARED_BYTES) wrong("a block asks for more shared memory than it says at most");
  gridDim.x = blocks;
  for (unsigned i = 0; i < blocks; ++i) {
    std::memset(shared_memory, 0xff, SHARED_BYTES);
    blockIdx.x = i;
    const auto of_a_thread = [&] {
      own[block.at].groups.assign(1, {});
      kernel();
      for (const auto& group : own[block.at].groups) expect(group.empty(), "a thread ends before its copies");
    };
    block.run(threads, of_a_thread, reversed);
  }
}

// ---------------------------------------------------------------- shared memory
namespace ptx {
namespace {
unsigned char* shared(uint32_t at, int size) {
  if (at % size != 0 || at + size > uint32_t{SHARED_BYTES}) wrong("an address in shared memory is not there");
  return shared_memory + at;
}
void copy(uint32_t to, const float* from, int size, int bytes) {
  if (bytes <= 0 || bytes > size || reinterpret_cast<uintptr_t>(from) % size != 0) wrong("a copy that may not be");
  readable(from, bytes);
  std::memset(shared(to, size), 0xff, size);
  own[block.at].groups.back().push_back({shared(to, size), from, size, bytes});
}
}  // namespace

uint32_t shared_address(const void*) { return 0; }
float load1(uint32_t from) {
  float x;
  std::memcpy(&x, shared(from, 4), 4);
  return x;
}
float4 load4(uint32_t from) {
  float4 x;
  std::memcpy(&x, shared(from, 16), 16);
  return x;
}
void copy_async4(uint32_t to, const float* from) { copy(to, from, 4, 4); }
void copy_async16_filled(uint32_t to, const float* from, int bytes) { copy(to, from, 16, bytes); }
void commit_copies() { own[block.at].groups.emplace_back(); }
void wait_for_all_but(int latest) {
  auto& groups = own[block.at].groups;
  for (; static_cast<int>(groups.size()) > latest + 1; groups.pop_front())
    for (const Copy& each : groups.front()) {
      std::memset(each.to, 0, each.size);
      std::memcpy(each.to, each.from, each.bytes);
    }
}
}  // namespace ptx
}  // namespace fl

#include "cuda/kernels/sgemm_reproducible/sgemm_reproducible_vector.cu"

// ---------------------------------------------------------------- calls
namespace fl {
namespace {

std::mt19937 draws(1);
int below(int n) { return static_cast<int>(draws() % static_cast<unsigned>(n)); }

float number() {
  const int kind = below(40);
  if (kind == 0) return -0.0f;
  if (kind == 1) return 0.0f;
  return std::ldexp(static_cast<float>(below(1 << 24) - (1 << 23)), below(8) - 27);
}
float special() {
  const int kind = below(3000);
  return kind == 0 ? INFINITY : kind == 1 ? NAN : kind == 2 ? -INFINITY : number();
}

bool same(float x, float y) {
  return (std::isnan(x) && std::isnan(y)) || std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
}

float in_order(const SgemmArgs& p, const float* a, const float* b, float old) {
  if (p.k == 0) return p.beta == 0 ? 0.0f : p.beta * old;
  float result = p.beta * old;
  for (int64_t first = 0; first < p.k; first += 256) {
    float sum = 0;
    for (int64_t k = first; k < p.k && k < first + 256; ++k) sum = std::fma(a[k * p.a.cs], b[k * p.b.rs], sum);
    result = first == 0 && p.beta == 0 ? p.alpha * sum : std::fma(p.alpha, sum, result);
  }
  return result;
}

struct Layout {
  bool a_by_columns, b_by_columns;
  int pad, offset;
};

struct Product {
  int64_t m, n, k, batch;
  float alpha, beta;
};

void check(const Product& of, const Layout& layout, const DeviceSpec& device, float (*value)()) {
  SgemmArgs p{.m = of.m, .n = of.n, .k = of.k, .batch = of.batch, .alpha = of.alpha, .beta = of.beta};
  p.precision = Precision::reproducible;
  const auto place = [&](auto& x, int64_t rows, int64_t cols, bool by_columns) {
    const int64_t ld = (by_columns ? rows : cols) + layout.pad, lines = by_columns ? cols : rows;
    x.rs = by_columns ? 1 : ld, x.cs = by_columns ? ld : 1, x.bs = of.batch > 1 ? ld * lines : 0;
    return std::max<int64_t>(ld * lines * of.batch - layout.pad, 0);  // nothing behind the last element
  };
  Array a(place(p.a, p.m, p.k, layout.a_by_columns), layout.offset, value);
  Array b(place(p.b, p.k, p.n, layout.b_by_columns), layout.offset, value);
  Array c(place(p.c, p.m, p.n, false), layout.offset, value);
  p.a.data = a.data, p.b.data = b.data, p.c.data = c.data;
  if (p.n == 1) p.b.cs = 1, p.b.rs = layout.b_by_columns ? 1 : p.b.rs;
  const std::vector<float> old(c.data, c.data + c.size);
  if (p.beta == 0)
    for (int64_t i = 0; i < c.size; ++i) c.data[i] = NAN;  // is not read
  const std::size_t needed = vector_workspace(p) / sizeof(float);
  Array workspace(static_cast<int64_t>(needed), 0, [] { return NAN; });
  Context ctx{.workspace = workspace.data, .sm_count = device.multiprocessors, .device = &device};
  std::vector<float> want(c.data, c.data + c.size);
  for (int64_t z = 0; z < p.batch; ++z)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        const int64_t at = z * p.c.bs + i * p.c.rs + j * p.c.cs;
        want[at] = in_order(p, a.data + z * p.a.bs + i * p.a.rs, b.data + z * p.b.bs + j * p.b.cs, old[at]);
      }
  if (p.beta != 0) std::copy(old.begin(), old.end(), c.data);
  sgemm_reproducible_vector(p, ctx);
  for (int64_t i = 0; i < c.size; ++i)
    if (!same(c.data[i], want[i])) {
      std::printf(
          "%lld x %lld x %lld, batch %lld, alpha %g, beta %g, columns %d %d, pad %d, offset %d: %a at %lld, %a "
          "by the order\n",
          static_cast<long long>(p.m), static_cast<long long>(p.n), static_cast<long long>(p.k),
          static_cast<long long>(p.batch), p.alpha, p.beta, layout.a_by_columns, layout.b_by_columns, layout.pad,
          layout.offset, c.data[i], static_cast<long long>(i), want[i]);
      std::exit(1);
    }
}

DeviceSpec device_of(int capability_number, int multiprocessors) {
  const Capability& known = capability(capability_number);
  DeviceSpec device;
  device.features = known.features, device.multiprocessors = multiprocessors;
  device.shared_per_sm = known.shared_per_sm, device.shared_per_block = known.shared_per_block;
  return device;
}

// All combinations, or those of which each number has something of its own.
void check_all(bool all) {
  const DeviceSpec devices[] = {device_of(90, 132), device_of(90, 3), device_of(86, 2), device_of(75, 4)};
  using Numbers = std::vector<int64_t>;
  const Numbers ks = all ? Numbers{1, 31, 32, 255, 256, 257, 288, 513, 800, 5000} : Numbers{1, 31, 256, 257, 288, 5000},
                outputs = all ? Numbers{1, 2, 3, 7, 8, 12, 31, 32, 33, 100} : Numbers{1, 3, 8, 31, 33};
  const float scalars[][2] = {{1, 0}, {0.3f, -0.7f}, {1, 1}, {-1, 0}};
  for (const DeviceSpec& device : devices) {
    for (const float beta : {0.0f, 1.0f, -0.7f}) {
      check({1, 5, 0, 2, 0, beta}, {}, device, number);        // an empty sum
      check({1, 1, 300, 50, 1, beta}, {}, device, number);     // one output of many problems
      check({5, 4, 300, 2, 0.3f, beta}, {}, device, special);  // several columns
    }
    for (int64_t k = 290; k < 294; ++k)  // sums of -0
      check({1, 9, k, 3, 1, 0}, {}, device, [] { return below(2) == 0 ? 1e-30f : -1e-30f; });
    check({1, 40, 7000, 1, 1, 0}, {false, true, 3, 1}, device, number);
    check({1, 40, 7000, 1, 1, 0}, {}, device, number);
    check({1, 33, 700, 2, 1, 0.5f}, {false, false, 3, 0}, device, number);
    check({33, 1, 700, 2, 1, 0.5f}, {false, false, 3, 0}, device, number);
    check({1, 100, 300, 11, 1, 1}, {}, device, number);     // more problems than there is room for at a time
    check({40, 1, 20000, 1, 0.3f, 1}, {}, device, number);  // more slabs than there is room for at a time
  }
  for (const int64_t r : outputs)
    for (const int64_t k : ks)
      for (const bool column : {false, true}) {
        if (r * k > 60'000) continue;
        const auto& [alpha, beta] = scalars[below(4)];
        const int64_t batch = below(3) == 0 ? 1 + below(5) : 1;
        const Layout layout{below(2) == 0, below(2) == 0, below(4), below(2)};
        for (const Layout& each : {layout, Layout{column, !column, 0, 0}, Layout{!column, column, 3, 0}})
          check({column ? r : 1, column ? 1 : r, k, batch, alpha, beta}, each, devices[below(4)],
                below(4) == 0 ? special : number);
        reversed = !reversed;
      }
}

}  // namespace
}  // namespace fl

int main(int count, char**) {
  fl::check_all(count > 1);
  std::puts("all right");
}
