// A model's cache of players.

#include "base/messages/wording.hpp"
#include "model/recording/model_data.hpp"

namespace xtape {

namespace {
std::string names_of(const NamedArrays& arrays) {
  const std::string names = joined(arrays, &NamedArrays::Entry::name);
  return names.empty() ? "no array is given" : "the arrays given are " + names;
}
}  // namespace

std::vector<Feed> feeds_of(const NamedVars& inputs, const NamedArrays& arrays) {
  std::vector<Feed> feeds;
  for (const auto& [name, var] : inputs) {
    const ArrayView* array = arrays.find(name);
    if (array == nullptr) throw Error("input '" + name + "' is not given: " + names_of(arrays));
    feeds.emplace_back(var, *array);
  }
  return feeds;
}

std::shared_ptr<PlayableFunction> Model::player(const std::string& function, Mode mode, const NamedSizes& sizes) {
  return data_->players.of({function, mode, sizes, ""}, [&](const FunctionKey& key) {
    Tape tape(mode);
    const NamedVars given = inputs(tape, function, key.sizes);
    const NamedVars results = record(tape, function, given);
    return FunctionCache<>::Recording{tape, given, results};
  });
}

NamedSizes Model::sizes(const std::string& function, const NamedArrays& arrays,
                        const std::vector<std::string>& missing) const {
  const Signature& signature = this->signature(function);
  const std::string whose = "function '" + function + "' of model '" + name() + "'";
  NamedSizes sizes;
  for (const FunctionInput& input : signature.inputs) {
    if (contains(missing, input.name)) continue;
    const ArrayView* array = arrays.find(input.name);
    if (array == nullptr) throw Error(whose + " takes an input '" + input.name + "', but " + names_of(arrays));
    const auto mismatch = [&] {
      return "input '" + input.name + "' of " + whose + " is " + name_of(input.dtype) + " of rank " +
             std::to_string(input.dims.size()) + ", got " + name_of(array->dtype()) + " " + to_string(array->shape());
    };
    if (input.dtype != array->dtype()) throw DtypeError(mismatch());
    if (input.dims.size() != array->shape().size()) throw ShapeError(mismatch());
    for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
      const std::string& dim = input.dims[axis];
      if (contains(signature.sizes, dim) && !sizes.has(dim)) sizes.add(dim, array->shape()[axis]);
    }
  }
  return sizes;
}

Store Model::play(const std::string& function, const NamedArrays& arrays, Mode mode) {
  const auto playable = player(function, mode, sizes(function, arrays));
  playable->player.play(feeds_of(playable->inputs, arrays), 0);
  Store results;
  for (const auto& [name, var] : playable->results) results.add(name, Array(playable->player.view(var)));
  return results;
}

std::vector<std::shared_ptr<const PlayableFunction>> Model::players() const {
  return {data_->players.begin(), data_->players.end()};
}

void Model::set_player_options(std::size_t capacity, const PlayerOptions& options) {
  PlayerOptions playing = options;
  if (playing.arena == nullptr) playing.arena = make_arena();
  data_->players = FunctionCache<>(capacity, playing);
}

const PlayerOptions& Model::player_options() const {
  return data_->players.options();
}

}  // namespace xtape
