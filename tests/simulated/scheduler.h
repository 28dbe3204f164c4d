// A simulated CUDA device, for tests of the host layer (cuda/launch, pipeline, runtime) on machines without a GPU. The
// host layer is linked with these files in place of the CUDA runtime; CPU kernels answer all GPU rows of
// cpp/table/kernels.def.
//
// Simulated: streams, events, captures and graphs; pools, pinned and pageable memory, each as weakly ordered as CUDA
// allows; running out of memory. Work is cut into pieces that run one at a time, in a random order of those that
// streams and events allow, so that a wait that is missing shows as poison in the result or ends the process with a
// message. Everything that the host layer says to the device passes through here; other entry points do not link.
// Of several devices each has its streams, events, pool and memory, and what uses those of another ends the process or
// is refused, but for copies between devices that have been told to give each other access.
// Not simulated: speed, the kernels, contexts of other libraries, the implicit order of the legacy default stream, what
// a device does after an error.
//
// FASTLINALG_SIMULATED_SEED chooses the order, FASTLINALG_SIMULATED_MEMORY the bytes of the device (1 GiB),
// FASTLINALG_SIMULATED_CC its compute capability (90), FASTLINALG_SIMULATED_NAME its name. FASTLINALG_SIMULATED_CODE is
// what the driver has loaded of the library's code: "90a", "90", "80" and so on, or "none"; by default what a driver
// would take of 90a-real;80-virtual. FASTLINALG_SIMULATED_DEVICES is the number of devices (1);
// FASTLINALG_SIMULATED_SMS their multiprocessors, one number for all or one for each with commas between;
// FASTLINALG_SIMULATED_PEERS=0 keeps them from each other's memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace simulated {

using Work = std::function<void()>;

struct Graph {
  std::vector<Work> pieces;  // in the order of their capture, which is one that is allowed
};

struct Stream {
  int device = 0;
  struct Piece {
    Work work;
    const Stream* after = nullptr;  // runs once `after` has done so many pieces
    uint64_t pieces = 0;
  };
  std::deque<Piece> queue;
  uint64_t queued = 0, done = 0;
  unsigned weight = 1;       // how often it is chosen; those of weight 0 only when no other can run
  Graph* capture = nullptr;  // what its work goes into at present
  bool destroyed = false;    // by its owner; what is queued still runs
};

std::string loaded_code();  // as FASTLINALG_SIMULATED_CODE
int device_count();
int current_device();  // of this thread
bool context_made();   // somebody has asked for more than the properties of the device

extern int graph_launches, group_launches;
extern long lines_prepacked;                       // of operands that steps share
extern long direct_copies;                         // from and to memory that a caller has pinned
extern long copies_without_access;                 // between devices, which go through host memory
extern long live_events, live_graphs, live_pools;  // that are there
extern int running_device;                         // whose piece of work runs
extern std::recursive_mutex mutex;                 // guards everything; held while pieces run
// While a thread has one, what it asks the system for is the device's own and does not fail.
extern thread_local constinit int locks;
class Lock {
 public:
  explicit Lock(std::recursive_mutex& all) : guard_(all) { ++locks; }
  ~Lock() { --locks; }

 private:
  const std::lock_guard<std::recursive_mutex> guard_;
};

Stream& stream_of(cudaStream_t handle);
Stream* new_stream();  // of the current device

void enqueue(Stream& stream, Work work);
void enqueue_wait(Stream& stream, const Stream& after, uint64_t pieces);
bool run_some_piece();  // any that can run; false if there is none
void run_until(const Stream& stream, uint64_t pieces);
void run_everything();
uint32_t random_below(uint32_t bound);

cudaError_t status(cudaError_t error);  // also what cudaGetLastError says next
// Of the calls of the host layer from now on those from the first to the last fail, or none; with `no_host_memory`, of
// what this thread asks the system for (failing_calls.h).
constexpr cudaError_t no_host_memory = cudaErrorUnknown;
void fail_calls(long first, long last, cudaError_t with);
const char* failed_call();  // the first of them, and where it is made
long allocated_bytes();
long pinned_blocks();
long open_streams();
long captures();  // streams that take part in one
cudaStreamCaptureMode capture_mode();
[[noreturn]] void wrong(const std::string& what);

}  // namespace simulated
