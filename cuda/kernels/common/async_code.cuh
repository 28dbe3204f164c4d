// Whether a kernel that exists with asynchronous copies and without them runs with them.
#pragma once

#include "core/context.h"

namespace fl {

// The code of this library that the current device has loaded knows them, and the device, or what it pretends to be,
// has them. Code for 7.5 runs on any device where the build has no other. One kernel speaks for all.
bool copies_async(const void* kernel, const Context& ctx);

}  // namespace fl
