// A model's cache of players.
#include <algorithm>

#include "model_data.hpp"

namespace xtape {

std::shared_ptr<PlayableFunction> Model::player(const std::string& function, Mode mode, const NamedSizes& sizes) {
  NamedSizes sorted = sizes;
  std::sort(sorted.begin(), sorted.end());
  const auto fits = [&](const auto& each) {
    return each->function == function && each->mode == mode && each->sizes == sorted;
  };
  if (const auto* known = data_->players.find(fits)) return *known;
  Tape tape(mode);
  const NamedVars given = inputs(tape, function, sorted);
  const NamedVars results = record(tape, function, given);
  Vars outputs;
  for (const auto& each : results) outputs.push_back(each.second);
  Player player(tape, outputs, data_->player_options);
  return data_->players.add(std::make_shared<PlayableFunction>(
      PlayableFunction{function, mode, sorted, tape, given, results, std::move(player)}));
}

std::vector<std::shared_ptr<const PlayableFunction>> Model::players() const {
  const auto& kept = data_->players.all();
  return {kept.begin(), kept.end()};
}

void Model::set_player_options(std::size_t capacity, const PlayerOptions& options) {
  data_->players = Recent<std::shared_ptr<PlayableFunction>>(capacity);
  data_->player_options = options;
  if (data_->player_options.arena == nullptr) data_->player_options.arena = make_arena();
}

const PlayerOptions& Model::player_options() const {
  return data_->player_options;
}

}  // namespace xtape
