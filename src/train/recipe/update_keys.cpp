// The keys of `updates`, the losses of a training that has several, and of `ema`.
#include "train/recipe/recipe_parts.hpp"
#include "train/trainer/turns.hpp"

namespace xtape::train {

namespace {
/// The options before are those of the recipe's optimizer.
void read_own_optimizer(Section& section, const std::string& name, LossUpdate& update) {
  if (!section.has(name)) return update.optimizer.reset();
  Section own = section.section(name);
  OptimizerGroup group{"*", *update.optimizer};
  if (own.has("rate")) own.read("rate", group.options.rate.emplace(), at_least_0);
  const std::optional<double> rate = group.options.rate;
  read_section(own, optimizer_keys, group.options);  // another kind than the recipe's has defaults of its own
  group.options.rate = rate;
  update.optimizer = group.options;
}

void read_own_schedule(Section& section, const std::string& name, LossUpdate& update) {
  if (section.has(name)) read_section(section.section(name), schedule_keys, update.schedule.emplace());
}

void read_own_clip(Section& section, const std::string& name, LossUpdate& update) {
  if (section.has(name)) section.read(name, update.clip.emplace(), at_least_0);
}
}  // namespace

const Keys<LossUpdate> update_keys = {
    {{{"loss", &LossUpdate::loss, "the function that computes the loss, instead of `loss`", needed},
      {"trains", &LossUpdate::trains, "patterns of the weights that this loss trains", otherwise("all")},
      {"every", &LossUpdate::every, "the loss takes part in each round whose number, from 0, is a multiple of this",
       Range{.low = 1}},
      {"repeat", &LossUpdate::repeat, "its updates in such a round, each on the next batch", Range{.low = 1}},
      {"optimizer", "section", "the recipe's",
       "the optimiser of the weights in `trains`, with `rate`, a scale of the schedule's rate", read_own_optimizer},
      {"schedule", "section", "the recipe's, over all updates", "a schedule over the updates with this loss",
       read_own_schedule},
      {"clip", "number, at least 0", "the recipe's", "the norm to which the gradients of this loss are clipped",
       read_own_clip}}}};

const Keys<EmaOptions> ema_keys = {
    {{{"decay", &EmaOptions::decay, "the share of the average that an update keeps", decays, needed},
      {"evaluate", &EmaOptions::evaluated, "whether evaluations use the averages in place of the weights"}}}};

void read_updates(Section& root, const std::string& name, Recipe& recipe) {
  TrainerOptions& trainer = recipe.trainer;
  for (Section& each : root.sections(name)) {
    LossUpdate update;
    update.optimizer = trainer.optimizer;
    read_section(each, update_keys, update);
    trainer.updates.push_back(std::move(update));
  }
  if (root.has(name) && trainer.updates.empty()) root.fail(name, "must have a loss");
  root.read("simultaneous", trainer.simultaneous);
  try {
    const Turns turns(trainer);
    for (std::size_t i = 0; i < trainer.updates.size(); ++i) {
      if (!trainer.updates[i].schedule) continue;
      ScheduleOptions& schedule = *trainer.updates[i].schedule;
      if (has_end(schedule) && schedule.steps == 0) schedule.steps = turns.count(i, recipe.fit.steps);
      if (has_end(schedule) && schedule.steps == 0)
        root.fail(name, "needs 'steps' in the schedule of '" + trainer.updates[i].loss +
                            "': the recipe's 'steps' do not give its end");
      rate_at(schedule, 1);
    }
  } catch (const DefinitionError&) {
    throw;
  } catch (const Error& error) {
    root.fail(name, std::string("is wrong: ") + error.what());
  }
}

}  // namespace xtape::train
