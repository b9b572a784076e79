// Players, training steps and optimisers.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "c/values.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "xtape/optim.hpp"
#include "xtape/step.hpp"

namespace xtape::c {

namespace {
class PlayerObject : public Object {
 public:
  static constexpr const char* word = "a player";
  PlayerObject(const std::shared_ptr<TapeObject>& the_tape, const Vars& the_outputs, const PlayerOptions& options)
      : Object(word), tape(the_tape), outputs(the_outputs), player(tape->tape, outputs, options) {
    views.resize(outputs.size());
  }
  Json describe() const override {
    const Plan& plan = player.plan();
    std::ostringstream text;
    text << plan;
    return {{"steps", plan.steps.size()},
            {"peak_bytes", plan.peak_bytes()},
            {"arena_bytes", plan.arena_bytes},
            {"threads", player.threads()},
            {"text", text.str()}};
  }
  /// An output of the last play. The layout lives in `views`.
  const ArrayView& view(std::size_t index) {
    if (index >= outputs.size())
      throw Error("there is no output " + std::to_string(index) + ": the player has " + std::to_string(outputs.size()));
    return views[index] = player.view(outputs[index]);
  }

  const std::shared_ptr<TapeObject> tape;
  const Vars outputs;
  Player player;
  std::vector<Feed> feeds;               // kept, so that a play allocates nothing
  std::vector<ArrayView> views;          // of outputs; their layouts are those of views that programs hold
  std::map<ValueId, ArrayView> carried;  // of states, by input
};

class StepObject : public Object {
 public:
  static constexpr const char* word = "a step";
  StepObject(const std::shared_ptr<TapeObject>& the_tape, const Vars& results, const Store& weights,
             const std::vector<OptimizerGroup>& groups, const StepOptions& options)
      : Object(word), tape(the_tape), step(results, weights, groups, options, Tape(), caller()) {}
  Json describe() const override { return {{"updates", step.updates()}, {"rate", step.rate()}, {"norm", step.norm()}}; }

  const std::shared_ptr<TapeObject> tape;
  Step step;
  std::vector<Feed> feeds;
  std::map<std::size_t, ArrayView> views;  // of results
};

class OptimizerObject : public Object {
 public:
  static constexpr const char* word = "an optimiser";
  OptimizerObject(const Store& weights, const std::vector<OptimizerGroup>& groups, int threads)
      : Object(word), optimizer(weights, groups, threads) {}
  Json describe() const override { return {{"updates", optimizer.updates()}}; }

  Optimizer optimizer;
};

/// Reads groups of weights from a section `optimizer`. The others have the options of the section.
std::vector<OptimizerGroup> groups_of(const train::Section& section) {
  Recipe recipe;
  train::read_optimizer(section, recipe);
  for (const OptimizerGroup& group : recipe.trainer.groups)
    if (group.frozen_until > 0) section.fail("groups", "cannot have 'frozen_until' here: only recipes count updates");
  std::vector<OptimizerGroup> groups = recipe.trainer.groups;
  groups.push_back({"*", recipe.trainer.optimizer});
  return groups;
}

ScheduleOptions schedule_of(Options& options) {
  Recipe recipe;
  const Json& schedule = options->value("schedule");
  if (schedule.is_null()) return recipe.trainer.schedule;
  if (schedule.is_number())
    options->read("schedule", recipe.trainer.schedule.rate, train::at_least_0);
  else
    train::read_schedule(options.section(), "schedule", recipe);
  if (!recipe.trainer.schedule_width.empty()) options->fail("schedule", "must have an integer as 'width' here");
  return recipe.trainer.schedule;
}

/// In a step, the rate of a group is absolute; in recipes, it is a factor of the schedule's.
void make_absolute(std::vector<OptimizerGroup>& groups, double rate) {
  for (OptimizerGroup& group : groups)
    if (group.options.rate) *group.options.rate *= rate;
}
}  // namespace
}  // namespace xtape::c

using namespace xtape::c;

xtape_status xtape_player_new(const xtape_tape* tape, const xtape_var* outputs, size_t output_count,
                              const xtape_var* carries, size_t carry_count, const char* options,
                              xtape_player** player) noexcept {
  return guarded("xtape_player_new", [&] {
    require(player, "player");
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    Options given(options);
    xtape::PlayerOptions how;
    read_player_options(given, how);
    given.done();
    require_list(carries, carry_count, "carries");
    for (std::size_t i = 0; i < carry_count; ++i)
      how.carries.push_back({object->var(carries[2 * i], "carries"), object->var(carries[2 * i + 1], "carries")});
    give(player, std::make_shared<PlayerObject>(object.shared(), object->vars(outputs, output_count, "outputs"), how));
  });
}

xtape_status xtape_play(xtape_player* player, const xtape_var* inputs, const xtape_view* values,
                        size_t count) noexcept {
  return guarded("xtape_play", [&] {
    const Used<PlayerObject> object = use<PlayerObject>(player, "player");
    object->player.play(feeds_of(*object->tape, inputs, values, count, object->feeds), caller());
  });
}

xtape_status xtape_player_view(const xtape_player* player, size_t index, xtape_view* view) noexcept {
  return guarded("xtape_player_view", [&] {
    require(view, "view");
    *view = described(use<PlayerObject>(player, "player")->view(index));
  });
}

xtape_status xtape_player_array(const xtape_player* player, size_t index, xtape_array** array) noexcept {
  return guarded("xtape_player_array", [&] {
    require(array, "array");
    const Used<PlayerObject> object = use<PlayerObject>(player, "player");
    give(array, std::make_shared<ArrayObject>(object->view(index), object.shared(), true));
  });
}

xtape_status xtape_player_carried(xtape_player* player, xtape_var input, xtape_view* view) noexcept {
  return guarded("xtape_player_carried", [&] {
    require(view, "view");
    const Used<PlayerObject> object = use<PlayerObject>(player, "player");
    const xtape::Var var = object->tape->var(input, "input");
    *view = described(object->carried[var.id()] = std::as_const(object->player).carried(var));
  });
}

xtape_status xtape_player_set_step(xtape_player* player, uint64_t random_step) noexcept {
  return guarded("xtape_player_set_step", [&] { use<PlayerObject>(player, "player")->player.set_step(random_step); });
}

xtape_status xtape_step_new(xtape_tape* tape, const xtape_var* results, size_t result_count, const xtape_store* weights,
                            const char* options, xtape_step** step) noexcept {
  return guarded("xtape_step_new", [&] {
    require(step, "step");
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    const Used<StoreObject> arrays = use<StoreObject>(weights, "weights");
    Options given(options);
    xtape::StepOptions how;
    std::vector<xtape::OptimizerGroup> groups = {{"*", xtape::AdamW()}};
    const xtape::train::Section section = given->section("optimizer");
    if (given->has("optimizer")) groups = groups_of(section);
    how.schedule = schedule_of(given);
    make_absolute(groups, how.schedule.rate);
    given->read("clip", how.clip, xtape::train::at_least_0);
    read_player_options(given, how.player);
    given.done();
    object->record(
        [&] {
          give(step, std::make_shared<StepObject>(object.shared(), object->vars(results, result_count, "results"),
                                                  arrays->arrays, groups, how));
          return xtape::Vars();
        },
        nullptr, 0, nullptr);
  });
}

xtape_status xtape_step_update(xtape_step* step, const xtape_var* inputs, const xtape_view* values, size_t count,
                               double* loss) noexcept {
  return guarded("xtape_step_update", [&] {
    const Used<StepObject> object = use<StepObject>(step, "step");
    const double before = object->step(feeds_of(*object->tape, inputs, values, count, object->feeds), caller());
    if (loss != nullptr) *loss = before;
  });
}

xtape_status xtape_step_view(const xtape_step* step, size_t result, xtape_view* view) noexcept {
  return guarded("xtape_step_view", [&] {
    require(view, "view");
    const Used<StepObject> object = use<StepObject>(step, "step");
    const xtape::ArrayView found = object->step.view(result);
    *view = described(object->views[result] = found);
  });
}

xtape_status xtape_optimizer_new(const xtape_store* weights, const char* options,
                                 xtape_optimizer** optimizer) noexcept {
  return guarded("xtape_optimizer_new", [&] {
    require(optimizer, "optimizer");
    const Used<StoreObject> arrays = use<StoreObject>(weights, "weights");
    give(optimizer, std::make_shared<OptimizerObject>(arrays->arrays, groups_of(Options(options).section()), 0));
  });
}

xtape_status xtape_optimizer_update(xtape_optimizer* optimizer, const xtape_view* gradients, size_t count, double rate,
                                    double clip, double* norm) noexcept {
  return guarded("xtape_optimizer_update", [&] {
    const Used<OptimizerObject> object = use<OptimizerObject>(optimizer, "optimizer");
    require_list(gradients, count, "gradients");
    std::vector<xtape::ArrayView> views;
    for (std::size_t i = 0; i < count; ++i)
      views.push_back(gradients[i].data == nullptr ? xtape::ArrayView() : array_view(gradients[i], "gradients"));
    const double found = object->optimizer.update(views, rate, 1, clip);
    if (norm != nullptr) *norm = found;
    if (!std::isfinite(found)) throw xtape::UpdateError("the norm of the gradients is not finite; nothing is updated");
  });
}

xtape_status xtape_state(const void* handle, xtape_store** state) noexcept {
  return guarded("xtape_state", [&] {
    require(state, "state");
    const Used<Object> object(object_of(handle, "handle"));
    if (const auto* step = dynamic_cast<const StepObject*>(&*object))
      return give(state, std::make_shared<StoreObject>(step->step.state()));
    if (const auto* optimizer = dynamic_cast<const OptimizerObject*>(&*object))
      return give(state, std::make_shared<StoreObject>(optimizer->optimizer.state()));
    refuse_kind(*object, "handle", "a step or an optimiser");
  });
}
