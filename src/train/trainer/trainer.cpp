// The updates of a training.
#include <algorithm>
#include <cmath>

#include "base/arrays/elements.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/run/run_parts.hpp"
#include "train/trainer/trainer_data.hpp"
#include "xtape/literal.hpp"

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

DistributedOptions distributed(const TrainerOptions& options) {
  return {options.optimizer, options.shards, options.accumulate, options.communicator,
          options.threads,   true,           options.groups};
}
}  // namespace

Trainer::Data::Data(Model& the_model, const Batches& the_batches, const TrainerOptions& the_options)
    : model(the_model),
      batches(the_batches),
      options(the_options),
      privacy(model, batches, options),
      group(options.communicator),
      optimizer(model, train::trained_weights(model, options).names(), distributed(options)),
      updates(model, train::updated_weights(model, options)),
      steps(model, options, optimizer.trained()),
      plays(model, batches, options, steps, optimizer) {}

void Trainer::Data::keep_to_memory() {
  const std::size_t grown = train::above(resident_bytes(), resident_without_plans);
  // bytes of arrays that a plan counts as its own memory, although they exist without the plan
  std::size_t counted = plays.largest_step().player.plan().parameter_bytes;
  for (const Store::Entry& weight : optimizer.trained()) counted += weight.value.bytes();
  memory.emplace(options.memory, model.player_options().arena, optimizer.absent_bytes(), grown, has_one_shape(batches));
  memory->settle(counted, [&](std::size_t bytes) {
    steps.limit(
        std::max<std::size_t>(1, bytes), [this] { make_room(false); },
        [this](std::size_t plan) { return memory->affords(plan, [this] { return drop(false); }); });
    plays.largest_step();
    return_freed_memory();
  });
}

bool Trainer::Data::drop(bool to_evaluate) {
  const auto drop_evaluation = [&] { return evaluator && evaluator->drop(); };
  return to_evaluate ? steps.drop() || drop_evaluation() : drop_evaluation() || steps.drop();
}

std::vector<double> Trainer::Data::played() {
  const std::size_t each = own_numbers() + updates.numbers();
  std::vector<double> results;
  UpdatePart done{state.step + 1, 0, options.accumulate * std::max<std::int64_t>(1, plays.own_shards())};
  try {
    const std::int64_t present = plays.present(state.cursor);
    optimizer.begin(present);
    plays.for_each(state.cursor, present, [&](const train::ShardPlay& play) {
      between();
      if (done.plays > 0 && called != nullptr && called->part) called->part(done);
      ++done.plays;
      train::TrainingStep& step = steps.of(play.batch);
      optimizer.play(step.player, step.notes.gradients, plays.feeds(step, play), play.draw, play.last);
      plays.keep(step, play);
      if (play.first) results.resize(results.size() + each);
      double* of_shard = results.data() + results.size() - each;
      of_shard[1] += step.player.scalar(step.notes.loss.sum);
      of_shard[2] += step.player.scalar(step.notes.loss.count);
      for (std::size_t i = 3; i < own_numbers(); ++i)
        if (!all_finite(step.player.view(step.notes.states[i - 3].result))) of_shard[i] = 1;
      updates.add(step.player, step.notes.updates, of_shard + own_numbers());
    });
  } catch (const CommunicationError&) {
    throw;  // no call has failed, only the communication
  } catch (const Error& error) {
    if (options.capsule.empty()) throw;
    const std::optional<train::FailedPlay> found = plays.find_failure(state.cursor);
    if (!found || !found->capsule) throw;
    throw TrainingError(error.what() + train::save_failure(*found, folders()));
  }
  if (results.empty()) results.resize(each);
  for (std::size_t i = 0; i < results.size(); i += each) results[i] = interrupted ? 1 : 0;
  return results;
}

void Trainer::Data::not_finite(const std::string& what) {
  const std::string update = " of update " + std::to_string(state.step + 1);
  const std::optional<train::FailedPlay> own = plays.find_failure(state.cursor);
  throw TrainingError(train::not_finite_text(what + update, own ? &*own : nullptr, group, folders()));
}

void Trainer::Data::overflows(const UpdateError& error) {
  std::string text = error.what();
  if (group.rank() == 0)
    if (const std::optional<train::FailedPlay> play = plays.find_failure(state.cursor))
      text += train::save_failure(*play, folders());
  throw TrainingError(text);
}

Trainer::Trainer(Model& model, const Batches& batches, const TrainerOptions& options) {
  if (!(options.clip >= 0)) throw Error("clip must be at least 0 (0: no clipping)");
  data_ = std::make_unique<Data>(model, batches, options);
  data_->state.seed = options.seed;
  data_->state.privacy = data_->privacy.of_updates();
  data_->state.epoch_batches = batches.epoch_batches();
  data_->state.order = batches.order();
  data_->options.schedule = train::with_steps(options.schedule, batches.epoch_batches(), options.accumulate);
  if (options.memory > 0) data_->keep_to_memory();
}

std::int64_t Trainer::step() const {
  return data_->state.step;
}
const Store& Trainer::trained() const {
  return data_->optimizer.trained();
}
std::vector<std::string> Trainer::without_gradient() const {
  const Vars& gradients = data_->plays.largest_step().notes.gradients;
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

StepReport Trainer::update() {
  Data& d = *data_;
  const double start = Trace::now();
  d.optimizer.take_waited();
  const std::vector<double> sums = d.optimizer.sum(d.played());
  if (sums[0] > 0) d.stop_here();
  const double sum = sums[1], count = sums[2];
  if (!std::isfinite(sum)) d.not_finite("loss");
  for (std::size_t i = 0; i < d.plays.states().size(); ++i)
    if (sums[3 + i] > 0) d.not_finite("carried state '" + d.plays.states()[i] + "'");
  const double* updated = sums.data() + d.own_numbers();
  if (const std::string weight = d.updates.not_finite(updated); !weight.empty())
    d.not_finite("new value of weight '" + weight + "'");
  // A draw may have no rows. The update then consists only of noise.
  if (count == 0 && !d.privacy.on())
    throw TrainingError("update " + std::to_string(d.state.step + 1) + " has no target that counts");
  if (!std::isfinite(count) || count < 0)
    throw TrainingError("update " + std::to_string(d.state.step + 1) +
                        ": the count of targets, by which the loss is divided, is " + to_string(Literal(count)) +
                        ", and must be above 0 and finite");
  StepReport report;
  report.rate = rate_at(d.options.schedule, d.state.step + 1);
  const double computed = Trace::now();
  try {
    report.norm =
        d.optimizer.update(report.rate, 1 / d.privacy.divisor(count), d.options.clip, d.privacy.noise(d.state.step));
  } catch (const UpdateError& error) {
    d.overflows(error);
  }
  if (d.options.trace) d.options.trace->add("optimizer", computed);
  d.optimizer_seconds += Trace::now() - computed;
  if (!std::isfinite(report.norm)) d.not_finite("gradient");
  if (d.memory) d.memory->updated();
  d.updates.assign(updated);
  d.plays.advance();
  d.state.cursor += static_cast<std::uint64_t>(d.options.accumulate);
  report.step = ++d.state.step;
  report.loss = sum / count;
  report.tokens = std::llround(count);
  report.seconds = Trace::now() - start;
  report.waiting = d.optimizer.take_waited();
  return report;
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
  TrainingProfile profile;
  profile.updates = updates;
  if (d.options.trace) d.options.trace->set_on(true);
  for (std::int64_t i = 0; i < updates; ++i) profile.seconds += update().seconds;
  if (d.options.trace) d.options.trace->set_on(false);
  profile.steps = d.steps.profile();
  profile.fusions = d.steps.fusions();
  profile.batch_seconds = d.plays.batch_seconds;
  profile.optimizer_seconds = d.optimizer_seconds;
  profile.shards = d.options.shards;
  for (const Store::Entry& weight : d.optimizer.trained())
    profile.trained_bytes += static_cast<std::int64_t>(weight.value.bytes());
  return profile;
}

RecordedPlay Trainer::next_play() {
  return data_->plays.first_play(data_->state.cursor);
}

}  // namespace xtape
