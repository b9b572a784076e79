#include "train/recipe/schedule_end.hpp"

#include "xtape/array.hpp"

namespace xtape::train {

ScheduleOptions with_steps(ScheduleOptions schedule, std::int64_t epoch_batches, std::int64_t accumulate) {
  if (schedule.steps > 0 || schedule.epochs == 0) return schedule;
  if (epoch_batches == 0) throw Error("schedule: this data has no epochs; give its end as steps");
  std::int64_t micro_batches = epoch_batches;
  if (!checked_multiply(micro_batches, schedule.epochs)) throw Error("schedule: too many epochs");
  schedule.steps = (micro_batches - 1) / accumulate + 1;
  using Kind = ScheduleOptions::Kind;
  const bool ends = schedule.kind == Kind::linear || schedule.kind == Kind::cosine;
  if (ends && schedule.steps < schedule.warmup) {
    const auto counted = [](std::int64_t count, const char* what) {
      return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
    };
    throw Error("schedule: " + counted(schedule.epochs, "epoch") + " of this data " +
                (schedule.epochs == 1 ? "is " : "are ") + counted(schedule.steps, "update") + ", fewer than the " +
                std::to_string(schedule.warmup) + " of schedule.warmup");
  }
  rate_at(schedule, 1);  // throws if another option of the schedule is wrong
  return schedule;
}

}  // namespace xtape::train
