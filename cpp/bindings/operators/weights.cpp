#include "bindings/operators/weights.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/arrays/objects.h"
#include "bindings/calls/bind.h"
#include "bindings/calls/call.h"

namespace fl::py {
namespace {

// Where in memory the weights lie; which have changed is known to Python.
class Weights {
 public:
  using Range = std::tuple<uintptr_t, uintptr_t, int64_t>;  // begin, end, owner

  explicit Weights(std::size_t limit) : splits(limit) {}
  Weights(const Weights&) = delete;

  void watch(std::vector<Range> ranges) {
    std::ranges::sort(ranges);
    std::vector<int64_t> owners;
    for (const Range& range : ranges) owners.push_back(std::get<2>(range));
    {
      const nb::ft_lock_guard lock(ranges_lock_);
      ranges_ = std::move(ranges);
    }
    splits.keep_only(owners);
  }
  std::optional<int64_t> owner_of(const float* data) const {
    const auto address = reinterpret_cast<uintptr_t>(data);
    const nb::ft_lock_guard lock(ranges_lock_);
    const auto behind = std::ranges::upper_bound(ranges_, address, {}, [](const Range& x) { return std::get<0>(x); });
    if (behind == ranges_.begin() || address >= std::get<1>(*(behind - 1))) return std::nullopt;
    return std::get<2>(*(behind - 1));
  }

  ConstantOperands splits;

 private:
  mutable nb::ft_mutex ranges_lock_;  // where there is no GIL
  std::vector<Range> ranges_;
};

struct Factor {
  const float* data;
  std::array<int64_t, 2> shape, strides;
};

// The first of them that is one.
std::shared_ptr<ConstantOperand> find(nb::handle weights, std::array<Factor, 2> factors) {
  Weights& known = nb::cast<Weights&>(weights);
  for (const Factor& x : factors) {
    const std::optional<int64_t> owner = known.owner_of(x.data);
    if (!owner) continue;
    const nb::object stamp = weights.attr("_stamp")(*owner);
    if (!stamp.is_none()) return known.splits.find({*owner, x.data, x.shape, x.strides}, nb::cast<int64_t>(stamp));
  }
  return nullptr;
}

// a @ b in device memory, without torch.
void product_for_tests(nb::handle weights, const std::string& kernel, int64_t m, int64_t n, int64_t k, uintptr_t a,
                       int64_t a_rs, int64_t a_cs, uintptr_t b, int64_t b_rs, int64_t b_cs, uintptr_t c, int64_t c_rs,
                       int64_t c_cs, uintptr_t stream) {
  SgemmArgs args{.m = m, .n = n, .k = k, .a = {}, .b = {}, .c = {}, .addend = {}};
  args.a = {reinterpret_cast<const float*>(a), a_rs, a_cs, 0};
  args.b = {reinterpret_cast<const float*>(b), b_rs, b_cs, 0};
  args.c = {reinterpret_cast<float*>(c), c_rs, c_cs, 0};
  const auto constant = find(weights, {Factor{args.b.data, {k, n}, {b_rs, b_cs}}, {args.a.data, {m, k}, {a_rs, a_cs}}});
  Options options;
  options.call.kernel = kernel;
  options.call.device = {Device::cuda, 0};
  options.call.stream = reinterpret_cast<void*>(stream);
  options.call.device_memory = true;
  options.call.constant_operand = constant.get();
  call(args, options);
}

}  // namespace

std::shared_ptr<ConstantOperand> constant_operand(nb::handle weights, const dl::Tensor& a, const dl::Tensor& b) {
  if (weights.is_none() || a.ndim != 2 || b.ndim != 2) return nullptr;
  const auto factor = [](const dl::Tensor& x) {
    const auto* data = reinterpret_cast<const float*>(static_cast<const char*>(x.data) + x.byte_offset);
    return Factor{data, {x.shape[0], x.shape[1]}, {x.strides[0], x.strides[1]}};
  };
  if (!a.strides || !b.strides) return nullptr;
  return find(weights, {factor(b), factor(a)});
}

void bind_weights(nb::module_& m, nb::module_& testing) {
  using nb::arg;
  testing.def("product_for_tests", product_for_tests, arg("weights"), arg("kernel"), arg("m"), arg("n"), arg("k"),
              arg("a"), arg("a_rs"), arg("a_cs"), arg("b"), arg("b_rs"), arg("b_cs"), arg("c"), arg("c_rs"),
              arg("c_cs"), arg("stream") = 0);
  if (take_registered<Weights>(m, "Weights")) return;
  nb::class_<Weights>(m, "Weights", "What fastlinalg.torch.use(keep_weights=) is built on.")
      .def(nb::init<std::size_t>(), arg("limit"))
      .def("watch", &Weights::watch, arg("ranges"))
      .def("clear", [](Weights& self) { self.splits.clear(); })
      .def_prop_ro("nbytes", [](const Weights& self) { return self.splits.bytes(); });
}

}  // namespace fl::py
