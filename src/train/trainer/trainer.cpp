// Trainings: how a trainer is made, its evaluations, observations and checkpoints, and the loop around its updates.
#include <algorithm>
#include <cmath>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/threads/simulated_team.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/run/run_parts.hpp"
#include "train/trainer/measures.hpp"
#include "train/trainer/trainer_data.hpp"

namespace xtape {

namespace {
/// Returns whether the first batches have the shape of the largest batch. All batches then probably have this shape.
bool has_one_shape(const Batches& batches) {
  constexpr std::uint64_t looked_at = 8;
  const BatchArrays largest = batches.blank();
  BatchArrays batch = batches.blank();
  for (std::uint64_t index = 0; index < looked_at; ++index) {
    batches.training(index, batch);
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (batch[i].value.shape() != largest[i].value.shape()) return false;
  }
  return true;
}

DistributedOptions distributed(const Model& model, const TrainerOptions& options) {
  return {.optimizer = options.optimizer,
          .shards = options.shards,
          .micro_batches = options.accumulate,
          .communicator = options.communicator,
          .threads = options.threads,
          .groups = train::groups_of(options, train::trained_weights(model, options)),
          .bits = options.bits};
}

TrainerOptions on_ranks(TrainerOptions options, ranks::RankGroup& group) {
  options.threads = ranks::threads_of(group, options.threads);
  return options;
}
}  // namespace

Trainer::Data::Data(Model& the_model, const Batches& the_batches, const TrainerOptions& the_options)
    : model(the_model),
      batches(the_batches),
      group(the_options.communicator),
      options(on_ranks(the_options, group)),
      privacy(model, batches, options),
      turns(options),
      optimizer(model, train::trained_weights(model, options).names(), distributed(model, options)),
      updates(model, train::updated_weights(model, options)),
      steps(model, options, optimizer.trained()),
      plays(model, batches, options, turns, steps, optimizer) {}

void Trainer::Data::keep_to_memory() {
  const std::size_t grown = train::above(resident_bytes(), resident_without_plans);
  // bytes of arrays that a plan counts as its own memory, although they exist without the plan
  std::size_t counted = plays.largest_step().player.plan().parameter_bytes;
  for (const Store::Entry& weight : optimizer.trained()) counted += weight.value.bytes();
  const std::size_t absent = optimizer.absent_bytes() + (average ? average->absent_bytes() : 0);
  memory.emplace(options.memory, model.player_options().arena, absent, grown, has_one_shape(batches));
  memory->settle(counted, [&](std::size_t bytes) {
    steps.limit(
        std::max<std::size_t>(1, bytes), [this] { make_room(false); },
        [this](std::size_t plan) { return memory->affords(plan, [this] { return drop(false); }); });
    plays.plan_largest();
    return_freed_memory();
  });
}

bool Trainer::Data::drop(bool to_evaluate) {
  const auto drop_evaluation = [&] { return evaluator && evaluator->drop(); };
  return to_evaluate ? steps.drop() || drop_evaluation() : drop_evaluation() || steps.drop();
}

Trainer::Trainer(Model& model, const Batches& batches, const TrainerOptions& options) {
  if (!(options.clip >= 0)) throw Error("clip must be at least 0 (0: no clipping)");
  data_ = std::make_unique<Data>(model, batches, options);
  data_->state.seed = options.seed;
  data_->state.privacy = data_->privacy.of_updates();
  data_->state.epoch_batches = batches.epoch_batches();
  data_->state.order = batches.order();
  for (train::Turn& turn : data_->turns.all())
    turn.schedule = train::schedule_of(turn.schedule, options, model.hyper(), batches.epoch_batches());
  const EmaOptions& ema = options.ema;
  if (ema.decay != 0)
    data_->average.emplace(data_->optimizer.trained(), ema.decay, data_->options.threads, data_->group);
  if (options.memory > 0) data_->keep_to_memory();
}

std::int64_t Trainer::step() const {
  return data_->state.step;
}
const Store& Trainer::trained() const {
  return data_->optimizer.trained();
}
std::vector<std::string> Trainer::without_gradient() const {
  const Vars gradients = data_->plays.plan_largest();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].empty()) names.push_back(trained()[i].name);
  return names;
}
const Plan& Trainer::plan() const {
  Data& d = *data_;
  const train::TrainingStep& step = d.plays.largest_step();
  d.plan = step.player.plan();
  std::size_t of_play = 0;  // gradients that the plan counts as outputs
  for (const Store::Entry& weight : d.optimizer.trained()) of_play += weight.value.bytes();
  d.plan.sum_bytes = d.optimizer.gradient_bytes() - std::min(d.optimizer.gradient_bytes(), of_play);
  return d.plan;
}

TrainingProfile Trainer::profile(std::int64_t updates) {
  Data& d = *data_;
  if (!d.options.profile) throw Error("profiling needs the trainer's option 'profile'");
  if (updates < 1) throw Error("a profile needs at least one update, not " + std::to_string(updates));
  const std::uint64_t first = d.state.cursor;
  for (std::int64_t i = 0; i < updates; ++i) update();
  d.state.cursor = first;
  d.steps.forget_seconds();
  d.plays.batch_seconds = d.optimizer_seconds = 0;
  SimulatedTeam* const team = SimulatedTeam::current();
  if (team != nullptr) team->forget();
  TrainingProfile profile;
  profile.updates = updates;
  if (d.options.trace) d.options.trace->set_on(true);
  for (std::int64_t i = 0; i < updates; ++i) profile.seconds += update().seconds;
  if (team != nullptr) team->worked("(rest)");
  if (d.options.trace) d.options.trace->set_on(false);
  profile.steps = d.steps.profile();
  profile.fusions = d.steps.fusions();
  profile.batch_seconds = d.plays.batch_seconds;
  profile.optimizer_seconds = d.optimizer_seconds;
  profile.shards = d.options.shards;
  profile.sendings = d.optimizer.sendings();
  for (const Store::Entry& weight : d.optimizer.trained())
    profile.trained_bytes += static_cast<std::int64_t>(weight.value.bytes());
  return profile;
}

RecordedPlay Trainer::next_play() {
  data_->plays.take(data_->turn());
  return data_->plays.first_play(data_->state.cursor);
}

// The training around updates: evaluations, observations, interruptions and checkpoints.

train::Evaluator Trainer::Data::new_evaluator() {
  const std::vector<std::string> losses = turns.several() ? turns.functions() : std::vector<std::string>();
  PlayerOptions playing = model.player_options();
  if (!memory) return {model, losses, playing};
  playing.memory = steps.playing().memory;
  return {model, losses, playing, [this] { make_room(true); }};
}

void Trainer::Data::note(const Evaluation& evaluation, const std::string& of) {
  const std::vector<train::Measure> all = train::measures_of(evaluation);
  const std::string name = train::measure_named(of, evaluation.perplexity.has_value()).name;
  const auto found = std::ranges::find(all, name, &train::Measure::name);
  if (found == all.end())
    throw Error("the best evaluation is to be that of '" + of +
                "', which evaluations of this training do not measure; they measure " +
                joined(all, &train::Measure::name));
  const double measure = found->more_is_better ? -found->value : found->value;
  state.evaluated = state.step;
  state.evaluation_due = false;
  if (std::isfinite(measure) && (state.best_step < 0 || measure < state.best)) {
    state.best = measure;
    state.best_step = state.step;
    state.stale = 0;
  } else {
    ++state.stale;
  }
}

void Trainer::Data::observe(const FitOptions& fit, const Callbacks& callbacks, bool failed) {
  if (group.rank() != 0) return;
  const std::int64_t number = state.step + 1;
  const auto due = [&](std::int64_t every) { return every > 0 && (state.step % every == 0) != failed; };
  const auto tell = [&](const auto& callback, const auto& observe) {
    std::optional<decltype(observe())> made;
    try {
      made = observe();
    } catch (const DefinitionError&) {  // there is no value with this name
      throw;
    } catch (const MemoryError& error) {
      if (callbacks.warning)
        callbacks.warning("update " + std::to_string(number) + " is not observed: " + error.what());
    } catch (const Error&) {  // the caller reports the error of the update itself
    }
    if (made) callback(number, *made);
  };
  if (callbacks.statistics && due(fit.statistics_every)) tell(callbacks.statistics, [&] { return statistics(); });
  if (callbacks.watched && !fit.watch.empty() && due(fit.watch_every))
    tell(callbacks.watched, [&] { return watched(fit.watch); });
  if (memory) observed.reset();  // the memory limit does not count its plans
}

std::vector<ModuleStatistics> Trainer::Data::statistics() {
  return train::ObservedSteps::statistics_of(play_observed({}));
}

std::vector<WatchedValue> Trainer::Data::watched(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return train::ObservedSteps::values_of(play_observed(names));
}

Evaluation Trainer::evaluate() {
  Evaluation evaluation = evaluate(data_->batches);
  evaluation.epsilon = data_->privacy.epsilon(step());
  return evaluation;
}

Evaluation Trainer::evaluate(const Batches& on, const std::string& set) {
  Data& d = *data_;
  if (!d.evaluator) d.evaluator.emplace(d.new_evaluator());
  d.evaluator->name =
      "the evaluation " + (set.empty() ? "" : "on " + set + " ") + "after update " + std::to_string(step());
  d.evaluator->folders = d.folders();
  Evaluation evaluation;
  d.with_evaluated_weights([&] { evaluation = train::evaluate(*d.evaluator, on, d.group, [&] { d.between(); }); });
  if (d.group.any(d.interrupted)) d.stop_here();
  evaluation.step = step();
  evaluation.set = set;
  return evaluation;
}

std::int64_t Trainer::epoch() const {
  const std::int64_t batches = data_->batches.epoch_batches();
  return batches == 0 ? 0 : static_cast<std::int64_t>(data_->state.cursor) / batches;
}

std::int64_t Trainer::best_step() const {
  return data_->state.best_step;
}

std::vector<ModuleStatistics> Trainer::statistics() {
  return data_->statistics();
}

std::vector<WatchedValue> Trainer::watched(const std::vector<std::string>& names) {
  return data_->watched(names);
}

std::int64_t Trainer::evaluated_step() const {
  return data_->state.evaluated;
}

bool Trainer::is_training() const {
  return data_->called != nullptr;
}

bool Trainer::fit(const FitOptions& options, const Callbacks& callbacks) {
  if (is_training()) throw Error("this trainer is training: a callback of fit cannot call fit");
  for (const std::int64_t number : {options.steps, options.epochs, options.evaluate_every, options.patience,
                                    options.statistics_every, options.watch_every, options.sample_every})
    if (number < 0) throw Error("the numbers of a training must not be negative, got " + std::to_string(number));
  if (options.steps == 0 && options.epochs == 0) throw Error("training needs a number of steps or of epochs");
  if ((options.epochs > 0 || options.evaluate_epochs) && data_->batches.epoch_batches() == 0)
    throw Error("this data has no epochs: its batches are drawn at random");
  const auto evaluated = [&] {
    try {
      return evaluate();
    } catch (const DefinitionError& error) {  // a definition error of a function that only evaluations record
      throw EvaluationError(error.what());
    }
  };
  const auto report_evaluation = [&] {
    data_->with_evaluated_weights([&] {
      Evaluation evaluation = evaluated();
      if (callbacks.evaluation) callbacks.evaluation(evaluation);
      data_->note(evaluation, options.best);  // after the callback, which may add measures and may be interrupted
    });
  };
  const auto observed_update = [&] {
    data_->observe(options, callbacks, false);
    try {
      return update();
    } catch (const TrainingError&) {
      data_->observe(options, callbacks, true);
      throw;
    }
  };
  const auto ended = [&] {
    return (options.steps > 0 && step() >= options.steps) || (options.epochs > 0 && epoch() >= options.epochs) ||
           (options.patience > 0 && data_->state.stale >= options.patience);
  };
  struct Called {  // resets `called` when fit() returns
    ~Called() { callbacks = nullptr; }
    const Callbacks*& callbacks;
  } const called{data_->called};
  data_->called = &callbacks;
  const auto asked_to_stop = [&] { return callbacks.stop && callbacks.stop(); };
  try {
    if (data_->state.evaluation_due) report_evaluation();
    while (!ended()) {
      const std::int64_t epoch_before = epoch();
      const StepReport report = observed_update();
      if (callbacks.step) callbacks.step(report);
      data_->state.evaluation_due = (options.evaluate_every > 0 && step() % options.evaluate_every == 0) ||
                                    (options.evaluate_epochs && epoch() > epoch_before);
      if (callbacks.sample && options.sample_every > 0 && step() % options.sample_every == 0)
        data_->with_evaluated_weights([&] { callbacks.sample(step()); });
      if (data_->state.evaluation_due) report_evaluation();
      if (!ended() && data_->group.any(asked_to_stop())) return false;
    }
    if (data_->state.evaluated != step()) report_evaluation();
  } catch (const train::Interruption&) {
    return false;
  }
  return true;
}

void Trainer::save(const std::string& path, const std::function<void(const std::string& folder)>& complete) const {
  Data& d = *data_;
  const Store carried = d.plays.gather_carried(d.state.cursor, d.group);
  if (d.group.rank() != 0) {
    d.optimizer.save(path);
    return;
  }
  train::write_checkpoint(
      path, d.model.weights(), [&](const std::string& file) { d.optimizer.save(file); }, d.state, carried,
      d.average ? d.average->averages() : Store(), complete, d.model.orders());
}

void Trainer::load(const std::string& path) {
  Data& d = *data_;
  train::State state = train::read_state(path);
  const std::string moments = path + "/optimizer.safetensors";
  if (!path_exists(moments))
    throw FileError("checkpoint " + path +
                    " has no optimizer.safetensors: it may be an average, from which a training "
                    "cannot continue, but a new one can start: \"start\": {\"from\": …}");
  if (state.seed != d.options.seed)
    throw FileError("checkpoint " + path + " is from a run with seed " + std::to_string(state.seed) + ", not " +
                    std::to_string(d.options.seed));
  d.privacy.check(path, state);
  d.optimizer.check(moments);
  const std::int64_t epoch_batches = d.batches.epoch_batches();
  const std::uint64_t order = d.batches.order();
  const bool same_order = state.epoch_batches == epoch_batches && (state.order == 0 || state.order == order);
  if (epoch_batches > 0 && !same_order) {
    const std::int64_t before = state.epoch_batches > 0 ? state.epoch_batches : epoch_batches;
    const std::uint64_t epochs = state.cursor / static_cast<std::uint64_t>(before);
    if (__builtin_mul_overflow(epochs, static_cast<std::uint64_t>(epoch_batches), &state.cursor))
      throw FileError("checkpoint " + path + " is of epoch " + std::to_string(epochs) +
                      ", which is too large to be valid");
  }
  if (epoch_batches == 0 && state.epoch_batches == 0 && state.order != 0 && state.order != order)
    throw FileError("checkpoint " + path + " is of other stages: their 'steps' and 'batch.accumulate' cannot change");
  state.epoch_batches = epoch_batches;
  state.order = order;
  Store carried;
  if (d.batches.training_continues(state.cursor))
    carried = train::read_carried(path, d.plays.whole_states(state.cursor));
  const Store averages = d.average ? d.average->read(path + train::averages_file) : Store();
  d.model.load_weights(path + "/weights.safetensors", train::start_of(path));  // checks all before changing the model
  d.optimizer.load(moments);
  if (d.average) d.average->set(averages);
  d.plays.set_carried(state.cursor, carried);
  d.state = state;
}

}  // namespace xtape
