#include "cuda/launch/placement.h"

#include <string>

#include "core/errors.h"

namespace fl::cuda {
template <class T>
std::size_t device_bytes(const Lines<T>& operand) {
  if (operand.empty()) return 0;
  const double bytes = double(operand.total()) * double(operand.ld) * sizeof(float);
  if (bytes > double(int64_t(1) << 60))
    throw OutOfMemory("an operand of " + std::to_string(operand.total()) + " x " + std::to_string(operand.length) +
                      " elements does not fit in device memory");
  return std::size_t(operand.total() * operand.ld) * sizeof(float);
}
template std::size_t device_bytes(const Lines<float>&);
template std::size_t device_bytes(const Lines<const float>&);

std::size_t device_bytes(const Operands& operands) {
  std::size_t bytes = aligned(device_bytes(operands.output.host));
  for (const Input& input : operands.inputs) bytes += aligned(device_bytes(input.host));
  return bytes;
}

char* place(const Operands& operands, char* memory) {
  for (const Input& input : operands.inputs) {
    if (input.device) *input.device = reinterpret_cast<const float*>(memory);
    if (input.also) *input.also = *input.device;
    memory += aligned(device_bytes(input.host));
  }
  *operands.output.device = reinterpret_cast<float*>(memory);
  return memory + aligned(device_bytes(operands.output.host));
}

}  // namespace fl::cuda
