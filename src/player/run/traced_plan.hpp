/// The interface between a trace and a player.
#pragma once

#include "base/threads/activity.hpp"
#include "player/plan/plan.hpp"
#include "xtape/trace.hpp"

namespace xtape {

/// A plan in a trace. The object copies what the trace needs. The player may therefore be destroyed before the trace is
/// written.
class TracedPlan {
 public:
  TracedPlan() = default;
  TracedPlan(std::shared_ptr<Trace> trace, const PlannedProgram& planned);

  bool on() const { return trace_ && trace_->on(); }

  /// One run of a step on the calling thread. The event lasts from construction to destruction. The trace must be on.
  class Step : public Activity {
   public:
    Step(const TracedPlan& plan, std::size_t step) : plan_(plan), step_(step), begin_(seconds_now()) {}
    ~Step() override { plan_.add(step_, false, begin_); }
    void helped(double begin) const override { plan_.add(step_, true, begin); }

   private:
    const TracedPlan& plan_;
    std::size_t step_;
    double begin_;
  };

 private:
  void add(std::size_t step, bool helps, double begin) const;

  std::shared_ptr<Trace> trace_;
  std::int32_t number_ = -1;
};

}  // namespace xtape
