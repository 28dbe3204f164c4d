#include "scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace simulated {

int graph_launches = 0, group_launches = 0;
long lines_prepacked = 0;
long direct_copies = 0, copies_without_access = 0;
long live_events = 0, live_graphs = 0, live_pools = 0;
int running_device = 0;
std::recursive_mutex mutex;
thread_local constinit int locks = 0;

namespace {

std::mt19937& generator() {
  static std::mt19937 engine([] {
    const char* seed = std::getenv("FASTLINALG_SIMULATED_SEED");
    return seed ? unsigned(std::atol(seed)) : 1u;
  }());
  return engine;
}

// Never freed, as those of the host layer.
std::deque<Stream>& streams() {
  static auto* const all = new std::deque<Stream>(2);  // the legacy and the per-thread default stream
  return *all;
}

bool can_run(const Stream& stream) {
  if (stream.queue.empty()) return false;
  const Stream::Piece& next = stream.queue.front();
  return !next.after || next.after->done >= next.pieces;
}

// Streams that are starved for a while show a missing wait that a fair order would hide.
void draw_weights() {
  static uint32_t pieces_left = 0;
  if (pieces_left-- != 0) return;
  pieces_left = 8 + random_below(64);
  constexpr unsigned weights[] = {0, 0, 1, 8};
  for (Stream& stream : streams()) stream.weight = weights[random_below(4)];
}

}  // namespace

uint32_t random_below(uint32_t bound) { return uint32_t(generator()() % bound); }

Stream& stream_of(cudaStream_t handle) {
  const auto value = reinterpret_cast<uintptr_t>(handle);
  if (value <= 2) return streams()[value == 2];  // null and 1 are the legacy stream, 2 is that of the thread
  Stream& stream = *reinterpret_cast<Stream*>(handle);
  if (stream.destroyed) wrong("a stream is used that is gone");
  return stream;
}

Stream* new_stream() {
  Stream& stream = streams().emplace_back();
  stream.device = current_device();
  return &stream;
}

long open_streams() {
  return std::count_if(streams().begin(), streams().end(), [](const Stream& stream) { return !stream.destroyed; });
}

bool run_some_piece() {
  draw_weights();
  std::vector<Stream*> ready, starved;
  for (Stream& stream : streams())
    if (can_run(stream)) {
      ready.insert(ready.end(), stream.weight, &stream);
      starved.push_back(&stream);
    }
  if (ready.empty()) ready = starved;
  if (ready.empty()) return false;
  Stream& stream = *ready[random_below(uint32_t(ready.size()))];
  const Work work = std::move(stream.queue.front().work);
  running_device = stream.device;
  if (work) work();
  stream.queue.pop_front();
  ++stream.done;
  return true;
}

// The device works on while the host does something else: sometimes a little, now and then a lot.
void run_meanwhile() {
  constexpr uint32_t pieces[] = {0, 0, 0, 1, 1, 2, 3, 20};
  for (uint32_t left = pieces[random_below(8)]; left > 0 && run_some_piece(); --left) {
  }
}

void enqueue(Stream& stream, Work work) {
  if (stream.capture) return stream.capture->pieces.push_back(std::move(work));
  stream.queue.push_back({std::move(work)});
  ++stream.queued;
  run_meanwhile();
}

void enqueue_wait(Stream& stream, const Stream& after, uint64_t pieces) {
  stream.queue.push_back({nullptr, &after, pieces});
  ++stream.queued;
  run_meanwhile();
}

void run_until(const Stream& stream, uint64_t pieces) {
  while (stream.done < pieces)
    if (!run_some_piece()) wrong("a wait for something that never happens");
}

void run_everything() {
  while (run_some_piece()) {
  }
}

void wrong(const std::string& what) {
  std::fprintf(stderr, "simulated CUDA device: %s; calls that were made to fail: %s\n", what.c_str(), failed_call());
  std::abort();
}

}  // namespace simulated
