#include "device/loaded_code.h"

#include <charconv>
#include <cstdlib>

namespace fl {
namespace {

struct Entry {  // of a list of architectures: 80-real, 90a, 100f-virtual
  int target = 0;
  char suffix = 0;  // 'a': for this capability alone, 'f': for its family
  bool real = true, ptx = true;
};

bool parse(std::string_view word, Entry& entry) {
  const char* const end = word.data() + word.size();
  auto [rest, error] = std::from_chars(word.data(), end, entry.target);
  if (error != std::errc()) return false;  // "native", "all": what that was is not known here
  if (rest != end && (*rest == 'a' || *rest == 'f')) entry.suffix = *rest++;
  const std::string_view kind(rest, std::size_t(end - rest));
  entry.ptx = kind != "-real";
  entry.real = kind != "-virtual";
  return true;
}

// Machine code runs on later minor versions of its major one, PTX on everything later.
bool runs(const Entry& entry, int compute_capability, bool as_ptx) {
  if (entry.suffix == 'a') return entry.target == compute_capability;
  const bool same_major = entry.target / 10 == compute_capability / 10;
  return entry.target <= compute_capability && (same_major || (as_ptx && entry.suffix != 'f'));
}

void take_if_better(LoadedCode& best, const Entry& entry) {
  if (entry.target > best.target) best = {entry.target, entry.suffix == 'a'};
  else if (entry.target == best.target && entry.suffix == 'a') best.features = true;
}

bool is_set(const char* variable) {
  const char* const text = std::getenv(variable);
  return text && std::atoi(text) != 0;
}

}  // namespace

JitSettings jit_settings() { return {is_set("CUDA_FORCE_PTX_JIT"), is_set("CUDA_DISABLE_PTX_JIT")}; }

LoadedCode expected_code(std::string_view architectures, int compute_capability, JitSettings jit) {
  LoadedCode machine_code, ptx;
  while (!architectures.empty()) {
    const std::string_view word = architectures.substr(0, architectures.find(' '));
    architectures.remove_prefix(word.size() + (word.size() < architectures.size()));
    Entry entry;
    if (!parse(word, entry)) entry = {.target = compute_capability};
    if (entry.real && runs(entry, compute_capability, false)) take_if_better(machine_code, entry);
    if (entry.ptx && runs(entry, compute_capability, true)) take_if_better(ptx, entry);
  }
  if (machine_code.target && !jit.only_ptx) return machine_code;
  return jit.no_ptx ? LoadedCode{} : ptx;
}

bool has_body(Needs needs, LoadedCode code) {
  if (needs == Needs::sm_90a) return code.target == 90 && code.features;
  return code.target >= (needs == Needs::sm_90 ? 90 : needs == Needs::sm_80 ? 80 : 1);
}

}  // namespace fl
