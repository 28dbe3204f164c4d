// The host's side of launches (launch.cuh): compiled once, for kernels of any type.
#include "cuda/kernels/common/launch.cuh"

#include <climits>

namespace fl {
namespace {

// ask(yes) returns an error, after which it is asked again; devices past the 64th are asked every time.
template <class Ask>
cudaError_t answer(DeviceAnswers& known, bool& yes, const Ask& ask) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  const uint64_t bit = device < 64 ? uint64_t{1} << device : 0;
  if (__atomic_load_n(&known.asked, __ATOMIC_ACQUIRE) & bit) {
    yes = __atomic_load_n(&known.yes, __ATOMIC_RELAXED) & bit;
    return cudaSuccess;
  }
  if (const cudaError_t error = ask(yes); error != cudaSuccess) return error;
  if (yes) __atomic_fetch_or(&known.yes, bit, __ATOMIC_RELAXED);
  __atomic_fetch_or(&known.asked, bit, __ATOMIC_RELEASE);
  return cudaSuccess;
}

cudaLaunchAttribute cluster_of(int blocks) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  return attribute;
}

cudaLaunchConfig_t config_of(const LaunchShape& shape, cudaLaunchAttribute* attributes, unsigned count) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.blocks);
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
  config.attrs = attributes;
  config.numAttrs = count;
  return config;
}

}  // namespace

cudaError_t prepare_kernel(const LaunchedKernel& kernel, bool& for_sm90, int most_shared_bytes) {
  return answer(kernel.for_sm90, for_sm90, [&](bool& yes) {
    cudaFuncAttributes code{};
    const cudaError_t error = cudaFuncGetAttributes(&code, kernel.function);
    yes = code.ptxVersion >= 90;
    if (error != cudaSuccess || most_shared_bytes == 0) return error;
    return cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared_bytes);
  });
}

bool has_clusters(const LaunchedKernel& kernel, const Context& ctx) {
  bool for_sm90 = false;
  return ctx.device->has(feature_clusters) && prepare_kernel(kernel, for_sm90, 0) == cudaSuccess && for_sm90;
}

bool copies_async(const void* kernel, const Context& ctx) {
  static constinit DeviceAnswers for_sm80;
  bool yes = false;
  return ctx.device->has(feature_cp_async) &&
         answer(for_sm80, yes,
                [&](bool& newer) {
                  cudaFuncAttributes code{};
                  const cudaError_t error = cudaFuncGetAttributes(&code, kernel);
                  newer = code.ptxVersion >= 80;
                  return error;
                }) == cudaSuccess &&
         yes;
}

int active_clusters(const LaunchedKernel& kernel, const LaunchShape& shape) {
  cudaLaunchAttribute cluster = cluster_of(shape.cluster);
  const cudaLaunchConfig_t config = config_of(shape, &cluster, 1);
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel.function, &config) == cudaSuccess) return clusters;
  static_cast<void>(cudaGetLastError());
  return 0;
}

bool large_clusters_fit(const LaunchedKernel& kernel, const LaunchShape& shape, DeviceAnswers& known) {
  bool fit = false;
  const cudaError_t error = answer(known, fit, [&](bool& fits) {
    fits = cudaFuncSetAttribute(kernel.function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
           active_clusters(kernel, shape) > 0;
    if (!fits) static_cast<void>(cudaGetLastError());
    return cudaSuccess;
  });
  return error == cudaSuccess && fit;
}

void launch_kernel(const LaunchedKernel& kernel, const LaunchShape& wanted, const Context& ctx, void** arguments) {
  LaunchShape shape = wanted;
  bool waits = false;
  const int limit = static_cast<int>(ctx.device->shared_per_block);
  const int most = shape.most_shared_bytes > 0 ? shape.most_shared_bytes : shape.shared_bytes;
  if (prepare_kernel(kernel, waits, most < limit ? most : limit) != cudaSuccess) return;
  // More than a block may have is an error of the runtime, on a device that only pretends to have no more too.
  if (shape.shared_bytes > limit) shape.shared_bytes = INT_MAX;
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (waits && ctx.device->has(feature_pdl)) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster > 1) attributes[count++] = cluster_of(shape.cluster);
  cudaLaunchConfig_t config = config_of(shape, attributes, count);
  config.stream = stream(ctx);
  static_cast<void>(cudaLaunchKernelExC(&config, kernel.function, arguments));
}

}  // namespace fl
