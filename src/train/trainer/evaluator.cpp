#include "train/trainer/evaluator.hpp"

#include <algorithm>
#include <cmath>

#include "base/arrays/elements.hpp"
#include "base/arrays/lengths.hpp"
#include "base/messages/wording.hpp"
#include "kernels/table/kernels.hpp"
#include "ranks/rank_group.hpp"

namespace xtape::train {

namespace {
constexpr const char* usual_loss = "loss";
constexpr const char* plain_loss = "plain_loss";
constexpr const char* accuracy = "accuracy";
}  // namespace

Evaluator::Evaluator(Model& model, std::vector<std::string> losses, const PlayerOptions& playing,
                     std::function<void()> make_room)
    : model_(model), losses_(std::move(losses)), measuring_(64, playing, std::move(make_room)) {
  const std::vector<std::string> known = model.functions();
  // Without losses, `loss` is required: if it is missing, recording it throws the error.
  if (losses_.empty() || contains(known, usual_loss)) functions_.emplace_back(usual_loss);
  for (const std::string& loss : losses_)
    if (!contains(functions_, loss)) functions_.push_back(loss);
  for (const char* measure : {plain_loss, accuracy})
    if (contains(known, measure)) functions_.emplace_back(measure);
  restart();
}

void Evaluator::restart() {
  sums_.assign(2 * functions_.size() + 1, 0);
  failed_.reset();
}

Evaluator::Measuring::Recording Evaluator::record(const BatchArrays& batch) const {
  Tape tape(Mode::eval);
  NamedVars inputs, played;
  Measured notes;
  const auto keep = [&](const std::string& name, const Loss& of) {
    notes.results.push_back(of);
    played.add(name, of.sum);
    played.add("count of " + name, of.count);
  };
  for (const std::string& name : functions_) {
    if (name == plain_loss || name == accuracy) {
      keep(name, loss_of(model_, inputs, model_.record(tape, name, inputs), name, false));
      continue;
    }
    const RecordedLoss recorded = record_loss(model_, name, tape, loss_sizes(model_, name, batch));
    if (notes.results.empty()) notes.states = recorded.states;
    for (const auto& [input, var] : recorded.inputs)
      if (!inputs.has(input)) inputs.add(input, var);
    keep(name, recorded.loss);
  }
  for (const CarriedState& state : notes.states) played.add("state " + state.name, state.result);
  return {tape, inputs, played, notes};
}

Evaluator::Sums Evaluator::play(std::size_t item, const BatchArrays& batch, bool continues) {
  auto& measuring = *measuring_.of({functions_[0], Mode::eval, loss_sizes(model_, functions_[0], batch), "measures"},
                                   [&](const FunctionKey&) { return record(batch); });
  const std::vector<CarriedState>& states = measuring.notes.states;
  const Store before = continues ? first_rows(left_, states) : Store();
  const std::vector<Feed> feeds = feeds_of(measuring.inputs, batch, states, continues ? &before : nullptr);
  try {
    measuring.player.play(feeds, 0);
  } catch (const Error&) {
    if (!folders.capsule.empty()) failed_ = {item, failed_play(measuring, feeds, 0)};
    throw;
  }
  Sums sums;
  for (const Loss& result : measuring.notes.results) {
    sums.push_back(measuring.player.scalar(result.sum));
    sums.push_back(measuring.player.scalar(result.count));
  }
  sums.push_back(0);
  for (const CarriedState& state : states) sums.back() += all_finite(measuring.player.view(state.result)) ? 0 : 1;
  if (!what_is_not_finite(sums).empty() && !failed_) failed_ = {item, failed_play(measuring, feeds, 0)};
  keep(measuring.player, states, left_);
  return sums;
}

std::string Evaluator::what_is_not_finite(const Sums& sums) const {
  for (std::size_t i = 0; i < functions_.size(); ++i)
    if (!std::isfinite(sums[2 * i]) || !std::isfinite(sums[2 * i + 1])) return functions_[i];
  return sums.back() > 0 ? "carried state" : "";
}

void Evaluator::add(const Sums& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums_[i] += sums[i];
}

void Evaluator::check(const Sums& sums, std::size_t item, ranks::RankGroup& group) const {
  if (const std::string what = what_is_not_finite(sums); !what.empty())
    throw EvaluationError(not_finite_text(what + " of " + name + ", in its batch " + std::to_string(item + 1) + ",",
                                          failure_of(item), group, folders));
}

const FailedPlay* Evaluator::failure_of(std::size_t item) const {
  return failed_ && failed_->item == item ? &failed_->play : nullptr;
}

std::string Evaluator::saved_failure(std::size_t item) const {
  const FailedPlay* failed = failure_of(item);
  return failed != nullptr && failed->capsule ? save_failure(*failed, folders) : "";
}

std::optional<double> Evaluator::mean(const std::string& function) const {
  const auto found = std::ranges::find(functions_, function);
  if (found == functions_.end()) return {};
  const auto i = static_cast<std::size_t>(found - functions_.begin());
  return sums_[2 * i] / sums_[2 * i + 1];
}

Evaluation Evaluator::measured() const {
  if (sums_[1] == 0) throw Error("there is nothing to evaluate on: no target counts");
  Evaluation evaluation;
  evaluation.loss = *mean(functions_[0]);
  for (const std::string& loss : losses_) evaluation.losses.push_back({loss, *mean(loss)});
  evaluation.tokens = std::llround(sums_[1]);
  if (const std::optional<double> plain = mean(plain_loss)) evaluation.perplexity = kernels().numbers.exp(*plain);
  evaluation.accuracy = mean(accuracy);
  return evaluation;
}

}  // namespace xtape::train

namespace xtape {

namespace {
/// Returns the rank that computes each validation batch. Consecutive batches that continue each other form a sequence
/// and stay together. If there are fewer sequences than ranks, every rank computes all batches, and every entry is -1.
std::vector<int> ranks_of(const Batches& batches, int ranks) {
  std::vector<int> of_batch;
  int sequences = 0;
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    sequences += index == 0 || !batches.validation_continues(index) ? 1 : 0;
    of_batch.push_back((sequences - 1) % ranks);
  }
  if (sequences < ranks) of_batch.assign(of_batch.size(), -1);
  return of_batch;
}

/// The outcome of an item: its sums, or the text of an error.
enum class Outcome : char { sums, error, definition_error };
}  // namespace

void train::add_shared(Evaluator& evaluator, const std::vector<int>& ranks, ranks::RankGroup& group,
                       const std::function<Evaluator::Sums(std::size_t)>& play) {
  ranks::PackedBytes own;
  bool threw = false;
  const auto add_error = [&](Outcome outcome, const Error& error) {
    threw = true;
    own.add(outcome);
    own.add_text(error.what());
  };
  for (std::size_t i = 0; i < ranks.size() && !threw; ++i) {
    if (ranks[i] >= 0 && ranks[i] != group.rank()) continue;
    try {
      const Evaluator::Sums sums = play(i);
      own.add(Outcome::sums);
      for (const double sum : sums) own.add(sum);
    } catch (const CommunicationError&) {
      throw;
    } catch (const DefinitionError& error) {  // the item was not played
      add_error(Outcome::definition_error, error);
    } catch (const Error& error) {
      add_error(Outcome::error, error);
    }
  }
  std::vector<ranks::PackedBytes> of_rank;
  for (std::string& bytes : group.all_gather(own.bytes())) of_rank.emplace_back(std::move(bytes));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Evaluator::Sums sums = evaluator.zero_sums();
    for (int rank = 0; rank < group.size(); ++rank) {
      if (ranks[i] >= 0 && ranks[i] != rank) continue;
      ranks::PackedBytes& outcomes = of_rank[rank];
      const auto outcome = outcomes.take<Outcome>();
      if (outcome == Outcome::sums) {
        for (double& sum : sums) sum = outcomes.take<double>();
        continue;
      }
      const std::string text = outcomes.take_text();
      if (outcome == Outcome::definition_error) throw DefinitionError(text);
      throw EvaluationError(evaluator.name + ", in its batch " + std::to_string(i + 1) + ": " + text +
                            (group.size() > 1 ? ", on " + group.name(rank) : "") +
                            (rank == group.rank() ? evaluator.saved_failure(i) : ""));
    }
    evaluator.check(sums, i, group);
    evaluator.add(sums);
  }
}

Evaluation train::evaluate(Evaluator& evaluator, const Batches& batches, ranks::RankGroup& group,
                           const std::function<void()>& between) {
  evaluator.restart();
  BatchArrays batch = batches.blank();
  add_shared(evaluator, ranks_of(batches, group.size()), group, [&](std::size_t i) {
    if (between) between();
    const auto index = static_cast<std::int64_t>(i);
    batches.validation(index, batch);
    return evaluator.play(i, batch, batches.validation_continues(index));
  });
  return evaluator.measured();
}

Evaluation evaluate(Model& model, const Batches& batches) {
  train::Evaluator evaluator(model);
  ranks::RankGroup alone(nullptr);
  return train::evaluate(evaluator, batches, alone);
}

double sampled_loss(Model& model, const Batches& batches, std::int64_t count) {
  if (count < 1) throw Error("the loss of " + std::to_string(count) + " batches has no mean: sample at least one");
  train::Evaluator evaluator(model);
  ranks::RankGroup alone(nullptr);
  BatchArrays batch = batches.blank();
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    batches.validation_sample(i, batch);
    const train::Evaluator::Sums sums = evaluator.play(i, batch);
    evaluator.check(sums, i, alone);
    evaluator.add(sums);
  }
  return evaluator.measured().loss;
}

namespace {
constexpr std::int64_t tokens_at_once = 1024;
constexpr std::int64_t not_counted = -1;

/// Cuts a text into windows, which are the rows of batches.
class Windows {
 public:
  Windows(const Tokens& tokens, const TextWindows& options)
      : tokens_(tokens),
        context_(static_cast<std::size_t>(options.context)),
        stride_(static_cast<std::size_t>(options.stride)),
        columns_(static_cast<std::int64_t>(std::min(tokens.size(), context_)) - 1) {
    const std::size_t beyond_first = tokens.size() - static_cast<std::size_t>(columns_) - 1;
    left_ = static_cast<std::int64_t>(ceiling(beyond_first, stride_)) + 1;
    rows_ = std::min(left_, std::max<std::int64_t>(1, tokens_at_once / options.context));
    batches_ = static_cast<std::size_t>(ceiling(left_, rows_));
  }

  std::size_t batches() const { return batches_; }

  /// Returns a batch of the next windows. The last batch may have fewer rows.
  const BatchArrays& next() {
    const Shape shape{std::min(rows_, left_), columns_};
    left_ -= shape[0];
    if (batch_.empty() || batch_.at("tokens").shape() != shape)
      batch_ = {{"tokens", Array(Dtype::int64, shape)}, {"targets", Array(Dtype::int64, shape)}};
    Array inputs = batch_.at("tokens");
    Array targets = batch_.at("targets");
    for (std::int64_t row = 0; row < inputs.shape()[0]; ++row)
      fill(inputs.as<std::int64_t>() + row * columns_, targets.as<std::int64_t>() + row * columns_);
    return batch_;
  }

 private:
  void fill(std::int64_t* inputs, std::int64_t* targets) {
    std::fill_n(inputs, columns_, std::int64_t{0});
    std::fill_n(targets, columns_, not_counted);
    const std::size_t end = std::min(begin_ + context_, tokens_.size());
    for (std::size_t i = begin_ + 1; i < end; ++i) {
      inputs[i - begin_ - 1] = tokens_[i - 1];
      if (i >= counted_) targets[i - begin_ - 1] = tokens_[i];
    }
    counted_ = end;
    begin_ += stride_;
  }

  const Tokens& tokens_;
  std::size_t context_, stride_;
  std::int64_t columns_;
  std::size_t begin_ = 0;    // the first token of the next window
  std::size_t counted_ = 0;  // the end of the last window; all earlier tokens have been counted
  std::size_t batches_ = 0;
  std::int64_t left_ = 0;  // windows that no batch has had
  std::int64_t rows_ = 0;  // the most windows of a batch
  BatchArrays batch_;
};
}  // namespace

TextEvaluation evaluate_text(Model& model, const Tokens& tokens, const TextWindows& options,
                             const std::shared_ptr<Communicator>& communicator) {
  if (options.context < 2)
    throw Error("a window needs at least 2 tokens, one to read and one to predict, not " +
                std::to_string(options.context));
  if (options.stride < 1 || options.stride > options.context)
    throw Error("the stride of windows must be 1 to their length of " + std::to_string(options.context) + ", not " +
                std::to_string(options.stride));
  if (tokens.size() < 2)
    throw Error("a text of " + std::to_string(tokens.size()) + " tokens has no token to predict: it needs at least 2");
  train::Evaluator evaluator(model);
  Windows windows(tokens, options);
  ranks::RankGroup group(communicator);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < windows.batches(); ++i)
    ranks.push_back(static_cast<int>(i % static_cast<std::size_t>(group.size())));
  std::size_t made = 0;  // number of batches
  train::add_shared(evaluator, ranks, group, [&](std::size_t i) {
    for (; made < i; ++made) windows.next();
    ++made;
    return evaluator.play(i, windows.next());
  });
  const Evaluation measured = evaluator.measured();
  return {measured.tokens, measured.perplexity ? kernels().numbers.log(*measured.perplexity) : measured.loss};
}

}  // namespace xtape
