// The answers to the last few calls, found again by keys whose equality is the compiler's own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace fl {

// Of one word after the other, for the choice among several caches by the upper half, which is mixed best: Fibonacci
// hashing (Knuth, The Art of Computer Programming 3, 6.4).
constexpr uint64_t mixed(uint64_t hash, uint64_t word) { return (hash ^ word) * 0x9e3779b97f4a7c15u; }

// `Key` declares `bool operator==(const Key&) const = default`, and so do its members: a field that is added to one of
// them is compared without a further word. tests/structure/test_layers.py looks that they do.
template <class Key, class Value, std::size_t CAPACITY>
class CallCache {
 public:
  // Null if it is not there. Valid until the next keep() or clear().
  Value* find(const Key& key) {
    for (std::size_t i = 0; i < count_; ++i)
      if (entries_[i].key == key) return &entries_[i].value;
    return nullptr;
  }
  // In place of the oldest.
  Value& keep(const Key& key, Value value) {
    Entry& entry = entries_[next_];
    entry.value = std::move(value);
    entry.key = key;
    next_ = (next_ + 1) % CAPACITY;
    if (count_ < CAPACITY) ++count_;
    return entry.value;
  }
  void clear() {
    for (std::size_t i = 0; i < count_; ++i) entries_[i] = {};
    count_ = next_ = 0;
  }

 private:
  struct Entry {
    Key key{};
    Value value{};
  };
  std::array<Entry, CAPACITY> entries_{};
  std::size_t next_ = 0, count_ = 0;
};

}  // namespace fl
