// Which kernel a call takes and why, in words: fl.explain() and fl_explain_*().
#pragma once

#include <string>
#include <string_view>

#include "run/forecast.h"

namespace fl {

// How a call was written, where CallOptions no longer says it.
struct AsWritten {
  std::string_view device;  // "auto" or what was asked for
  int64_t runs = 1;         // calls of a kernel, where one does not take the batch; the call to explain is the first
};

struct Explanation {
  Forecast taken;
  std::string text;  // lines
};
template <class Args>
FL_EXPORT Explanation explanation(const Args& args, const CallOptions& options, const AsWritten& written);

}  // namespace fl
