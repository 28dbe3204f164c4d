// What the calling thread of a pipeline does on a device. It never blocks: it looks what has arrived, and queues what
// can follow. Of a call on several devices it drives each by turns.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/halves.h"
#include "cuda/launch/launch_kernel.h"
#include "cuda/pipeline/copy_queue.h"
#include "cuda/pipeline/copy_workers.h"
#include "cuda/pipeline/panel_copies.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/events.h"
#include "cuda/runtime/ring.h"
#include "cuda/runtime/streams.h"
#include "device/device_info.h"
#include "plan/prepacked_operand.h"
#include "runtime/call_watch.h"
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
              const Ring& in_ring, const Ring& out_ring, const PanelStreams& streams, uint16_t* halves)
      : work_(work),
        steps_(work.steps),
        copies_(work.copies),
        device_(device),
        host_copies_(host_copies),
        turn_(turn),
        in_ring_(in_ring),
        out_ring_(out_ring),
        streams_(streams),
        halves_(halves),
        in_slots_(device, std::size_t(in_ring.slots())),
        out_slots_(device, std::size_t(out_ring.slots())),
        in_direct_(device, most_direct),
        out_direct_(device, most_direct),
        launched_(device, std::min(steps_.size(), most_step_events)),
        passed_(device, streams.pass_on ? std::min(copies_.loads.size(), most_pass_events) : 0),
        markers_(device, 2),
        in_queue_(urgent_leases(device)),
        out_queue_(urgent_leases(device)) {}

  // ---- in this order, each with the device current; begin() for all devices of a call before any takes a turn.
  void begin(const std::vector<PanelDriver*>& devices) {
    devices_ = devices;
    awaited_.assign(devices_.size(), 0);
    host_copies_.allow_in(std::size_t(in_ring_.slots()));
    order_streams();
    ready_ = copies_.ready_steps;
  }
  bool take_turn() {  // whether there was anything to do
    return launch() | send() | free_slots() | fetch() | hand_out();
  }
  bool finished() const {
    return sent_ == copies_.loads.size() && fetched_ == copies_.stores.size() && emptied_ == out_slots_.queued();
  }
  // The first copy is the caller's while the workers wake; where there are few of them it is one itself. Callers that
  // ask without a pause after their events hold each other up in the driver.
  void wait_a_little() {
    const bool copies = sent_ == 0 || turn_.needs_caller();
    if ((copies && host_copies_.copy_some()) || !turn_.is_shared()) return;
    for (int i = 0; i < 50; ++i) pause();
  }
  void end() { FL_CUDA(cudaStreamSynchronize(streams_.out)); }

  std::size_t launched() const { return launched_.queued(); }
  std::size_t steps() const { return steps_.size(); }
  bool has_stored() const { return fetched_ > 0; }  // the result may have been written in part
  int device() const { return device_; }

 private:
  // Steps share events if they are more. A wait for one may then wait for a later one too that was launched before.
  static constexpr std::size_t most_step_events = 256;
  static constexpr std::size_t most_pass_events = 64;  // the same of copies that are passed on
  // Copies from or to the caller's pinned memory that are queued at a time, each way.
  static constexpr std::size_t most_direct = 16;

  cudaEvent_t marker() const { return markers_[0]; }
  cudaEvent_t stores_marker() const { return markers_[1]; }

  // The device memory comes from the pool in the order of the compute stream.
  void order_streams() {
    FL_CUDA(cudaEventRecord(marker(), streams_.compute));
    FL_CUDA(cudaStreamWaitEvent(streams_.in, marker(), 0));
    for (const PanelDriver* other : devices_)
      if (other != this && other->streams_.pass_on) FL_CUDA(cudaStreamWaitEvent(other->streams_.pass_on, marker(), 0));
  }

  // ---- in
  bool send() {
    const std::size_t before = sent_;
    while (sent_ < copies_.loads.size() && has_place(copies_.loads[sent_]) && is_there(copies_.loads[sent_]) &&
           in_queue_.admits())
      send(copies_.loads[sent_++]);
    return sent_ != before;
  }
  // Whether what it overwrites is behind something that has been queued.
  bool has_place(const LoadCopy& load) const {
    return load.after_steps <= launched_.queued() && load.after_stores <= fetched_;
  }
  // In a slot, or pinned.
  bool is_there(const LoadCopy& load) const {
    return load.direct ? in_direct_.has_unused() : host_copies_.in_done(in_slots_.queued());
  }
  void send(const LoadCopy& load) {
    if (load.after_steps > steps_before_in_) {
      FL_CUDA(cudaStreamWaitEvent(streams_.in, launched_[load.after_steps - 1], 0));
      steps_before_in_ = load.after_steps;
    }
    wait_for_stores(streams_.in, load.after_stores, stores_before_in_);
    const Lines<const float>& host = *load.host;
    const float* from = in_ring_[in_slots_.queued()];
    int64_t pitch = load.width;
    if (load.direct) {
      from = host.data + load.piece.first * host.line_stride + load.piece.from;
      pitch = host.line_stride;
    }
    if (host.stored.in_16_bits()) {
      send_halves(load, from);
    } else {
      const bool flat = pitch == host.ld && load.width == pitch;
      copy(load.device, host.ld, from, pitch, load.width, load.piece.lines, flat, cudaMemcpyHostToDevice, streams_.in);
      in_queue_.queued(sizeof(float) * std::size_t(load.width * load.piece.lines));
    }
    const cudaEvent_t arrived = (load.direct ? in_direct_ : in_slots_).record(streams_.in);
    if (load.passed_on && !load.passed_on->empty()) pass_on(load, arrived);
    if (load.steps <= ready_) return;
    FL_CUDA(cudaStreamWaitEvent(streams_.compute, arrived, 0));
    ready_ = load.steps;
    launch();
  }
  // To memory beside the operands, from which they become float32 in their place: the next copy waits for that.
  void send_halves(const LoadCopy& load, const float* slot) {
    const std::size_t bytes = sizeof(uint16_t) * std::size_t(load.width * load.piece.lines);
    FL_CUDA(cudaMemcpyAsync(halves_, slot, bytes, cudaMemcpyHostToDevice, streams_.in));
    widen_halves({halves_, load.device, load.host->ld, unsigned(load.piece.lines), unsigned(load.width),
                  load.host->stored.element == Element::bfloat16},
                 context_on(device_, streams_.in));
    check_launch();
    in_queue_.queued(bytes);
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
    FL_CUDA(cudaEventRecord(passed_[sent_ - 1], streams_.pass_on));
  }
  bool free_slots() {
    bool some = false;
    for (; in_slots_.next_is_done(); some = true)
      host_copies_.allow_in(in_slots_.done() + std::size_t(in_ring_.slots()));
    while (in_direct_.next_is_done()) some = true;
    if (in_slots_.all_done() && in_direct_.all_done()) in_queue_.ran_dry();
    return some;
  }

  // ---- products
  bool launch() {
    const std::size_t before = launched_.queued();
    for (std::size_t next = before; next < ready_ && can_start(steps_[next]) && !is_far_ahead();
         next = launched_.queued()) {
      const DeviceStep<Args>& step = steps_[next];
      wait_for_stores(streams_.compute, step.after_stores, stores_before_compute_);
      wait_for_others(step);
      launch_kernel(*step.kernel, step.args, device_, work_.workspace, streams_.compute, &step.prepacked);
      if (step.mirror.a.data)
        launch_kernel(find<TransposeArgs>("tiled"), step.mirror, device_, nullptr, streams_.compute);
      launched_.record(streams_.compute);
      if (watched_) ahead_us_ += estimated_us(next);
    }
    return launched_.queued() != before;
  }
  // What is queued is waited for when a call is told to end.
  bool is_far_ahead() {
    while (ahead_us_ > most_ahead_us_ && launched_.next_is_done()) ahead_us_ -= estimated_us(launched_.done() - 1);
    return ahead_us_ > most_ahead_us_ && !launched_.all_done();
  }
  double estimated_us(std::size_t step) const {
    return steps_[step].kernel->cost(steps_[step].args, device_info(device_).spec);
  }
  bool can_start(const DeviceStep<Args>& step) const { return step.after_stores <= fetched_ && received(step); }
  bool received(const DeviceStep<Args>& step) const {
    for (std::size_t i = 0; i < step.received.size(); ++i)
      if (devices_[i]->sent_ < step.received[i]) return false;
    return true;
  }
  void wait_for_others(const DeviceStep<Args>& step) {
    for (std::size_t i = 0; i < step.received.size(); ++i) {
      if (step.received[i] <= awaited_[i]) continue;
      FL_CUDA(cudaStreamWaitEvent(streams_.compute, devices_[i]->passed_[step.received[i] - 1], 0));
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
    while (fetched_ < copies_.stores.size() && copies_.stores[fetched_].step < launched_.queued() &&
           has_room(copies_.stores[fetched_]) && out_queue_.admits())
      fetch(copies_.stores[fetched_++]);
    return fetched_ != before;
  }
  bool has_room(const StoreCopy& store) const {
    return store.direct ? out_direct_.has_unused() : out_slots_.queued() < emptied_ + std::size_t(out_ring_.slots());
  }
  void fetch(const StoreCopy& store) {
    if (store.step >= awaited_steps_) {
      FL_CUDA(cudaStreamWaitEvent(streams_.out, launched_[store.step], 0));
      awaited_steps_ = store.step + 1;
    }
    const Lines<float>& host = *store.host;
    float* to = out_ring_[out_slots_.queued()];
    int64_t pitch = store.pitch;
    if (store.direct) {
      to = host.data + store.piece.first * host.line_stride + store.piece.from;
      pitch = host.line_stride;
    }
    const bool flat = pitch == host.ld && (!store.direct || store.piece.length == pitch);
    copy(to, pitch, store.device, host.ld, store.piece.length, store.piece.lines, flat, cudaMemcpyDeviceToHost,
         streams_.out);
    out_queue_.queued(sizeof(float) * std::size_t(store.piece.length * store.piece.lines));
    (store.direct ? out_direct_ : out_slots_).record(streams_.out);
  }
  bool hand_out() {
    bool some = false;
    for (; out_slots_.next_is_done(); some = true) host_copies_.allow_out(out_slots_.done());
    while (out_direct_.next_is_done()) some = true;
    if (out_slots_.all_done() && out_direct_.all_done()) out_queue_.ran_dry();
    for (; emptied_ < out_slots_.done() && host_copies_.out_done(emptied_); some = true) ++emptied_;
    return some;
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
  uint16_t* halves_;                   // a slot of what crosses the link in 16 bits
  EventQueue in_slots_, out_slots_;    // loads and stores through the rings
  EventQueue in_direct_, out_direct_;  // those from and to pinned memory
  EventQueue launched_;                // steps
  Events passed_, markers_;            // for each load that is passed on, and of what has been queued so far
  CopyQueue in_queue_, out_queue_;
  const bool watched_ = CallWatch::current();
  const double most_ahead_us_ = double(watch_interval().count());
  double ahead_us_ = 0;                 // of what has been launched and not been seen done, if it is watched
  std::size_t sent_ = 0, fetched_ = 0;  // loads and stores that have been queued
  std::size_t emptied_ = 0;             // slots of the way out that are free again
  std::size_t ready_ = 0;               // steps whose loads have been sent
  std::size_t awaited_steps_ = 0, steps_before_in_ = 0;           // steps that the out and the in stream wait for
  std::size_t stores_before_in_ = 0, stores_before_compute_ = 0;  // stores that these streams wait for
  std::vector<PanelDriver*> devices_;
  std::vector<std::size_t> awaited_;  // by device: so many of its copies the compute stream waits for
};

}  // namespace fl::cuda
