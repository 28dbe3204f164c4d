#include "bindings/grouped/matmul.h"

#include "bindings/grouped/members.h"

namespace fl::py {
namespace {

constexpr const char* function = "grouped_matmul";

// A device computes the longest products while the host makes the results of the others and launches them.
constexpr std::size_t first_part = 32;

nb::list multiply(GroupMembers& members, Options& options, CallLocation& location) {
  members.read(options.precision, location);
  set_location(options.call, location);
  std::size_t done = 0, part = location.on_device() ? first_part : members.size();
  for (; done < members.size(); done += part, part *= 2) {
    if (const std::size_t left = members.size() - done; left < 2 * part) part = left;
    call(*make_group(members.products(done, part, location), options, Group::once), options, location.stream());
  }
  return members.finish(location);
}

}  // namespace

nb::object grouped_matmul(nb::handle a, nb::handle b, nb::handle out, nb::handle precision, nb::handle device,
                          nb::handle stream, nb::handle dtype) {
  Options options = parse_options(function, nb::none(), precision, device, stream);
  GroupMembers members(function, a, b, out);
  CallLocation location(options.device, options.call.stream, parse_dtype(function, dtype));
  return multiply(members, options, location);
}

nb::list tensor_products(nb::handle a, nb::handle b, std::string_view precision) {
  Options options;
  options.precision = parse_precision(precision);
  GroupMembers members(function, a, b, nb::none());
  CallLocation location(CallLocation::Operator{});
  return multiply(members, options, location);
}

}  // namespace fl::py
