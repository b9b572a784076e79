// A model's cache of players.
#include <algorithm>

#include "model_data.hpp"

namespace xtape {

std::shared_ptr<PlayableFunction> Model::player(const std::string& function, Mode mode, const NamedSizes& sizes) {
  NamedSizes sorted = sizes;
  std::sort(sorted.begin(), sorted.end());
  auto& players = data_->players;
  const auto found = std::find_if(players.begin(), players.end(), [&](const auto& each) {
    return each->function == function && each->mode == mode && each->sizes == sorted;
  });
  if (found != players.end()) {
    players.splice(players.begin(), players, found);
    return players.front();
  }
  Tape tape(mode);
  const NamedVars given = inputs(tape, function, sorted);
  const NamedVars results = record(tape, function, given);
  Vars outputs;
  for (const auto& each : results) outputs.push_back(each.second);
  Player player(tape, outputs, data_->player_options);
  players.push_front(std::make_shared<PlayableFunction>(
      PlayableFunction{function, mode, sorted, tape, given, results, std::move(player)}));
  while (players.size() > data_->player_capacity) players.pop_back();
  return players.front();
}

std::vector<std::shared_ptr<const PlayableFunction>> Model::players() const {
  return {data_->players.begin(), data_->players.end()};
}

void Model::set_player_options(std::size_t capacity, const PlayerOptions& options) {
  data_->players.clear();
  data_->player_capacity = std::max<std::size_t>(1, capacity);
  data_->player_options = options;
  if (data_->player_options.arena == nullptr) data_->player_options.arena = make_arena();
}

const PlayerOptions& Model::player_options() const {
  return data_->player_options;
}

}  // namespace xtape
