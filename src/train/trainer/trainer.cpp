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
  return {.optimizer = options.optimizer,
          .shards = options.shards,
          .micro_batches = options.accumulate,
          .communicator = options.communicator,
          .threads = options.threads,
          .groups = options.groups};
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

train::UpdateSums Trainer::Data::zero_sums() const {
  train::UpdateSums sums;
  sums.not_finite_states.resize(plays.states().size());
  sums.updates.resize(updates.elements());
  return sums;
}

void Trainer::Data::play(const train::ShardPlay& play, train::UpdateSums& shard) {
  const BatchArrays batch = plays.batch(play);
  train::TrainingStep& step = steps.of(batch);
  step.player.play(plays.feeds(step, play, batch), play.draw,
                   optimizer.expect(step.player, step.notes.gradients, play.last));
  optimizer.add();
  plays.keep(step, play);
  shard.plays += 1;
  shard.loss += step.player.scalar(step.notes.loss.sum);
  shard.count += step.player.scalar(step.notes.loss.count);
  for (std::size_t i = 0; i < shard.not_finite_states.size(); ++i)
    if (!all_finite(step.player.view(step.notes.states[i].result))) shard.not_finite_states[i] = 1;
  updates.add(step.player, step.notes.updates, shard.updates);
}

std::vector<train::UpdateSums> Trainer::Data::play() {
  std::vector<train::UpdateSums> shards;
  UpdatePart done{state.step + 1, 0, options.accumulate * std::max<std::int64_t>(1, plays.own_shards())};
  try {
    const std::int64_t present = plays.present(state.cursor);
    optimizer.begin(present);
    for (const train::ShardPlay& each : plays.of_update(state.cursor, present)) {
      between();
      if (done.plays > 0 && called != nullptr && called->part) called->part(done);
      ++done.plays;
      if (each.first) shards.push_back(zero_sums());
      play(each, shards.back());
    }
  } catch (const CommunicationError&) {
    throw;  // no call has failed, only the communication
  } catch (const Error& error) {
    if (options.capsule.empty()) throw;
    const std::optional<train::FailedPlay> found = plays.find_failure(state.cursor);
    if (!found || !found->capsule) throw;
    throw TrainingError(error.what() + train::save_failure(*found, folders()));
  }
  for (train::UpdateSums& shard : shards) shard.interrupted = interrupted ? 1 : 0;
  return shards;
}

train::UpdateSums Trainer::Data::add(std::vector<train::UpdateSums>& shards) {
  train::UpdateSums sums = zero_sums();
  if (shards.empty()) shards.push_back(sums);  // a rank without shards tells how many numbers a shard has
  std::vector<double> numbers;
  for (train::UpdateSums& shard : shards) shard.for_each([&](double number) { numbers.push_back(number); });
  const std::vector<double> added = optimizer.sum(numbers);
  auto next = added.begin();
  sums.for_each([&](double& number) { number = *next++; });
  return sums;
}

void Trainer::Data::check(const train::UpdateSums& sums) {
  if (!std::isfinite(sums.loss)) throw_not_finite("loss");
  for (std::size_t i = 0; i < sums.not_finite_states.size(); ++i)
    if (sums.not_finite_states[i] > 0) throw_not_finite("carried state '" + plays.states()[i] + "'");
  if (const std::string weight = updates.first_not_finite(sums); !weight.empty())
    throw_not_finite("new value of weight '" + weight + "'");
  const std::string number = std::to_string(state.step + 1);
  // A draw may have no rows. The update then consists only of noise.
  if (sums.count == 0 && !privacy.on()) throw TrainingError("update " + number + " has no target that counts");
  if (!std::isfinite(sums.count) || sums.count < 0)
    throw TrainingError("update " + number + ": the count of targets, by which the loss is divided, is " +
                        to_string(Literal(sums.count)) + ", and must be above 0 and finite");
}

double Trainer::Data::update(double rate, const train::UpdateSums& sums) {
  const double start = Trace::now();
  const double norm = [&] {
    try {
      return optimizer.update(rate, 1 / privacy.divisor(sums.count), options.clip, privacy.noise(state.step));
    } catch (const UpdateError& error) {
      throw_overflow(error);
    }
  }();
  if (options.trace) options.trace->add("optimizer", start);
  optimizer_seconds += Trace::now() - start;
  if (!std::isfinite(norm)) throw_not_finite("gradient");
  if (memory) memory->updated();
  updates.assign(sums);
  plays.advance();
  state.cursor += static_cast<std::uint64_t>(options.accumulate);
  ++state.step;
  return norm;
}

void Trainer::Data::throw_not_finite(const std::string& what) {
  const std::string update = " of update " + std::to_string(state.step + 1);
  const std::optional<train::FailedPlay> own = plays.find_failure(state.cursor);
  throw TrainingError(train::not_finite_text(what + update, own ? &*own : nullptr, group, folders()));
}

void Trainer::Data::throw_overflow(const UpdateError& error) {
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
  std::vector<train::UpdateSums> shards = d.play();
  const train::UpdateSums sums = d.add(shards);
  if (sums.interrupted > 0) d.stop_here();
  d.check(sums);
  StepReport report;
  report.rate = rate_at(d.options.schedule, step() + 1);
  report.norm = d.update(report.rate, sums);
  report.step = step();
  report.loss = sums.loss / sums.count;
  report.tokens = std::llround(sums.count);
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
