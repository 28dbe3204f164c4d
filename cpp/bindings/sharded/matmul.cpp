#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "bindings/arrays/gil.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/call.h"
#include "bindings/calls/copies.h"
#include "bindings/calls/options.h"
#include "bindings/calls/problems.h"
#include "core/errors.h"
#include "device/device_memory.h"
#include "device/streams.h"

namespace fl::py {
namespace {

constexpr const char* sharded_function = "matmul";
constexpr const char* meaning = "a list of arrays is the rows of one matrix, on CUDA devices";

bool is_list(nb::handle x) { return PyList_Check(x.ptr()) || PyTuple_Check(x.ptr()); }

[[noreturn]] void refuse(const std::string& what) { throw InvalidValue(std::string(sharded_function) + ": " + what); }

// One array of a list, or an operand that is no list. Its location has the stream on which it is complete.
struct Block {
  std::string name;
  CallLocation location;
  Array array;
  std::shared_ptr<void> packed;  // of an array in 16 bits, or whose rows do not follow one another

  Block(nb::handle object, std::string name_, OtherTypes other_types)
      : name(std::move(name_)),
        location("auto", nullptr, other_types),
        array(object, name.c_str(), Array::read, location) {
    if (!location.on_device()) refuse(name + " is in host memory, and " + meaning + "; use device='cuda:all' there");
    if (array.ndim() != 2) refuse(name + " must be a matrix, got shape " + to_string(array.shape()));
    if (cuda::capturing(location.device(), location.stream()))
      refuse("products of matrices in parts cannot be captured in a CUDA graph");
  }
  cuda::DeviceStream at() const { return {location.device(), location.stream()}; }
  int64_t rows() const { return array.shape(0); }
  int64_t columns() const { return array.shape(1); }
  std::size_t bytes() const { return std::size_t(rows() * columns()) * sizeof(float); }
  bool contiguous() const {  // and in float32
    return !array.stored().converted() && (columns() <= 1 || array.stride(1) == 1) &&
           (rows() <= 1 || array.stride(0) == columns());
  }
};
using Blocks = std::deque<Block>;  // which stay where they are

Blocks read(nb::handle operand, const char* name, OtherTypes other_types) {
  Blocks blocks;
  if (!is_list(operand)) {
    blocks.emplace_back(operand, name, other_types);
    return blocks;
  }
  for (const nb::handle object : operand)
    blocks.emplace_back(object, std::string(name) + "[" + std::to_string(blocks.size()) + "]", other_types);
  if (blocks.empty()) refuse(std::string(name) + " is an empty list; " + meaning);
  for (const Block& block : blocks)
    if (block.columns() != blocks[0].columns())
      refuse(block.name + " has shape " + to_string(block.array.shape()) + " and " + blocks[0].name + " " +
             to_string(blocks[0].array.shape()) + "; " + meaning);
  return blocks;
}

int64_t rows(const Blocks& blocks) {
  int64_t sum = 0;
  for (const Block& block : blocks) sum += block.rows();
  return sum;
}

// The devices of `a` are different ones, and those that were asked for.
void check_devices(const Blocks& a, const Options& options) {
  std::vector<int> used;
  for (const Block& block : a) {
    const int device = block.location.device();
    const auto before = std::find(used.begin(), used.end(), device);
    if (before != used.end())
      refuse(a[std::size_t(before - used.begin())].name + " and " + block.name +
             " are both on cuda:" + std::to_string(device) + "; a device computes one array of a");
    used.push_back(device);
  }
  const Device asked = options.call.device;
  if (options.call.stream) refuse("a stream is on one device, and operands are lists; leave stream out");
  if (asked.kind == Device::automatic || options.device == "cuda" || asked.set == Device::all) return;
  std::sort(used.begin(), used.end());
  if (asked.kind == Device::cuda && ordinals(asked) == used) return;
  std::string where;
  for (const int device : used) where += (where.empty() ? "cuda:" : ", cuda:") + std::to_string(device);
  refuse("a is on " + where + " and device='" + std::string(options.device) +
         "' was asked for; copy its arrays there, or leave device='auto'");
}

// The whole matrix on one device: the array itself if that is all and is there, else a copy.
struct Whole {
  std::shared_ptr<void> memory;
  Array copy;
  const Array* given = nullptr;
  const Array& array() const { return given ? *given : copy; }
};

const void* packed_rows(Block& block) {
  if (block.contiguous()) return block.array.data();
  if (!block.packed) {
    {
      const GilReleased released;
      block.packed = cuda::allocate(block.location.device(), block.bytes(), block.location.stream());
    }
    CallOptions options;
    set_location(options, block.location);
    copy_elements(Array(static_cast<float*>(block.packed.get()), {block.rows(), block.columns()}), block.array,
                  options);
  }
  return block.packed.get();
}

Whole gather(Blocks& b, const Block& to) {
  if (b.size() == 1 && b[0].location.device() == to.location.device()) {
    const GilReleased released;
    cuda::order_across(to.at(), b[0].at());
    return {.memory = nullptr, .copy = {}, .given = &b[0].array};
  }
  const Shape shape{rows(b), b[0].columns()};
  std::size_t bytes = 0;
  for (const Block& block : b) bytes += block.bytes();
  std::shared_ptr<void> memory;
  {
    const GilReleased released;
    memory = cuda::allocate(to.location.device(), bytes, to.location.stream());
  }
  char* next = static_cast<char*>(memory.get());
  for (Block& block : b) {
    const void* const source = packed_rows(block);
    const GilReleased released;
    cuda::copy_across(to.at(), next, block.at(), source, block.bytes());
    next += block.bytes();
  }
  Array copy(static_cast<float*>(memory.get()), shape);
  return {.memory = std::move(memory), .copy = std::move(copy)};
}

// None for each array of `a`, or the arrays of `out`.
std::vector<nb::object> results(nb::handle out, const Blocks& a, bool listed) {
  std::vector<nb::object> found;
  if (out.is_none()) return std::vector<nb::object>(a.size(), nb::none());
  if (listed != is_list(out))
    refuse(listed ? "out must be a list of arrays, one for each of a" : "out must be an array, as a is one");
  if (!listed) return {nb::borrow(out)};
  for (const nb::handle each : out) found.push_back(nb::borrow(each));
  if (found.size() != a.size())
    refuse("out has " + std::to_string(found.size()) + " arrays and a has " + std::to_string(a.size()));
  return found;
}

// A list of numbers or of lists is no list of arrays.
bool is_sharded(nb::handle operand) {
  if (!is_list(operand)) return false;
  if (PySequence_Size(operand.ptr()) == 0) return true;
  const nb::object first = operand[0];
  return nb::hasattr(first, "shape") &&
         (nb::hasattr(first, "__dlpack__") || nb::hasattr(first, "__cuda_array_interface__"));
}

nb::object sharded_matmul(nb::handle a_in, nb::handle b_in, nb::handle out, const Options& options,
                          OtherTypes other_types) {
  Blocks a = read(a_in, "a", other_types), b = read(b_in, "b", other_types);
  check_devices(a, options);
  const bool listed = is_list(a_in);
  if (a[0].columns() != rows(b))
    refuse("a has " + std::to_string(a[0].columns()) + " columns and b has " + std::to_string(rows(b)) + " rows");
  const std::vector<nb::object> given = results(out, a, listed);

  std::vector<Whole> wholes;
  for (const Block& block : a) wholes.push_back(gather(b, block));
  std::deque<Target> targets;  // all of them, so that what is wrong with one is said before anything is computed
  for (std::size_t i = 0; i < a.size(); ++i)
    targets.emplace_back(sharded_function, given[i], Shape{a[i].rows(), b[0].columns()},
                         std::initializer_list<const Array*>{&a[i].array, &wholes[i].array()}, a[i].location);
  if (!out.is_none()) {  // which may be memory of `b` that other devices are copying
    const GilReleased released;
    for (const Block& block : a)
      for (const Block& source : b) cuda::order_across(block.at(), source.at());
  }
  nb::list all;
  for (std::size_t i = 0; i < a.size(); ++i) {
    Options each = options;
    set_location(each.call, a[i].location);
    auto problem =
        gemm_problem(sharded_function, a[i].array, wholes[i].array(), 1.0f, 0.0f, false, false, options.precision);
    problem.for_each_run(targets[i].array(), [&](const SgemmArgs& args) { call(args, each); });
    all.append(targets[i].finish());
    const GilReleased released;  // `b` may be overwritten when all have read it
    for (const Block& source : b) cuda::order_across(source.at(), a[i].at());
  }
  for (Block& block : b) block.location.finish();
  if (!listed) return all[0];
  return out.is_none() ? nb::object(all) : nb::borrow(out);
}

}  // namespace

nb::object matmul_of_any(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                         nb::handle stream, nb::handle dtype) {
  if (!is_sharded(a) && !is_sharded(b)) return matmul(a, b, out, precision, device, stream, dtype);
  const Options options = parse_options(sharded_function, nb::none(), precision, device, stream);
  return sharded_matmul(a, b, out, options, parse_dtype(sharded_function, dtype));
}

}  // namespace fl::py
