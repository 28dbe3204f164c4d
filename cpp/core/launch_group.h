// Launches of GPU kernels for several products, which wait here until those of the same kernel become one.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "core/context.h"

namespace fl {

struct KeptLaunch {
  // Launches what is kept with this function, at once.
  using Launch = void (*)(std::span<const KeptLaunch* const>, const Context&);
  Launch launch = nullptr;
  std::size_t product = 0;  // as the list counts them
  alignas(16) std::byte what[368];

  template <class What>
  KeptLaunch(Launch launch, std::size_t product, const What& of) : launch(launch), product(product) {
    static_assert(std::is_trivially_copyable_v<What> && sizeof(What) <= sizeof what && alignof(What) <= 16);
    std::memcpy(what, &of, sizeof of);
  }
  template <class What>
  const What& as() const {
    return *reinterpret_cast<const What*>(what);
  }
};

struct LaunchGroup {
  std::vector<KeptLaunch> kept;  // with room for all that come
  std::size_t product = 0;       // whose kernel is asked at present

  template <class What>
  void keep(KeptLaunch::Launch launch, const What& what) {
    kept.emplace_back(launch, product, what);
  }
};

}  // namespace fl
