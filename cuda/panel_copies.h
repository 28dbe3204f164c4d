// The loads and the results of a plan cut into copies of a size that the link likes, each with its place on the device.
#pragma once

#include <cstddef>
#include <vector>

#include "operands.h"
#include "panel_plan.h"

namespace fl::cuda {

struct CopySizes {  // floats
  int64_t in, out;
};

// A rectangle of floats on its way in. The host side of a staged one is a slot of a ring, where its lines lie `width` apart.
struct LoadCopy {
  const Lines<const float>* host;
  Piece piece;
  float* device;      // the first float
  int64_t width;      // floats of a line that are sent: with the last of a line goes its padding
  bool direct;        // from the caller's pinned memory
  std::size_t steps;  // steps of the plan that can run once this and all before it have arrived
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
  Lines<const float> old_output;  // the output as it is read
  bool clear_output = false;      // its padding comes back with it and has to hold something
  std::size_t ready_steps = 0;    // steps that need no load
  std::vector<LoadCopy> loads;
  std::vector<StoreCopy> stores;
};

// The device pointers of `operands` have been set.
template <class Args>
void cut_up(const PanelPlan<Args>& plan, const Operands& operands, const CopySizes& sizes, PanelCopies& copies);

}  // namespace fl::cuda
