// Operands whose splits stay from call to call, as long as whoever knows them says that they have not changed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/export.h"
#include "device/launches.h"

namespace fl {

class ConstantOperands;

// One of them, with the values of one stamp.
class ConstantOperand {
 public:
  ConstantOperand(ConstantOperands& all, const float* data) : all_(&all), data_(data) {}

  // Runs the kernel on what is kept, which the first run makes. False, and nothing has happened, if this kernel does
  // not split the operand, during a capture, and where there is no room for it. After OutOfMemory nothing is kept.
  bool run(const Kernel<SgemmArgs>& kernel, const SgemmArgs& args, int device, void* stream);
  // On the CPU nothing is split, and no call of a user comes here. Tests do, and see by a copy what has become stale.
  void replace_by_copy(SgemmArgs& args);

  std::size_t bytes() const { return bytes_; }
  int device() const { return device_; }

 private:
  friend ConstantOperands;
  struct Use {  // what the operand is to a product
    const Kernel<SgemmArgs>* kernel;
    Side side;
    int64_t lines, k, rs, cs;
    bool operator==(const Use&) const = default;
  };
  struct Kept {
    Use use;
    std::unique_ptr<cuda::ConstantSplit> split;
    std::vector<float> copy;
  };
  bool is_one_of(const SgemmArgs& args) const;
  Use use_of(const Kernel<SgemmArgs>* kernel, const SgemmArgs& args) const;
  Kept* find(const Use& use);
  Kept* make(const Use& use, const SgemmArgs& args, int device);
  void forget();

  ConstantOperands* all_;
  const float* data_;
  std::atomic<std::size_t> bytes_ = 0;  // written under the lock of `all_`
  std::atomic<int> device_ = -1;        // -1: the host
  std::mutex mutex_;                    // of what is kept
  std::list<Kept> kept_;
};

// Those of one owner, up to a limit of memory: what was used least recently goes first. Safe to use from many threads.
class FL_EXPORT ConstantOperands {
 public:
  struct Key {
    int64_t owner;  // never given twice
    const float* data;
    std::array<int64_t, 2> shape, strides;
    bool operator==(const Key&) const = default;
  };

  explicit ConstantOperands(std::size_t limit);
  ~ConstantOperands();
  ConstantOperands(const ConstantOperands&) = delete;
  ConstantOperands& operator=(const ConstantOperands&) = delete;

  // Null at the first call with this stamp: what is used once is not worth keeping. Another stamp says that the values
  // have changed.
  std::shared_ptr<ConstantOperand> find(const Key& key, int64_t stamp);
  void keep_only(std::span<const int64_t> owners);
  void clear();
  void clear(int device);
  std::size_t bytes(std::optional<int> device = {}) const;  // on all devices, or on one

 private:
  friend ConstantOperand;
  struct Entry {
    Key key;
    int64_t stamp;
    std::shared_ptr<ConstantOperand> operand;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::size_t kept(std::optional<int> device = {}) const;  // the same under the lock
  bool make_room(ConstantOperand& asking, std::size_t bytes);
  void give_back(ConstantOperand& asking, std::size_t bytes);

  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the latest first
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> places_;
};

// Of all owners. Calls that use an operand keep what they use of it.
FL_EXPORT std::size_t constant_operand_bytes(int device);
FL_EXPORT void drop_constant_operands(int device);

}  // namespace fl
