// Where the operands of a call on host memory lie on the device: one after the other in one block.
#pragma once

#include <cstddef>

#include "cuda/launch/operands.h"

namespace fl::cuda {

// What shares a block of device memory begins at multiples of this many bytes, as every allocation does.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

template <class T>
std::size_t device_bytes(const Lines<T>& operand);  // throws OutOfMemory for broadcast views larger than any memory
std::size_t device_bytes(const Operands& operands);

// Sets the device pointers. Returns the end of the operands; what follows is the workspace.
char* place(const Operands& operands, char* memory);

}  // namespace fl::cuda
