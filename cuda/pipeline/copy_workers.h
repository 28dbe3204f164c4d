// The threads that copy for all calls on host memory which run at the same time.
#pragma once

#include <memory>

#include "cuda/pipeline/host_copies.h"

namespace fl::cuda {

// While one lives, the workers copy for its call on one device, by turns with the others. The caller says how many
// threads its call could use, itself among them; callers and workers together are not more than the threads there are.
class CopyTurn {
 public:
  CopyTurn(std::shared_ptr<HostCopies> copies, int device, int threads);
  ~CopyTurn();  // closes the copies
  CopyTurn(const CopyTurn&) = delete;
  CopyTurn& operator=(const CopyTurn&) = delete;

  // Whether so few workers copy for each call that the caller should copy as well.
  bool needs_caller() const;
  bool is_shared() const;  // whether there are other calls

 private:
  std::shared_ptr<HostCopies> copies_;
  bool served_;
};

}  // namespace fl::cuda
