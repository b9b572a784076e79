#include <chrono>
#include <cmath>

#include "checkpoint.hpp"
#include "evaluate.hpp"
#include "threads.hpp"
#include "trained_weights.hpp"
#include "training_steps.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/train.hpp"

namespace xtape {

namespace {
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// sum += part, or sum = part.
template <class T>
void accumulate_as(Array& sum, const ArrayView& part, bool first, int threads) {
  T* to = sum.as<T>();
  const T* from = part.as<T>();
  parallel_for(threads, sum.count(), 1 << 14, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = first ? from[i] : to[i] + from[i];
  });
}

void accumulate(Array& sum, const ArrayView& part, bool first, int threads) {
  sum.dtype() == Dtype::float64 ? accumulate_as<double>(sum, part, first, threads)
                                : accumulate_as<float>(sum, part, first, threads);
}
}  // namespace

struct Trainer::Data {
  Data(Model& the_model, const Batches& the_batches, const TrainerOptions& the_options)
      : model(the_model),
        batches(the_batches),
        options(the_options),
        batch(the_batches.blank()),
        trained(train::trained_weights(model, options)),
        steps(model, options, trained),
        optimizer(trained, options.optimizer, options.threads) {
    steps.of(batch);
    parts.resize(trained.size());
    if (options.accumulate == 1) return;
    for (const Store::Entry& weight : trained) sums.emplace_back(weight.value.dtype(), weight.value.shape());
  }

  Model& model;
  const Batches& batches;
  TrainerOptions options;
  Batch batch;
  Store trained;
  train::TrainingSteps steps;
  Optimizer optimizer;
  std::vector<Array> sums;       // sums of gradients over micro-batches, by weight; empty if there is one micro-batch
  std::vector<ArrayView> parts;  // the gradients that the optimiser reads, by weight; null data: no gradient
  Store carried;                 // the carried states that the next update starts from
  Store left;                    // the carried states after the last micro-batch
  train::State state;
  std::optional<train::Evaluator> evaluator;
  std::function<bool()> interrupt;  // the callback of fit(), while it runs
  double batch_seconds = 0;         // of all updates since the trainer was made, or the last profile began
  double optimizer_seconds = 0;

  bool continues(std::uint64_t cursor) const { return batches.training_continues(cursor); }

  void between() const {
    if (interrupt && interrupt()) throw train::Interruption();
  }

  /// Feeds for the micro-batch at `cursor`, which is in `batch`. The `first` one of an update starts from the states of
  /// the last update, the others from those of the micro-batch before.
  std::vector<Feed> feeds(const train::TrainingStep& step, std::uint64_t cursor, bool first) const {
    const Store* before = !continues(cursor) ? nullptr : first ? &carried : &left;
    return train::feeds_of(step.inputs, batch, step.notes.states, before);
  }

  /// Plays the micro-batch at `cursor`, and returns its sum of losses and its count.
  std::pair<double, double> play(std::uint64_t cursor, bool first) {
    const Clock::time_point start = Clock::now();
    batches.training(cursor, batch);
    batch_seconds += seconds_since(start);
    train::TrainingStep& step = steps.of(batch);
    Player& player = step.player;
    player.play(feeds(step, cursor, first), cursor);
    train::keep(player, step.notes.states, left);
    if (first) std::fill(parts.begin(), parts.end(), ArrayView());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (step.notes.gradients[i].empty()) continue;
      const ArrayView gradient = player.view(step.notes.gradients[i]);
      if (!sums.empty()) accumulate(sums[i], gradient, parts[i].data() == nullptr, player.threads());
      parts[i] = sums.empty() ? gradient : sums[i];
    }
    return {player.scalar(step.notes.loss.sum), player.scalar(step.notes.loss.count)};
  }

  /// Records an evaluation and whether it is the best so far. A non-finite one is never the best.
  void note(const Evaluation& evaluation) {
    const double measure = evaluation.perplexity.value_or(evaluation.loss);
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

  /// Plays the update's micro-batches again to find the op that gives the non-finite value, and throws TrainingError.
  [[noreturn]] void not_finite(const std::string& what) {
    std::string culprit;
    for (std::int64_t i = 0; i < options.accumulate && culprit.empty(); ++i) {
      const std::uint64_t cursor = state.cursor + static_cast<std::uint64_t>(i);
      batches.training(cursor, batch);
      train::TrainingStep& step = steps.of(batch);
      culprit = step.player.first_not_finite(feeds(step, cursor, i == 0), cursor);
      if (culprit.empty()) play(cursor, i == 0);  // computes the states that the next one starts from
    }
    throw TrainingError("the " + what + " of update " + std::to_string(state.step + 1) + " is not finite" +
                        (culprit.empty() ? "" : ": " + culprit));
  }
};

Trainer::Trainer(Model& model, const Batches& batches, const TrainerOptions& options) {
  if (options.accumulate < 1) throw Error("an update must have at least one micro-batch");
  data_ = std::make_unique<Data>(model, batches, options);
  data_->state.seed = options.seed;
  data_->state.epoch_batches = batches.epoch_batches();
}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

std::int64_t Trainer::step() const {
  return data_->state.step;
}
const Store& Trainer::trained() const {
  return data_->trained;
}
const Plan& Trainer::plan() const {
  return data_->steps.of(data_->batches.blank()).player.plan();
}

StepReport Trainer::update() {
  Data& d = *data_;
  const Clock::time_point start = Clock::now();
  double sum = 0;
  double count = 0;
  const auto micro_batches = static_cast<std::uint64_t>(d.options.accumulate);
  for (std::uint64_t i = 0; i < micro_batches; ++i) {
    d.between();
    const auto [part, counted] = d.play(d.state.cursor + i, i == 0);
    sum += part;
    count += counted;
  }
  if (!std::isfinite(sum)) d.not_finite("loss");
  if (count == 0) throw TrainingError("update " + std::to_string(d.state.step + 1) + " has no target that counts");
  StepReport report;
  report.rate = rate_at(d.options.schedule, d.state.step + 1);
  const Clock::time_point computed = Clock::now();
  report.norm = d.optimizer.update(d.parts, report.rate, 1 / count, d.options.clip);
  d.optimizer_seconds += seconds_since(computed);
  if (!std::isfinite(report.norm)) d.not_finite("gradient");
  std::swap(d.carried, d.left);
  d.state.cursor += micro_batches;
  report.step = ++d.state.step;
  report.loss = sum / count;
  report.tokens = std::llround(count);
  report.seconds = seconds_since(start);
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
  d.batch_seconds = d.optimizer_seconds = 0;
  TrainingProfile profile;
  profile.updates = updates;
  for (std::int64_t i = 0; i < updates; ++i) profile.seconds += update().seconds;
  profile.steps = d.steps.profile();
  profile.fusions = d.steps.fusions();
  profile.batch_seconds = d.batch_seconds;
  profile.optimizer_seconds = d.optimizer_seconds;
  return profile;
}

Evaluation Trainer::evaluate() {
  if (!data_->evaluator) data_->evaluator.emplace(data_->model);
  Evaluation evaluation = train::evaluate(*data_->evaluator, data_->batches, [this] { data_->between(); });
  evaluation.step = step();
  return evaluation;
}

double Trainer::sampled_loss(std::int64_t count) {
  return xtape::sampled_loss(data_->model, data_->batches, count);
}

std::int64_t Trainer::epoch() const {
  const std::int64_t batches = data_->batches.epoch_batches();
  return batches == 0 ? 0 : static_cast<std::int64_t>(data_->state.cursor) / batches;
}

std::int64_t Trainer::best_step() const {
  return data_->state.best_step;
}

std::int64_t Trainer::evaluated_step() const {
  return data_->state.evaluated;
}

bool Trainer::fit(const FitOptions& options, const Callbacks& callbacks) {
  if (options.steps == 0 && options.epochs == 0) throw Error("training needs a number of steps or of epochs");
  if ((options.epochs > 0 || options.evaluate_epochs) && data_->batches.epoch_batches() == 0)
    throw Error("this data has no epochs: its batches are drawn at random");
  const auto report_evaluation = [&] {
    const Evaluation evaluation = evaluate();
    if (callbacks.evaluation) callbacks.evaluation(evaluation);
    data_->note(evaluation);  // after the callback, which may measure more and be interrupted
  };
  const auto ended = [&] {
    return (options.steps > 0 && step() >= options.steps) || (options.epochs > 0 && epoch() >= options.epochs) ||
           (options.patience > 0 && data_->state.stale >= options.patience);
  };
  struct Asked {
    Asked(std::function<bool()>& place, const std::function<bool()>& interrupt) : of(place) { of = interrupt; }
    ~Asked() { of = nullptr; }
    std::function<bool()>& of;
  };
  const Asked asked(data_->interrupt, callbacks.interrupt);  // set until fit() returns
  try {
    if (data_->state.evaluation_due) report_evaluation();
    while (!ended()) {
      const std::int64_t epoch_before = epoch();
      const StepReport report = update();
      if (callbacks.step) callbacks.step(report);
      data_->state.evaluation_due = (options.evaluate_every > 0 && step() % options.evaluate_every == 0) ||
                                    (options.evaluate_epochs && epoch() > epoch_before);
      if (data_->state.evaluation_due) report_evaluation();
      if (!ended() && callbacks.stop && callbacks.stop()) return false;
    }
    if (data_->state.evaluated != step()) report_evaluation();
  } catch (const train::Interruption&) {
    return false;
  }
  return true;
}

void Trainer::save(const std::string& path) const {
  const Data& d = *data_;
  train::write_checkpoint(path, d.model.weights(), d.optimizer.state(), d.state,
                          d.continues(d.state.cursor) ? d.carried : Store());
}

void Trainer::load(const std::string& path) {
  Data& d = *data_;
  train::State state = train::read_state(path);
  if (state.seed != d.options.seed)
    throw FileError("checkpoint " + path + " is from a run with seed " + std::to_string(state.seed) + ", not " +
                    std::to_string(d.options.seed));
  const std::string file = path + "/optimizer.safetensors";
  const Store moments = load_arrays(file);
  for (const Store::Entry& entry : d.optimizer.state()) {
    const Array* found = moments.find(entry.name);
    if (found == nullptr || found->dtype() != entry.value.dtype() || found->shape() != entry.value.shape())
      throw FileError(file + " does not hold '" + entry.name + "' as " + name_of(entry.value.dtype()) + " " +
                      to_string(entry.value.shape()) + ": it is from another optimiser or model");
  }
  const std::int64_t epoch_batches = d.batches.epoch_batches();
  if (epoch_batches > 0 && state.epoch_batches != epoch_batches) {
    const std::int64_t before = state.epoch_batches > 0 ? state.epoch_batches : epoch_batches;
    const std::uint64_t epochs = state.cursor / static_cast<std::uint64_t>(before);
    if (__builtin_mul_overflow(epochs, static_cast<std::uint64_t>(epoch_batches), &state.cursor))
      throw FileError("checkpoint " + path + " is of epoch " + std::to_string(epochs) +
                      ", which is too large to be valid");
  }
  state.epoch_batches = epoch_batches;
  Store carried;
  if (d.continues(state.cursor)) {
    d.batches.training(state.cursor, d.batch);
    carried = train::read_carried(path, d.steps.of(d.batch).notes.states);
  }
  d.model.load_weights(path + "/weights.safetensors");  // checks everything before it changes the model
  for (Store::Entry entry : d.optimizer.state()) entry.value.assign(moments.at(entry.name));
  d.carried = std::move(carried);
  d.state = state;
}

}  // namespace xtape
