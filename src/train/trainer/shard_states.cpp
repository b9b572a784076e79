// Gathers the carried states of a whole batch from the shards of all ranks, and distributes them to the shards.
#include <algorithm>

#include "train/trainer/shard_plays.hpp"

namespace xtape::train {

std::vector<CarriedState> ShardPlays::whole_states(std::uint64_t cursor) {
  if (options_.shards == 1) return steps_.of(batch_at(cursor)).notes.states;
  const std::int64_t rows = rows_at(cursor);
  std::vector<CarriedState> states = steps_.of(shard_at(cursor, 0)).notes.states;
  for (std::size_t i = 0; i < states.size(); ++i) {
    Shape shape = states[i].zeros.shape();
    shape[axes_[i]] = rows;
    states[i].zeros = Array(states[i].zeros.dtype(), shape);
  }
  return states;
}

Store ShardPlays::gather_carried(std::uint64_t cursor, ranks::RankGroup& group) {
  if (!continues(cursor) || carried_names(model_, "loss").empty()) return {};
  if (options_.shards == 1) return carried_[0];
  const std::int64_t rows = rows_at(cursor);
  Store whole;
  std::vector<Communicator::Request> requests;
  const std::vector<CarriedState> states = whole_states(cursor);
  for (std::size_t i = 0; i < states.size(); ++i) {
    Array array = states[i].zeros.clone();
    for (int rank = 0; rank < group.size(); ++rank) {
      if (rank != group.rank() && group.rank() != 0) continue;
      const ranks::Shards shards = ranks::shards_of(rank, group.size(), options_.shards);
      for (std::int64_t shard = shards.first; shard < shards.last; ++shard) {
        const ranks::Shards of = rows_of_shard(rows, shard, options_.shards);
        if (of.count() == 0) continue;
        const auto own = static_cast<std::size_t>(shard - optimizer_.first_shard());
        Array part =
            rank == group.rank() ? carried_[own].at(states[i].name) : part_of(array, axes_[i], of.first, of.last);
        if (rank != group.rank())
          requests.push_back(group.communicator().receive(rank, part.data(), part.bytes()));
        else if (rank != 0)
          requests.push_back(group.communicator().send(0, part.data(), part.bytes()));
        group.wait(requests);
        if (group.rank() == 0) set_part(array, axes_[i], of.first, part);
      }
    }
    whole.add(states[i].name, array);
  }
  return group.rank() == 0 ? whole : Store();
}

void ShardPlays::set_carried(std::uint64_t cursor, const Store& whole) {
  if (whole.empty()) {
    for (Store& states : carried_) states = Store();
    return;
  }
  if (options_.shards == 1) {
    carried_[0] = whole;
    return;
  }
  const std::int64_t rows = rows_at(cursor);
  const std::vector<std::string> names = carried_names(model_, "loss");
  for (std::size_t own = 0; own < carried_.size(); ++own) {
    const ranks::Shards of =
        rows_of_shard(rows, optimizer_.first_shard() + static_cast<std::int64_t>(own), options_.shards);
    carried_[own] = Store();
    if (of.count() == 0) continue;
    for (std::size_t i = 0; i < names.size(); ++i)
      carried_[own].add(names[i], part_of(whole.at(names[i]), axes_[i], of.first, of.last));
  }
}

}  // namespace xtape::train
