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

namespace {
const ArrayView* find(const NamedArrays& arrays, const std::string& name) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto& each) { return each.first == name; });
  return found == arrays.end() ? nullptr : &found->second;
}

std::string names_of(const NamedArrays& arrays) {
  std::string names;
  for (const auto& each : arrays) names += (names.empty() ? "" : ", ") + each.first;
  return names.empty() ? "no array is given" : "the arrays given are " + names;
}
}  // namespace

NamedSizes Model::sizes(const std::string& function, const NamedArrays& arrays,
                        const std::vector<std::string>& missing) const {
  const Signature& signature = this->signature(function);
  const std::string whose = "function '" + function + "' of model '" + name() + "'";
  const auto has = [](const std::vector<std::string>& names, const std::string& wanted) {
    return std::find(names.begin(), names.end(), wanted) != names.end();
  };
  NamedSizes sizes;
  const auto is_open = [&](const std::string& dim) {
    return has(signature.sizes, dim) &&
           std::none_of(sizes.begin(), sizes.end(), [&](const auto& size) { return size.first == dim; });
  };
  for (const FunctionInput& input : signature.inputs) {
    if (has(missing, input.name)) continue;
    const ArrayView* array = find(arrays, input.name);
    if (array == nullptr) throw Error(whose + " takes an input '" + input.name + "', but " + names_of(arrays));
    if (input.dtype != array->dtype() || input.dims.size() != array->shape().size())
      throw Error("input '" + input.name + "' of " + whose + " is " + name_of(input.dtype) + " of rank " +
                  std::to_string(input.dims.size()) + ", got " + name_of(array->dtype()) + " " +
                  to_string(array->shape()));
    for (std::size_t axis = 0; axis < input.dims.size(); ++axis)
      if (is_open(input.dims[axis])) sizes.emplace_back(input.dims[axis], array->shape()[axis]);
  }
  for (const FunctionInput& input : signature.inputs)
    for (const std::string& dim : input.dims)
      if (is_open(dim))
        throw Error("input '" + input.name + "' of " + whose + " has a size '" + dim +
                    "', which is neither a hyper-parameter nor a size of the arrays given");
  return sizes;
}

Store Model::play(const std::string& function, const NamedArrays& arrays, Mode mode) {
  const auto playable = player(function, mode, sizes(function, arrays));
  std::vector<Feed> feeds;
  for (const auto& [name, var] : playable->inputs) feeds.emplace_back(var, *find(arrays, name));
  playable->player.play(feeds);
  Store results;
  for (const auto& [name, var] : playable->results) results.add(name, Array(playable->player.view(var)));
  return results;
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
