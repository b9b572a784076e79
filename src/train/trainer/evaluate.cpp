#include "ranks/shared_work.hpp"
#include "train/trainer/evaluator.hpp"

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
      own.add(sums);
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
    Evaluator::Sums sums{};
    for (int rank = 0; rank < group.size(); ++rank) {
      if (ranks[i] >= 0 && ranks[i] != rank) continue;
      ranks::PackedBytes& outcomes = of_rank[rank];
      const auto outcome = outcomes.take<Outcome>();
      if (outcome == Outcome::sums) {
        sums = outcomes.take<Evaluator::Sums>();
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

}  // namespace xtape
