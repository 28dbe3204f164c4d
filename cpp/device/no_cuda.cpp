// The CUDA side of a build without CUDA: there are no devices, and asking for one says why.
#include "core/errors.h"
#include "core/lazy.h"
#include "core/operations.h"
#include "device/device_info.h"
#include "device/device_memory.h"
#include "device/host_calls.h"
#include "device/launches.h"
#include "device/streams.h"
#include "device/timing.h"

namespace fl::cuda {
namespace {
[[noreturn]] void refuse() { throw CudaError(unavailable().code, unavailable().name, unavailable().message); }
}  // namespace

int device_count() { return 0; }
const Unavailable& unavailable() {
  static constinit Lazy<Unavailable> reason;
  return reason.get([] {
    return Unavailable{100, "cudaErrorNoDevice", "this build of fastlinalg has no CUDA kernels (FASTLINALG_CUDA=OFF)"};
  });
}
const DeviceInfo& device_info(int) { refuse(); }
int driver_version() { return 0; }
int runtime_version() { return 0; }
const char* built_architectures() { return ""; }
LoadedCode known_code(int) { refuse(); }
void load_code(int) { refuse(); }
void require_device(int) { refuse(); }
MemoryInfo memory_info(int) { refuse(); }
void trim(int) { refuse(); }
void set_memory_limit(int, std::size_t) { refuse(); }
template <class Args>
Args device_layout(const Args&) {
  refuse();
}
template <class Args>
void run_on_host_operands(const PanelPlan<Args>&, const Args&, const Args&, std::span<const int>, void*, const Log*) {
  refuse();
}
HostLink host_link(int, int) { refuse(); }
template <class Args>
void run_on_device_operands(const Kernel<Args>&, const Args&, int, void*, StatusWords*) {
  refuse();
}
void run_on_device_operands(std::vector<AnyLaunch>, int, void*) { refuse(); }
struct CapturedGroup::State {};
CapturedGroup::CapturedGroup(std::vector<AnyLaunch>, int) { refuse(); }
CapturedGroup::~CapturedGroup() = default;
void CapturedGroup::run(void*) { refuse(); }
std::size_t CapturedGroup::workspace_bytes() const { return 0; }
template <class Args>
std::optional<Args> packed_layout(const Args&) {
  refuse();
}
template <class Args>
void run_on_packed_operands(const Kernel<Args>&, const Args&, const Args&, int, void*, StatusWords*) {
  refuse();
}
void copy_triangle(const TriangleCopy&, int, void*) { refuse(); }
struct CapturedRun::State {};
CapturedRun::CapturedRun(std::size_t, const PrepackedOperands&, int) { refuse(); }
CapturedRun::~CapturedRun() = default;
template <class Args>
void CapturedRun::run(const Kernel<Args>&, const Args&, void*) {
  refuse();
}
void CapturedRun::forget() {}
void CapturedRun::forget_prepacked() {}
struct ConstantSplit::State {};
ConstantSplit::ConstantSplit(const PrepackedOperand&, Side, int) { refuse(); }
ConstantSplit::~ConstantSplit() = default;
void ConstantSplit::run(const Kernel<SgemmArgs>&, const SgemmArgs&, void*) {}
void* own_stream(int) { refuse(); }
bool capturing(int, void*) { refuse(); }
bool order_after(int, void*, void*) { refuse(); }
void wait_for(int, void*) { refuse(); }
StreamEvent::StreamEvent(int, void*) { refuse(); }
StreamEvent::~StreamEvent() = default;
bool StreamEvent::passed() const { return true; }
std::shared_ptr<void> allocate(int, std::size_t, void*) { refuse(); }
void copy(int, void*, const void*, std::size_t) { refuse(); }
void order_across(const DeviceStream&, const DeviceStream&) { refuse(); }
void copy_across(const DeviceStream&, void*, const DeviceStream&, const void*, std::size_t) { refuse(); }
int device_of(const void*) { return -1; }
DeviceBuffer::DeviceBuffer(std::size_t, int) { refuse(); }
DeviceBuffer::~DeviceBuffer() = default;
void DeviceBuffer::upload(const void*, std::size_t, std::size_t) { refuse(); }
void DeviceBuffer::download(void*, std::size_t, std::size_t) const { refuse(); }
std::vector<double> time_in_graph(int, int, int, const std::function<void(void*)>&) { refuse(); }
LinkTimes time_link(int, std::size_t, std::size_t, int) { refuse(); }

#define FL_INSTANTIATE(Args)                                                                                        \
  template Args device_layout(const Args&);                                                                         \
  template void run_on_host_operands(const PanelPlan<Args>&, const Args&, const Args&, std::span<const int>, void*, \
                                     const Log*);                                                                   \
  template void run_on_device_operands(const Kernel<Args>&, const Args&, int, void*, StatusWords*);                 \
  template std::optional<Args> packed_layout(const Args&);                                                          \
  template void run_on_packed_operands(const Kernel<Args>&, const Args&, const Args&, int, void*, StatusWords*);    \
  template void CapturedRun::run(const Kernel<Args>&, const Args&, void*);
FL_FOR_EACH_OPERATION(FL_INSTANTIATE)
#undef FL_INSTANTIATE

}  // namespace fl::cuda
