// The loads and the results of a plan cut into copies of a size that the link likes, each with its place on the device.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/launch/operands.h"
#include "transfer/panel_plan.h"

namespace fl::cuda {

struct CopySizes {  // floats
  int64_t in, out;
  int64_t direct_line;  // the least of a longer line that is copied from or to pinned memory as it lies there
};

// A rectangle of floats on its way in. The host side of a staged one is a slot of a ring, its lines `width` apart.
struct LoadCopy {
  const Lines<const float>* host;
  Piece piece;
  float* device;      // the first float
  int64_t width;      // floats of a line that are sent: with the last of a line goes its padding
  bool direct;        // from the caller's pinned memory
  std::size_t steps;  // steps of the plan that can run once this and all before it have arrived
  // What it overwrites has been read by the first so many steps, and has left with the first so many stores.
  std::size_t after_steps = 0, after_stores = 0;
  const std::vector<int>* passed_on = nullptr;  // to these devices of the call
};

struct StoreCopy {
  const Lines<float>* host;
  Piece piece;
  const float* device;
  int64_t pitch;  // floats between its lines in a slot
  bool direct;
  std::size_t step;  // the step that computes it
};

struct PanelCopies {
  bool clear_output = false;    // its padding comes back with it and has to hold something
  std::size_t ready_steps = 0;  // steps that need no load
  std::size_t steps = 0;
  std::vector<LoadCopy> loads;
  std::vector<std::size_t> load_ends;  // of each load of the plan: so many copies are it and those before it
  std::vector<StoreCopy> stores;
};

// The output as something that is read.
Lines<const float> as_input(const Lines<float>& output);

// Adds the copies of a plan to those that are there. The device pointers of `operands` have been set; `old_output` is
// its output, and both stay where they are as long as the copies. Without `store` the result stays on the device.
template <class Args>
void cut_up(const PanelPlan<Args>& plan, const Operands& operands, const Lines<const float>& old_output, bool store,
            const CopySizes& sizes, PanelCopies& copies);

}  // namespace fl::cuda
