// Every GPU row of cpp/table/kernels.def, answered by a CPU kernel. What a GPU kernel may rely on is checked when it
// runs: that its operands are device memory, and that it has a workspace of its own, which is scribbled on before and
// after.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/launch_group.h"
#include "device/hardware.h"
#include "device/loaded_code.h"
#include "memory.h"
#include "operands.h"
#include "plan/prepacked_operand.h"
#include "scheduler.h"
#include "table/registry.h"

namespace {

using namespace fl;
using simulated::check_operands;

template <class Args>
const Kernel<Args>& row(std::string_view name, bool on_gpu) {
  for (const Kernel<Args>& kernel : kernels<Args>())
    if (kernel.name == name && on_cuda(kernel.needs) == on_gpu) return kernel;
  simulated::wrong("there is no row " + std::string(name));
}

// ---------------------------------------------------------------- results
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

void poison_result(const Matrix& x, int64_t rows, int64_t cols, int64_t batch) {
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) x.data[b * x.bs + i * x.rs + j * x.cs] = nan;
}

void poison_result(const SgemmArgs& p) {
  if (p.beta == 0) poison_result(p.c, p.m, p.n, p.batch);
}
void poison_result(const SgemvArgs& p) {
  if (p.beta == 0) poison_result({p.y.data, p.y.inc, 1, p.y.bs}, p.m, 1, p.batch);
}
void poison_result(const TransposeArgs& p) {
  if (!p.in_place) poison_result(p.b, p.n, p.m, p.batch);
}

// ---------------------------------------------------------------- the kernels that answer
const Kernel<SgemmArgs>& answering(const Kernel<SgemmArgs>& gpu, const SgemmArgs& p) {
  const bool small = double(p.m) * double(p.n) * double(p.k) < 1e4;
  if (small && !gpu.traits.only_reproducible) return row<SgemmArgs>("reference", false);
  if (available(Needs::avx2_fma)) return row<SgemmArgs>("avx2_6x16", false);
  return row<SgemmArgs>(gpu.traits.only_reproducible ? "portable_fused" : "portable", false);
}
template <class Args>
const Kernel<Args>& answering(const Kernel<Args>&, const Args&) {
  return row<Args>("reference", false);
}

// The tensor-core rows add from the last k down: other bits, as on a GPU, for some tests ask which row it was.
void set_order(const Kernel<SgemmArgs>& gpu, SgemmArgs& p) {
  if (gpu.traits.strict || p.k == 0) return;
  p.a.data += (p.k - 1) * p.a.cs, p.a.cs = -p.a.cs;
  p.b.data += (p.k - 1) * p.b.rs, p.b.rs = -p.b.rs;
}
template <class Args>
void set_order(const Kernel<Args>&, Args&) {}

// A prepacked operand is a copy of its lines here, one after the other. What is read of it is the copy: one
// that is out of date shows, and one that nobody has made is NaN.
void use_prepacked(const PrepackedOperand& prepacked, ConstMatrix& x, int64_t lines, int64_t k, bool by_rows,
                   int64_t problem) {
  if (!prepacked.memory) return;
  if (prepacked.first % PREPACKED_UNIT || prepacked.first + lines > prepacked.lines)
    simulated::wrong("a prepacked operand of other lines");
  char* const memory = prepacked.memory + std::size_t(problem) * prepacked.apart;
  const std::size_t end = std::size_t(problem) * prepacked.apart + std::size_t(prepacked.lines * k) * sizeof(float);
  if (end > prepacked.bytes) simulated::wrong("the memory for a prepacked operand is too small");
  simulated::check_device_access(prepacked.memory, prepacked.bytes, "a prepacked operand");
  float* const copy = reinterpret_cast<float*>(memory) + prepacked.first * k;
  const LineRange missing{prepacked.missing.begin, std::min(prepacked.missing.end, lines)};
  if (missing.begin % PREPACKED_UNIT || (missing.end % PREPACKED_UNIT && missing.end != lines))
    simulated::wrong("lines of a prepacked operand are to be made from or to the middle of a unit");
  if (!missing.empty() && (problem == 0 || prepacked.apart)) {
    for (int64_t i = missing.begin; i < missing.end; ++i)
      for (int64_t l = 0; l < k; ++l) copy[i * k + l] = x.data[by_rows ? i * x.rs + l * x.cs : i * x.cs + l * x.rs];
    simulated::lines_prepacked += missing.end - missing.begin;
  }
  x.data = copy;
  x.rs = by_rows ? k : 1, x.cs = by_rows ? 1 : k, x.bs = 0;
}

// What is in 16 bits as float32, which the reference kernels read.
using Widened = std::array<std::vector<float>, 2>;
void widen(ConstMatrix& x, Stored& stored, int64_t rows, int64_t cols, int64_t batch, std::vector<float>& memory) {
  if (!stored.converted()) return;
  memory.resize(std::size_t(rows * cols * batch));
  for (int64_t b = 0; b < batch; ++b)
    convert(stored, x.data + b * x.bs, x.rs, x.cs, memory.data() + b * rows * cols, cols, rows, cols);
  x = {memory.data(), cols, 1, rows * cols}, stored = {};
}
void widen(SgemmArgs& p, Widened& memory) {
  widen(p.a, p.stored[0], p.m, p.k, p.batch, memory[0]), widen(p.b, p.stored[1], p.k, p.n, p.batch, memory[1]);
}
void widen(SgemvArgs& p, Widened& memory) { widen(p.a, p.stored[0], p.m, p.n, p.batch, memory[0]); }
void widen(TransposeArgs& p, Widened& memory) { widen(p.a, p.stored[0], p.m, p.n, p.batch, memory[0]); }

template <class Args>
void answer(const Kernel<Args>& gpu, Args p) {
  Widened memory;
  widen(p, memory);
  set_order(gpu, p);
  const Kernel<Args>& cpu = answering(gpu, p);
  const std::size_t bytes = (cpu.workspace(p) + 4095) / 4096 * 4096;
  const std::unique_ptr<void, decltype(&std::free)> workspace(
      std::aligned_alloc(4096, std::max<std::size_t>(bytes, 4096)), &std::free);
  cpu.run(p, {.workspace = workspace.get(), .threads = 1});
}

// CPU kernels read what beta multiplies from C.
SgemmArgs with_addend_in_c(const Kernel<SgemmArgs>& gpu, SgemmArgs p) {
  if (!p.addend.data) return p;
  if (!gpu.traits.addend) simulated::wrong(std::string(gpu.name) + " is launched with an addend that it does not read");
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j)
        p.c.data[b * p.c.bs + i * p.c.rs + j * p.c.cs] =
            p.addend.data[b * p.addend.bs + i * p.addend.rs + j * p.addend.cs];
  p.addend = {};
  return p;
}

void answer(const Kernel<SgemmArgs>& gpu, const SgemmArgs& given, const PrepackedOperands& prepacked) {
  SgemmArgs p = with_addend_in_c(gpu, given);
  Widened memory;
  widen(p, memory);
  if (!prepacked.a.memory && !prepacked.b.memory) return answer(gpu, p);
  for (int64_t i = 0; i < p.batch; ++i) {
    SgemmArgs one = p;
    one.batch = 1;
    one.a.data += i * p.a.bs, one.b.data += i * p.b.bs, one.c.data += i * p.c.bs;
    use_prepacked(prepacked.a, one.a, p.m, p.k, true, i);
    use_prepacked(prepacked.b, one.b, p.n, p.k, false, i);
    answer(gpu, one);
  }
}
template <class Args>
void answer(const Kernel<Args>& gpu, const Args& p, const PrepackedOperands&) {
  answer(gpu, p);
}

// A list's, which are launched one by one in the end.
struct KeptCall {
  const Kernel<SgemmArgs>* kernel;
  SgemmArgs p;
};
void keep(const Kernel<SgemmArgs>& gpu, const SgemmArgs& p, LaunchGroup& group) {
  if (!gpu.traits.grouped || gpu.workspace(p) > 0)
    simulated::wrong(std::string(gpu.name) + " cannot be one of a group");
  const auto launch_each = [](std::span<const KeptLaunch* const> kept, const Context& ctx) {
    ++simulated::group_launches;
    for (const KeptLaunch* const one : kept) one->as<KeptCall>().kernel->run(one->as<KeptCall>().p, ctx);
  };
  group.keep(launch_each, KeptCall{&gpu, p});
}

template <class Args>
void launch(const char* name, const Args& p, const Context& context) {
  const Kernel<Args>& gpu = row<Args>(name, true);
  if constexpr (std::is_same_v<Args, SgemmArgs>)
    if (context.group) return keep(gpu, p, *context.group);
  if (const char* reason = gpu.legal(p))
    simulated::wrong(std::string(name) + " is launched on what it refuses: " + reason);
  const std::string code = simulated::loaded_code();
  if (!has_body(gpu.needs, {code == "none" ? 0 : std::atoi(code.c_str()), code == "90a"}))
    simulated::wrong(std::string(name) + " is launched, and the code that is loaded, " + code + ", lacks its body");
  if (!context.device->has(needs_row(gpu.needs).features))
    simulated::wrong(std::string(name) + " is launched on a device that lacks what it needs, or pretends to");
  void* const workspace = context.workspace;
  if (reinterpret_cast<uintptr_t>(workspace) % 256)
    simulated::wrong(std::string(name) + " is launched with a workspace that does not begin as an allocation does");
  const std::size_t bytes = gpu.workspace(p);
  const PrepackedOperands prepacked = context.prepacked ? *context.prepacked : PrepackedOperands{};
  const simulated::Lock lock(simulated::mutex);
  simulated::Stream& stream = simulated::stream_of(static_cast<cudaStream_t>(context.stream));
  if (stream.device != simulated::current_device())
    simulated::wrong(std::string(name) + " is launched on a stream of a device that is not current");
  simulated::enqueue(stream, [=] {
    check_operands(p);
    simulated::check_device_access(workspace, bytes, "the workspace of a kernel");
    if (bytes) std::memset(workspace, 0xAB, bytes);
    poison_result(p);
  });
  simulated::enqueue(stream, [=, &gpu] {
    check_operands(p);
    simulated::check_device_access(workspace, bytes, "the workspace of a kernel");
    if (!simulated::each_byte_is(0xAB, workspace, bytes))
      simulated::wrong("two kernels use the same workspace at the same time");
    answer(gpu, p, prepacked);
    if (bytes) std::memset(workspace, 0xCD, bytes);
  });
}

}  // namespace

namespace fl {
#define CUDA_KERNEL(op, Args, name, ...) \
  void op##_##name(const Args& p, const Context& context) { launch(#name, p, context); }
#include "table/kernels.def"

#ifdef __x86_64__  // the rows that need more than AVX2 are not compiled, and no call chooses them
const int fewer_instructions = setenv("FASTLINALG_CPU", "avx2", 0);
#define FL_ROW_baseline(...)
#define FL_ROW_avx2_fma(...)
#define FL_ROW_avx512f(function, Args) \
  void function(const Args&, const Context&) { simulated::wrong(#function " is not there"); }
#define FL_ROW_amx_bf16 FL_ROW_avx512f
#define KERNEL(op, Args, name, needs, ...) FL_ROW_##needs(op##_##name, Args)
#define CUDA_KERNEL(...)
#include "table/kernels.def"
int64_t peak_loop_avx512(int64_t) { return 0; }
#endif
}  // namespace fl
