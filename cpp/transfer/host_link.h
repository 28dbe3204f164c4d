// The link between host memory and a device: what it does, and what plans take it to do.
#pragma once

namespace fl {

// Both directions at once, each at this speed.
struct HostLink {
  double call_us = 0;       // of a call that copies next to nothing
  double bytes_per_us = 1;  // of a call that copies much
};

// Plans are compared by fixed figures, not by measured ones: they must not depend on timing. PCIe 5 with 16 lanes does
// 48 GB/s each way, both ways at once; an H200's did 40 to 50 while the workers were busy too. Panels and shares go by
// the lower figure, tiles out of core by the other, as does a link that has not been used: one figure for all would cut
// calls in another way.
constexpr double link_bytes_per_us = 48e3, busy_link_bytes_per_us = 40e3;
constexpr HostLink nominal_link{10, busy_link_bytes_per_us};
constexpr double panel_step_us = 6, tile_step_us = 10;  // of a step: its launches and events

}  // namespace fl
