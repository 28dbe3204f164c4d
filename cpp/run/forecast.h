// What a decision says: to the log, and to who asks before a call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "run/decision.h"

namespace fl {

// The kernel of a call and of its largest step, and why no other.
template <class Args>
void log_choice(const Decision<Args>& decision, const CallOptions& options);

// Where such a call runs; CallOptions::device as it is if nothing is computed.
template <class Args>
FL_EXPORT Device device_of(const Args& args, const CallOptions& options);

// What decides a call, in words and figures, with nothing computed.
struct Forecast {
  const char* op = nullptr;      // that the kernel is of: "sgemv" for a product of one row or one column
  Device device = {};            // meaningless without a kernel
  const char* kernel = nullptr;  // null: nothing would be computed
  const char* blurb = nullptr;   // what the table says of it
  double us = 0;                 // that it is expected to take, copies of operands in host memory included
  bool triangle = false;         // the product is symmetric, and the kernel computes one triangle of it
  int64_t steps = 0;  // of operands in host memory that go to a GPU: in so many parts; `kernel` is of the largest
  std::vector<NotTaken> others;
};
template <class Args>
Forecast forecast(const Args& args, const CallOptions& options);

// Which kernel a call takes and why, in words: fl.explain() and fl_explain_*().
struct Explanation {
  Forecast taken;
  std::string text;  // lines
};
// How the call was written, where CallOptions no longer says it.
struct AsWritten {
  std::string_view device;  // "auto" or what was asked for
  int64_t runs = 1;         // calls of a kernel, where one does not take the batch; the call to explain is the first
};
template <class Args>
FL_EXPORT Explanation explanation(const Args& args, const CallOptions& options, const AsWritten& written);

// What the kernel of such a call is expected to take, without what copies operands.
template <class Args>
FL_EXPORT double expected_us(const Args& args, const CallOptions& options);

}  // namespace fl
