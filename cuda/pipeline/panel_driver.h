// What the calling thread of a pipeline does on a device. It never blocks: it looks what has arrived, and queues what
// can follow. Of a call on several devices it drives each by turns.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cuda/launch/launch_kernel.h"
#include "cuda/pipeline/copy_queue.h"
#include "cuda/pipeline/copy_workers.h"
#include "cuda/pipeline/panel_copies.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/events.h"
#include "cuda/runtime/ring.h"
#include "cuda/runtime/streams.h"
#include "cuda/runtime/trace.h"
#include "plan/prepacked_operand.h"
#include "runtime/pause.h"

namespace fl::cuda {

struct PanelStreams {
  cudaStream_t in, compute, out;
  cudaStream_t pass_on = nullptr;  // to other devices of the call
};

// A launch, on operands in device memory.
template <class Args>
struct DeviceStep {
  Args args;
  const Kernel<Args>* kernel;
  std::size_t after_stores = 0;            // what it overwrites has left with the first so many stores
  PrepackedOperands prepacked = {};        // of its operands, that steps share
  std::vector<std::size_t> received = {};  // by device of the call: so many of its copies have been passed on, or more
  TransposeArgs mirror = {};               // of its result, where there is one
};

// What one device does of a call.
template <class Args>
struct DeviceWork {
  std::vector<DeviceStep<Args>> steps;
  PanelCopies copies;
  char* operands = nullptr;  // those that devices pass on lie at the same distances from here on all of them
  void* workspace = nullptr;
};

template <class Args>
class PanelDriver {
 public:
  PanelDriver(const DeviceWork<Args>& work, int device, HostCopies& host_copies, const CopyTurn& turn,
              const Ring& in_ring, const Ring& out_ring, const PanelStreams& streams)
      : work_(work),
        steps_(work.steps),
        copies_(work.copies),
        device_(device),
        host_copies_(host_copies),
        turn_(turn),
        in_ring_(in_ring),
        out_ring_(out_ring),
        streams_(streams),
        sent_events_{markers, std::size_t(in_ring.slots())},
        filled_events_{sent_events_.end(), std::size_t(out_ring.slots())},
        step_events_{filled_events_.end(), std::min(steps_.size(), most_step_events)},
        direct_in_events_{step_events_.end(), most_direct},
        direct_out_events_{direct_in_events_.end(), most_direct},
        pass_events_{direct_out_events_.end(), streams.pass_on ? std::min(copies_.loads.size(), most_pass_events) : 0},
        events_(device, pass_events_.end()),
        in_queue_(urgent_leases(device)),
        out_queue_(urgent_leases(device)) {}

  // ---- in this order, each with the device current; begin() for all devices of a call before any takes a turn.
  void begin(const std::vector<PanelDriver*>& devices) {
    devices_ = devices;
    if (devices_.size() == 1) trace_ = current_trace();
    awaited_.assign(devices_.size(), 0);
    host_copies_.allow_in(std::size_t(in_ring_.slots()));
    order_streams();
    ready_ = copies_.ready_steps;
  }
  bool take_turn() {  // whether there was anything to do
    const bool moved = launch() | send() | free_slots() | fetch() | hand_out();
    if (trace_) trace_steps();
    return moved;
  }
  bool finished() const {
    return sent_ == copies_.loads.size() && fetched_ == copies_.stores.size() && staged_out_ == emptied_;
  }
  // The first copy is the caller's while the workers wake; where there are few of them it is one itself. Callers that
  // ask without a pause after their events hold each other up in the driver.
  void wait_a_little() {
    const bool copies = sent_ == 0 || turn_.needs_caller();
    if ((copies && host_copies_.copy_some()) || !turn_.is_shared()) return;
    for (int i = 0; i < 50; ++i) pause();
  }
  void end() { FL_CUDA(cudaStreamSynchronize(streams_.out)); }

  bool has_stored() const { return fetched_ > 0; }  // the result may have been written in part
  int device() const { return device_; }

 private:
  // Steps share events if they are more. A wait for one may then wait for a later one too that was launched before.
  static constexpr std::size_t most_step_events = 256;
  static constexpr std::size_t most_pass_events = 64;  // the same of copies that are passed on
  // Copies from or to the caller's pinned memory that are queued at a time, each way.
  static constexpr std::size_t most_direct = 16;

  // Some of the events, used in turn.
  struct EventRing {
    std::size_t first, count;
    std::size_t end() const { return first + count; }
  };
  static constexpr std::size_t markers = 2;
  cudaEvent_t marker() const { return events_[0]; }
  cudaEvent_t stores_marker() const { return events_[1]; }
  cudaEvent_t event(const EventRing& ring, std::size_t use) const { return events_[ring.first + use % ring.count]; }
  cudaEvent_t slot_sent(std::size_t copy) const { return event(sent_events_, copy); }
  cudaEvent_t slot_filled(std::size_t copy) const { return event(filled_events_, copy); }
  cudaEvent_t step_done(std::size_t step) const { return event(step_events_, step); }
  cudaEvent_t passed(std::size_t copy) const { return event(pass_events_, copy); }
  static bool has_passed(cudaEvent_t event) {
    const cudaError_t error = cudaEventQuery(event);
    if (error != cudaSuccess && error != cudaErrorNotReady) fail(error, "cudaEventQuery", __FILE__, __LINE__);
    if (error == cudaErrorNotReady) static_cast<void>(cudaGetLastError());
    return error == cudaSuccess;
  }

  // The device memory comes from the pool in the order of the compute stream.
  void order_streams() {
    FL_CUDA(cudaEventRecord(marker(), streams_.compute));
    FL_CUDA(cudaStreamWaitEvent(streams_.in, marker(), 0));
    for (const PanelDriver* other : devices_)
      if (other != this && other->streams_.pass_on) FL_CUDA(cudaStreamWaitEvent(other->streams_.pass_on, marker(), 0));
  }

  void trace(const char* what, std::size_t index) {
    if (trace_) trace_->push_back({what, index, now_us()});
  }
  void trace_steps() {
    while (computed_ < queued_ && has_passed(step_done(computed_))) trace("computed", computed_++);
  }

  // ---- in
  bool send() {
    const std::size_t before = sent_;
    while (sent_ < copies_.loads.size() && has_place(copies_.loads[sent_]) && is_there(copies_.loads[sent_]) &&
           in_queue_.admits()) {
      trace("sent", sent_);
      send(copies_.loads[sent_++]);
    }
    return sent_ != before;
  }
  // Whether what it overwrites is behind something that has been queued.
  bool has_place(const LoadCopy& load) const { return load.after_steps <= queued_ && load.after_stores <= fetched_; }
  // In a slot, or pinned.
  bool is_there(const LoadCopy& load) const {
    return load.direct ? direct_in_ < arrived_direct_ + most_direct : host_copies_.in_done(staged_in_);
  }
  void send(const LoadCopy& load) {
    if (load.after_steps > steps_before_in_) {
      FL_CUDA(cudaStreamWaitEvent(streams_.in, step_done(load.after_steps - 1), 0));
      steps_before_in_ = load.after_steps;
    }
    wait_for_stores(streams_.in, load.after_stores, stores_before_in_);
    const Lines<const float>& host = *load.host;
    const float* from = in_ring_[staged_in_];
    int64_t pitch = load.width;
    if (load.direct) {
      from = host.data + load.piece.first * host.line_stride + load.piece.from;
      pitch = host.line_stride;
    }
    const bool flat = pitch == host.ld && load.width == pitch;
    copy(load.device, host.ld, from, pitch, load.width, load.piece.lines, flat, cudaMemcpyHostToDevice, streams_.in);
    in_queue_.queued(sizeof(float) * std::size_t(load.width * load.piece.lines));
    const cudaEvent_t arrived = load.direct ? event(direct_in_events_, direct_in_++) : slot_sent(staged_in_++);
    FL_CUDA(cudaEventRecord(arrived, streams_.in));
    if (load.passed_on && !load.passed_on->empty()) pass_on(load, arrived);
    if (load.steps <= ready_) return;
    FL_CUDA(cudaStreamWaitEvent(streams_.compute, arrived, 0));
    ready_ = load.steps;
    launch();
  }
  void pass_on(const LoadCopy& load, cudaEvent_t arrived) {
    FL_CUDA(cudaStreamWaitEvent(streams_.pass_on, arrived, 0));
    const int64_t ld = load.host->ld;
    const auto distance = reinterpret_cast<char*>(load.device) - work_.operands;
    for (const int device : *load.passed_on) {
      float* const to = reinterpret_cast<float*>(devices_[std::size_t(device)]->work_.operands + distance);
      copy(to, ld, load.device, ld, load.width, load.piece.lines, load.width == ld, cudaMemcpyDeviceToDevice,
           streams_.pass_on);
    }
    FL_CUDA(cudaEventRecord(passed(sent_ - 1), streams_.pass_on));
  }
  bool free_slots() {
    const std::size_t before = freed_, direct = arrived_direct_;
    while (freed_ < staged_in_ && has_passed(slot_sent(freed_))) trace("arrived", freed_++);
    while (arrived_direct_ < direct_in_ && has_passed(event(direct_in_events_, arrived_direct_))) ++arrived_direct_;
    if (freed_ == staged_in_ && arrived_direct_ == direct_in_) in_queue_.ran_dry();
    if (freed_ != before) host_copies_.allow_in(freed_ + std::size_t(in_ring_.slots()));
    return freed_ != before || arrived_direct_ != direct;
  }

  // ---- products
  bool launch() {
    const std::size_t before = queued_;
    for (; queued_ < ready_ && steps_[queued_].after_stores <= fetched_ && received(steps_[queued_]); ++queued_) {
      const DeviceStep<Args>& step = steps_[queued_];
      wait_for_stores(streams_.compute, step.after_stores, stores_before_compute_);
      wait_for_others(step);
      launch_kernel(*step.kernel, step.args, device_, work_.workspace, streams_.compute, &step.prepacked);
      if (step.mirror.a.data)
        launch_kernel(find<TransposeArgs>("tiled"), step.mirror, device_, nullptr, streams_.compute);
      FL_CUDA(cudaEventRecord(step_done(queued_), streams_.compute));
      trace("queued", queued_);
    }
    return queued_ != before;
  }
  bool received(const DeviceStep<Args>& step) const {
    for (std::size_t i = 0; i < step.received.size(); ++i)
      if (devices_[i]->sent_ < step.received[i]) return false;
    return true;
  }
  void wait_for_others(const DeviceStep<Args>& step) {
    for (std::size_t i = 0; i < step.received.size(); ++i) {
      if (step.received[i] <= awaited_[i]) continue;
      FL_CUDA(cudaStreamWaitEvent(streams_.compute, devices_[i]->passed(step.received[i] - 1), 0));
      awaited_[i] = step.received[i];
    }
  }
  // Waits for all stores so far, which are never many more than the first `stores`.
  void wait_for_stores(cudaStream_t stream, std::size_t stores, std::size_t& awaited) {
    if (stores <= awaited) return;
    FL_CUDA(cudaEventRecord(stores_marker(), streams_.out));
    FL_CUDA(cudaStreamWaitEvent(stream, stores_marker(), 0));
    awaited = fetched_;
  }

  // ---- out
  bool fetch() {
    const std::size_t before = fetched_;
    while (fetched_ < copies_.stores.size() && copies_.stores[fetched_].step < queued_ &&
           has_room(copies_.stores[fetched_]) && out_queue_.admits())
      fetch(copies_.stores[fetched_++]);
    return fetched_ != before;
  }
  bool has_room(const StoreCopy& store) const {
    return store.direct ? direct_out_ < stored_direct_ + most_direct
                        : staged_out_ < emptied_ + std::size_t(out_ring_.slots());
  }
  void fetch(const StoreCopy& store) {
    if (store.step >= awaited_steps_) {
      FL_CUDA(cudaStreamWaitEvent(streams_.out, step_done(store.step), 0));
      awaited_steps_ = store.step + 1;
      trace("awaited", store.step);
    }
    trace("fetched", fetched_ - 1);
    const Lines<float>& host = *store.host;
    float* to = out_ring_[staged_out_];
    int64_t pitch = store.pitch;
    if (store.direct) {
      to = host.data + store.piece.first * host.line_stride + store.piece.from;
      pitch = host.line_stride;
    }
    const bool flat = pitch == host.ld && (!store.direct || store.piece.length == pitch);
    copy(to, pitch, store.device, host.ld, store.piece.length, store.piece.lines, flat, cudaMemcpyDeviceToHost,
         streams_.out);
    out_queue_.queued(sizeof(float) * std::size_t(store.piece.length * store.piece.lines));
    const cudaEvent_t left = store.direct ? event(direct_out_events_, direct_out_++) : slot_filled(staged_out_++);
    FL_CUDA(cudaEventRecord(left, streams_.out));
  }
  bool hand_out() {
    const std::size_t before = filled_ + emptied_ + stored_direct_;
    while (filled_ < staged_out_ && has_passed(slot_filled(filled_))) {
      trace("filled", filled_);
      host_copies_.allow_out(++filled_);
    }
    while (stored_direct_ < direct_out_ && has_passed(event(direct_out_events_, stored_direct_))) ++stored_direct_;
    if (filled_ == staged_out_ && stored_direct_ == direct_out_) out_queue_.ran_dry();
    while (emptied_ < filled_ && host_copies_.out_done(emptied_)) trace("emptied", emptied_++);
    return filled_ + emptied_ + stored_direct_ != before;
  }

  // A flat copy takes what lies between the lines along. In a slot that is padding; in the caller's memory it would be
  // somebody else's, so there a copy is flat only if nothing lies between them.
  static void copy(float* to, int64_t to_pitch, const float* from, int64_t from_pitch, int64_t width, int64_t lines,
                   bool flat, cudaMemcpyKind kind, cudaStream_t stream) {
    constexpr auto bytes = [](int64_t floats) { return std::size_t(floats) * sizeof(float); };
    if (flat || lines == 1) FL_CUDA(cudaMemcpyAsync(to, from, bytes((lines - 1) * to_pitch + width), kind, stream));
    else
      FL_CUDA(cudaMemcpy2DAsync(to, bytes(to_pitch), from, bytes(from_pitch), bytes(width), std::size_t(lines), kind,
                                stream));
  }

  const DeviceWork<Args>& work_;
  const std::vector<DeviceStep<Args>>& steps_;
  const PanelCopies& copies_;
  int device_;
  HostCopies& host_copies_;
  const CopyTurn& turn_;
  const Ring &in_ring_, &out_ring_;
  PanelStreams streams_;
  EventRing sent_events_, filled_events_, step_events_, direct_in_events_, direct_out_events_, pass_events_;
  Events events_;
  CopyQueue in_queue_, out_queue_;
  std::size_t sent_ = 0, staged_in_ = 0, freed_ = 0;  // loads; those of them through the ring; their slots free again
  std::size_t direct_in_ = 0, arrived_direct_ = 0;    // loads from pinned memory; those that have arrived
  std::size_t direct_out_ = 0, stored_direct_ = 0;    // stores to pinned memory; those that have
  std::size_t ready_ = 0, queued_ = 0;                // steps whose loads have been sent; steps launched
  std::size_t awaited_steps_ = 0, steps_before_in_ = 0;           // steps that the out and the in stream wait for
  std::size_t stores_before_in_ = 0, stores_before_compute_ = 0;  // stores that these streams wait for
  std::vector<PanelDriver*> devices_;
  std::vector<std::size_t> awaited_;  // by device: so many of its copies the compute stream waits for
  std::vector<TraceEvent>* trace_ = nullptr;
  std::size_t computed_ = 0;                                             // steps that the trace says are done
  std::size_t fetched_ = 0, staged_out_ = 0, filled_ = 0, emptied_ = 0;  // stores, in the order of what happens to them
};

}  // namespace fl::cuda
