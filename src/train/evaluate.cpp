#include "evaluate.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "shared_work.hpp"

namespace xtape {

namespace {
/// The rank that computes each validation batch. Batches that continue each other stay together. If there are fewer
/// such sequences than ranks, every rank computes all of them (-1).
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

/// What the play of an item threw.
struct Thrown {
  std::size_t item = 0;
  bool of_definition = false;  // a DefinitionError: the item was not played
  std::string text;
};

/// Throws DefinitionError or EvaluationError if a play threw on any rank: that of the first item. All ranks call it at
/// once.
void leave_together(const std::optional<Thrown>& own, const train::Evaluator& evaluator, train::RankGroup& group) {
  train::PackedBytes bytes;
  if (own) {
    bytes.add(own->item);
    bytes.add(own->of_definition);
    bytes.add_text(own->text);
  }
  const std::vector<std::string> of_rank = group.all_gather(bytes.bytes());
  std::optional<Thrown> first;
  int from = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    train::PackedBytes theirs(of_rank[static_cast<std::size_t>(rank)]);
    if (theirs.at_end()) continue;
    const auto item = theirs.take<std::size_t>();
    if (first && first->item <= item) continue;
    const bool of_definition = theirs.take<bool>();
    first = {item, of_definition, theirs.take_text()};
    from = rank;
  }
  if (!first) return;
  if (first->of_definition) throw DefinitionError(first->text);
  throw EvaluationError(evaluator.name + ", in its batch " + std::to_string(first->item + 1) + ": " + first->text +
                        (group.size() > 1 ? ", on " + group.name(from) : "") +
                        (from == group.rank() ? evaluator.saved_failure(first->item) : ""));
}
}  // namespace

void train::add_shared(Evaluator& evaluator, const std::vector<int>& ranks, RankGroup& group,
                       const std::function<Evaluator::Sums(std::size_t)>& play) {
  using Sums = Evaluator::Sums;
  std::vector<Sums> of_item(ranks.size());
  std::vector<std::string> of_rank(static_cast<std::size_t>(group.size()));
  const auto bytes_of = [&](std::size_t i) -> std::string& { return of_rank[static_cast<std::size_t>(ranks[i])]; };
  std::optional<Thrown> thrown;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!thrown && (ranks[i] < 0 || ranks[i] == group.rank())) {
      try {
        of_item[i] = play(i);
      } catch (const CommunicationError&) {
        throw;
      } catch (const DefinitionError& error) {
        thrown = {i, true, error.what()};
      } catch (const Error& error) {
        thrown = {i, false, error.what()};
      }
    }
    if (ranks[i] >= 0) bytes_of(i).append(reinterpret_cast<const char*>(&of_item[i]), sizeof(Sums));
  }
  leave_together(thrown, evaluator, group);
  group.all_gather(of_rank);
  std::vector<std::size_t> taken(of_rank.size(), 0);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] >= 0) {
      std::size_t& at = taken[static_cast<std::size_t>(ranks[i])];
      std::memcpy(&of_item[i], bytes_of(i).data() + at, sizeof(Sums));
      at += sizeof(Sums);
    }
    evaluator.check(of_item[i], i, group);
    evaluator.add(of_item[i]);
  }
}

Evaluation train::evaluate(Evaluator& evaluator, const Batches& batches, RankGroup& group,
                           const std::function<void()>& between) {
  evaluator.restart();
  Batch batch = batches.blank();
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
  train::RankGroup alone(nullptr);
  return train::evaluate(evaluator, batches, alone);
}

double sampled_loss(Model& model, const Batches& batches, std::int64_t count) {
  if (count < 1) throw Error("the loss of " + std::to_string(count) + " batches has no mean: sample at least one");
  train::Evaluator evaluator(model);
  train::RankGroup alone(nullptr);
  Batch batch = batches.blank();
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    batches.validation_sample(i, batch);
    const train::Evaluator::Sums sums = evaluator.play(i, batch);
    evaluator.check(sums, i, alone);
    evaluator.add(sums);
  }
  return evaluator.measured().loss;
}

}  // namespace xtape
