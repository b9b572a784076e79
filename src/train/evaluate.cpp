#include "evaluate.hpp"

#include <algorithm>
#include <cstring>

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
}  // namespace

void train::add_shared(Evaluator& evaluator, const std::vector<int>& ranks, RankGroup& group,
                       const std::function<Evaluator::Sums(std::size_t)>& play) {
  using Sums = Evaluator::Sums;
  std::vector<Sums> of_item(ranks.size());
  std::vector<std::string> of_rank(static_cast<std::size_t>(group.size()));
  const auto bytes_of = [&](std::size_t i) -> std::string& { return of_rank[static_cast<std::size_t>(ranks[i])]; };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] == group.rank()) of_item[i] = play(i);
    if (ranks[i] >= 0) bytes_of(i).append(reinterpret_cast<const char*>(&of_item[i]), sizeof(Sums));
  }
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
    return evaluator.play(batch, batches.validation_continues(index));
  });
  return evaluator.measured();
}

Evaluation evaluate(Model& model, const Batches& batches) {
  train::Evaluator evaluator(model);
  train::RankGroup alone(nullptr);
  return train::evaluate(evaluator, batches, alone);
}

double sampled_loss(Model& model, const Batches& batches, std::int64_t count) {
  train::Evaluator evaluator(model);
  train::RankGroup alone(nullptr);
  Batch batch = batches.blank();
  train::add_shared(evaluator, std::vector<int>(static_cast<std::size_t>(std::max<std::int64_t>(0, count)), 0), alone,
                    [&](std::size_t i) {
                      batches.validation_sample(i, batch);
                      return evaluator.play(batch);
                    });
  return evaluator.measured().loss;
}

}  // namespace xtape
