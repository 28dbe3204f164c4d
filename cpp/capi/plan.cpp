// The C interface: plans.
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capi/calls.h"
#include "capi/check.h"
#include "capi/errors.h"
#include "capi/log.h"
#include "run/plan.h"
#include "runtime/fork.h"

// One thread at a time, in a method. In a child of fork one may have been cut off in the midst of it.
struct fl_plan {
  fl_plan() = default;
  virtual ~fl_plan() { mutex.free(); }
  fl_plan(const fl_plan&) = delete;
  fl_plan& operator=(const fl_plan&) = delete;
  virtual void execute(void* stream) = 0;
  virtual void reset_operands(const fl::Check& check, const float* a, const float* b, float* c) = 0;
  virtual fl_plan_info info() = 0;
  virtual void forget() = 0;  // it is made anew by the next method

  fl::PerProcess<std::mutex> mutex;
  std::atomic<bool> busy{false};
};

namespace fl {
namespace {

class Method {
 public:
  explicit Method(fl_plan& plan) : plan_(plan), mutex_(plan.mutex.get()) {
    mutex_.lock();
    if (plan_.busy.exchange(true)) plan_.forget();
  }
  ~Method() {
    plan_.busy = false;
    mutex_.unlock();
  }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

 private:
  fl_plan& plan_;
  std::mutex& mutex_;
};

template <class T>
void move(const Check& check, const char* name, T*& data, T* to) {
  if (!to) return;
  check.aligned(name, to);
  data = to;
}
// `given` is the lowest address, `to` that of element 0.
void move(const Check& check, const char* name, const float*& data, Stored& stored, const float* given,
          const float* to) {
  if (!given) return;
  check.aligned(name, given, stored.element);
  data = to;
  stored = stored_at(stored.element, given);
}

void move_operands(const Check& check, SgemmArgs& args, const float* a, const float* b, float* c) {
  move(check, "a", args.a.data, args.stored[0], a, a);
  move(check, "b", args.b.data, args.stored[1], b, b);
  move(check, "c", args.c.data, c);
}
void move_operands(const Check& check, SgemvArgs& args, const float* a, const float* x, float* y) {
  move(check, "a", args.a.data, args.stored[0], a, a);
  move(check, "x", args.x.data, args.stored[1], x, first_element(x, args.n, args.x.inc));
  if (y) move(check, "y", args.y.data, first_element(y, args.m, args.y.inc));
}

template <class Args>
void make(std::optional<Plan<Args>>& plan, const Args& args, CallOptions options) {
  const CallLog log(args, options);
  plan.emplace(args, options);
}
void make(std::optional<Group>& group, const std::vector<Product>& products, CallOptions options) {
  const CallLog log(options);
  group.emplace(products, options, Group::again);
}

// `Given` is what a plan is made of, `Made` what it is then.
template <class Given, class Made>
class Planned : public fl_plan {
 public:
  Planned(Given given, const CallOptions& options)
      : given_(std::move(given)), options_(options), kernel_(options.kernel) {
    options_.kernel = kernel_;
    made();
  }
  void forget() override { made_.reset(); }

 protected:
  Made& made() {
    if (!made_) make(made_, given_, options_);
    return *made_;
  }
  // A plan that could not get its memory has to be made anew.
  template <class Body>
  void change(Body&& body) {
    try {
      body(made());
    } catch (...) {
      forget();
      throw;
    }
  }

  Given given_;
  CallOptions options_;

 private:
  std::string kernel_;
  std::optional<Made> made_;
};

template <class Args>
class PlanOf : public Planned<Args, Plan<Args>> {
  using Base = Planned<Args, Plan<Args>>;
  using Base::given_, Base::options_;

 public:
  using Base::Base;
  void execute(void* stream) override {
    Base::change([&](Plan<Args>& plan) { plan.execute(stream ? stream : options_.stream); });
  }
  void reset_operands(const Check& check, const float* a, const float* b, float* c) override {
    Args moved = given_;
    move_operands(check, moved, a, b, c);
    given_ = moved;
    const bool renewed = options_.constant && (*options_.constant == Side::a ? a : b);
    Base::change([&](Plan<Args>& plan) {
      plan.rebind(given_);
      if (renewed) plan.renew_constant();
    });
  }
  fl_plan_info info() override {
    const Plan<Args>& plan = Base::made();
    return {sizeof(fl_plan_info), plan.kernel(), plan.device().kind == Device::cuda ? plan.device().ordinal : -1,
            plan.workspace_bytes()};
  }
};

class PlanOfGroup : public Planned<std::vector<Product>, Group> {
 public:
  using Planned::Planned;
  void execute(void* stream) override {
    change([&](Group& group) { group.run(stream ? stream : options_.stream); });
  }
  void reset_operands(const Check& check, const float*, const float*, float*) override {
    check.refuse("a plan of a list keeps its operands; make a new one by fl_plan_sgemm_grouped()");
  }
  fl_plan_info info() override {
    const bool on_device = options_.device.kind == Device::cuda;
    return {sizeof(fl_plan_info), "", on_device ? options_.device.ordinal : -1, made().workspace_bytes()};
  }
};

std::optional<Side> constant_side(const Check& check, fl_operand constant) {
  switch (constant) {
    case FL_NO_OPERAND: return std::nullopt;
    case FL_OPERAND_A: return Side::a;
    case FL_OPERAND_B: return Side::b;
  }
  check.refuse("constant must be FL_NO_OPERAND, FL_OPERAND_A or FL_OPERAND_B, got " + std::to_string(int(constant)));
}

void clear(const Check& check, fl_plan** plan) {
  if (!plan) check.refuse("plan is NULL");
  *plan = nullptr;
}
void require(const Check& check, const fl_plan* plan) {
  if (!plan) check.refuse("plan is NULL");
}

// checked(check, given..., options) has the arguments of the call.
template <class Checked, class... Given>
fl_status plan_checked(const char* function, Checked checked, fl_plan** plan, fl_operand constant,
                       const fl_options* options, Given... given) {
  return guarded([&] {
    const Check check(function);
    clear(check, plan);
    Options parsed = parse(check, options);
    const auto args = checked(check, given..., parsed);
    parsed.call.constant = constant_side(check, constant);
    *plan = new PlanOf<std::remove_const_t<decltype(args)>>(args, parsed.call);
  });
}

}  // namespace
}  // namespace fl

using fl::Check;
using fl::guarded;

fl_status fl_plan_sgemm(fl_plan** plan, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                        const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb, int64_t stride_b,
                        float beta, float* c, int64_t ldc, int64_t stride_c, int64_t batch, fl_operand constant,
                        const fl_options* options) {
  return fl::plan_checked("fl_plan_sgemm", fl::checked_sgemm, plan, constant, options, trans_a, trans_b, m, n, k, alpha,
                          a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
}

fl_status fl_plan_sgemm_grouped(fl_plan** plan, int64_t count, const fl_sgemm_problem* problems,
                                const fl_options* options) {
  return guarded([&] {
    constexpr const char* function = "fl_plan_sgemm_grouped";
    fl::clear(Check(function), plan);
    fl::CallOptions call;
    std::vector<fl::Product> products = fl::checked_group(function, count, problems, options, call);
    *plan = new fl::PlanOfGroup(std::move(products), call);
  });
}

fl_status fl_plan_sgemv(fl_plan** plan, int trans, int64_t m, int64_t n, float alpha, const float* a, int64_t lda,
                        const float* x, int64_t incx, float beta, float* y, int64_t incy, const fl_options* options) {
  return fl::plan_checked("fl_plan_sgemv", fl::checked_sgemv, plan, FL_NO_OPERAND, options, trans, m, n, alpha, a, lda,
                          0, x, incx, 0, beta, y, incy, 0, 1);
}

fl_status fl_plan_sgemv_batched_strided(fl_plan** plan, int trans, int64_t m, int64_t n, float alpha, const float* a,
                                        int64_t lda, int64_t stride_a, const float* x, int64_t incx, int64_t stride_x,
                                        float beta, float* y, int64_t incy, int64_t stride_y, int64_t batch,
                                        const fl_options* options) {
  return fl::plan_checked("fl_plan_sgemv_batched_strided", fl::checked_sgemv, plan, FL_NO_OPERAND, options, trans, m, n,
                          alpha, a, lda, stride_a, x, incx, stride_x, beta, y, incy, stride_y, batch);
}

fl_status fl_plan_execute(fl_plan* plan, void* stream) {
  return guarded([&] {
    fl::require(Check("fl_plan_execute"), plan);
    const fl::Method method(*plan);
    plan->execute(stream);
  });
}

fl_status fl_plan_reset_operands(fl_plan* plan, const float* a, const float* b, float* c) {
  return guarded([&] {
    const Check check("fl_plan_reset_operands");
    fl::require(check, plan);
    const fl::Method method(*plan);
    plan->reset_operands(check, a, b, c);
  });
}

fl_status fl_plan_get_info(fl_plan* plan, fl_plan_info* info) {
  return guarded([&] {
    const Check check("fl_plan_get_info");
    fl::require(check, plan);
    const fl::Method method(*plan);
    fl::write_struct(check, "info", "FL_PLAN_INFO_INIT", info, sizeof *info, plan->info());
  });
}

void fl_plan_free(fl_plan* plan) { delete plan; }
