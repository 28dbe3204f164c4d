#include "run/constant_operands.h"

#include <algorithm>
#include <iterator>

#include "core/call_cache.h"
#include "core/errors.h"
#include "device/streams.h"
#include "runtime/fork.h"
#include "table/prepacked.h"

namespace fl {
namespace {

constexpr std::size_t most_entries = 4096;  // those without memory too: views of an operand are as many as callers make

struct Owners {
  std::mutex mutex;
  std::vector<ConstantOperands*> all;
};
constinit PerProcess<Owners> owners;

ConstMatrix& side_of(SgemmArgs& args, Side side) { return side == Side::a ? args.a : args.b; }

}  // namespace

// ---------------------------------------------------------------- one operand
// As exactly one factor of one product.
bool ConstantOperand::is_one_of(const SgemmArgs& args) const {
  return args.batch == 1 && args.k > 0 && (args.a.data == data_) != (args.b.data == data_);
}

ConstantOperand::Use ConstantOperand::use_of(const Kernel<SgemmArgs>* kernel, const SgemmArgs& args) const {
  if (args.a.data == data_) return {kernel, Side::a, args.m, args.k, args.a.rs, args.a.cs};
  return {kernel, Side::b, args.n, args.k, args.b.rs, args.b.cs};
}

ConstantOperand::Kept* ConstantOperand::find(const Use& use) {
  const auto there = std::ranges::find(kept_, use, &Kept::use);
  return there == kept_.end() ? nullptr : &*there;
}

ConstantOperand::Kept* ConstantOperand::make(const Use& use, const SgemmArgs& args, int device) {
  const PrepackedOperand prepacked = prepacked_to_share(*use.kernel, args, use.side);
  if (prepacked.bytes == 0 || !all_->make_room(*this, prepacked.bytes)) return nullptr;
  device_ = device;
  try {
    return &kept_.emplace_back(use, std::make_unique<cuda::ConstantSplit>(prepacked, use.side, device),
                               std::vector<float>());
  } catch (const OutOfMemory&) {  // it only saves time
    all_->give_back(*this, prepacked.bytes);
    return nullptr;
  }
}

bool ConstantOperand::run(const Kernel<SgemmArgs>& kernel, const SgemmArgs& args, int device, void* stream) {
  if (!is_one_of(args) || !reads_shared(kernel, args) || cuda::capturing(device, stream)) return false;
  const std::lock_guard lock(mutex_);
  const Use use = use_of(&kernel, args);
  Kept* kept = find(use);
  if (!kept) kept = make(use, args, device);
  if (!kept) return false;
  try {
    kept->split->run(kernel, args, stream);
  } catch (const OutOfMemory&) {
    forget();
    throw;
  }
  return true;
}

void ConstantOperand::forget() {
  kept_.clear();
  all_->give_back(*this, bytes_);
}

void ConstantOperand::replace_by_copy(SgemmArgs& args) {
  if (!is_one_of(args)) return;
  const std::lock_guard lock(mutex_);
  const Use use = use_of(nullptr, args);
  const int64_t rows = use.side == Side::a ? use.lines : use.k, cols = use.side == Side::a ? use.k : use.lines;
  ConstMatrix& view = side_of(args, use.side);
  const int64_t rs = view.rs == 1 ? 1 : cols, cs = view.rs == 1 ? rows : 1;
  Kept* kept = find(use);
  if (!kept) {
    const auto size = std::size_t(rows * cols);
    if (!all_->make_room(*this, size * sizeof(float))) return;
    kept = &kept_.emplace_back(use, nullptr, std::vector<float>(size));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        kept->copy[std::size_t(i * rs + j * cs)] = view.data[i * view.rs + j * view.cs];
  }
  view = {kept->copy.data(), rs, cs, 0};
}

// ---------------------------------------------------------------- all of an owner
ConstantOperands::ConstantOperands(std::size_t limit) : limit_(limit) {
  Owners& there = owners.get();
  const std::lock_guard lock(there.mutex);
  there.all.push_back(this);
}

ConstantOperands::~ConstantOperands() {
  Owners* const there = owners.try_get();
  if (!there) return;
  const std::lock_guard lock(there->mutex);
  std::erase(there->all, this);
}

std::size_t ConstantOperands::Hash::operator()(const Key& key) const {
  uint64_t hash = uint64_t(key.owner);
  for (const int64_t x : {int64_t(reinterpret_cast<intptr_t>(key.data)), key.shape[0], key.shape[1], key.strides[0]})
    hash = mixed(hash, uint64_t(x));
  return hash ^ hash >> 32;
}

std::shared_ptr<ConstantOperand> ConstantOperands::find(const Key& key, int64_t stamp) {
  std::list<Entry> gone;  // freed without the lock
  const std::lock_guard lock(mutex_);
  const auto there = places_.find(key);
  if (there == places_.end()) {
    entries_.push_front({key, stamp, nullptr});
    places_[key] = entries_.begin();
    if (entries_.size() <= most_entries) return nullptr;
    places_.erase(entries_.back().key);
    gone.splice(gone.end(), entries_, std::prev(entries_.end()));
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, there->second);
  Entry& entry = entries_.front();
  if (entry.stamp != stamp) {
    gone.push_back({entry.key, entry.stamp, std::move(entry.operand)});
    entry.stamp = stamp;
    return nullptr;
  }
  if (!entry.operand) entry.operand = std::make_shared<ConstantOperand>(*this, key.data);
  return entry.operand;
}

void ConstantOperands::keep_only(std::span<const int64_t> owners) {
  std::list<Entry> gone;
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (std::ranges::find(owners, entry->key.owner) == owners.end()) {
      places_.erase(entry->key);
      gone.splice(gone.end(), entries_, entry);
    }
    entry = next;
  }
}

void ConstantOperands::clear() { keep_only({}); }

void ConstantOperands::clear(int device) {
  std::vector<std::shared_ptr<ConstantOperand>> gone;
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_)
    if (entry.operand && entry.operand->device() == device) gone.push_back(std::move(entry.operand));
}

std::size_t ConstantOperands::kept(std::optional<int> device) const {
  std::size_t sum = 0;
  for (const Entry& entry : entries_)
    if (entry.operand && (!device || entry.operand->device() == *device)) sum += entry.operand->bytes();
  return sum;
}
std::size_t ConstantOperands::bytes(std::optional<int> device) const {
  const std::lock_guard lock(mutex_);
  return kept(device);
}

// What other threads still use of that which goes is freed when they are done.
bool ConstantOperands::make_room(ConstantOperand& asking, std::size_t bytes) {
  std::vector<std::shared_ptr<ConstantOperand>> gone;
  const std::lock_guard lock(mutex_);
  if (asking.bytes_ + bytes > limit_) return false;
  std::size_t used = kept();
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && used + bytes > limit_; ++entry) {
    if (!entry->operand || entry->operand.get() == &asking) continue;
    used -= entry->operand->bytes();
    gone.push_back(std::move(entry->operand));
  }
  asking.bytes_ += bytes;
  return true;
}

void ConstantOperands::give_back(ConstantOperand& asking, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  asking.bytes_ -= bytes;
}

// ---------------------------------------------------------------- of all owners
std::size_t constant_operand_bytes(int device) {
  Owners& there = owners.get();
  const std::lock_guard lock(there.mutex);
  std::size_t sum = 0;
  for (const ConstantOperands* each : there.all) sum += each->bytes(device);
  return sum;
}

void drop_constant_operands(int device) {
  Owners& there = owners.get();
  const std::lock_guard lock(there.mutex);
  for (ConstantOperands* each : there.all) each->clear(device);
}

}  // namespace fl
