// Lines of text that are said once.
#pragma once

#include <mutex>
#include <string>
#include <unordered_set>

#include "runtime/fork.h"

namespace fl {

// For statics: there is nothing to destroy.
class SaidLines {
 public:
  // Whether it is the first time.
  bool add(const std::string& line) {
    Lines& said = lines_.get();
    const std::lock_guard lock(said.mutex);
    return said.texts.insert(line).second;
  }
  void clear() {
    Lines& said = lines_.get();
    const std::lock_guard lock(said.mutex);
    said.texts.clear();
  }

 private:
  struct Lines {
    std::mutex mutex;
    std::unordered_set<std::string> texts;
  };
  PerProcess<Lines> lines_;
};

}  // namespace fl
