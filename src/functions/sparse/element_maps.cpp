// The rules that play a call on the indices of elements instead of the elements.
#include <array>

#include "base/messages/wording.hpp"
#include "functions/sparse/dependence.hpp"
#include "xtape/grad.hpp"
#include "xtape/player.hpp"

namespace xtape {

namespace {
/// Returns the numbers first + 1, first + 2 … as float64, which represents them exactly. 0 stands for no element.
Array numbers_from(std::int64_t first, const Shape& shape) {
  Array numbers(Dtype::float64, shape);
  for (std::int64_t i = 0; i < numbers.count(); ++i) numbers.as<double>()[i] = static_cast<double>(first + i + 1);
  return numbers;
}

Array negated(const Array& numbers) {
  Array negative = numbers.clone();
  for (std::int64_t i = 0; i < negative.count(); ++i) negative.as<double>()[i] *= -1;
  return negative;
}

/// Returns a player that runs exactly these calls.
Player plain_player(const Tape& tape, const Vars& outputs) {
  PlayerOptions options;
  options.passes = Passes::reference();
  options.passes.expand = false;
  options.threads = 1;
  return Player(tape, outputs, options);
}

bool moves_elements(const Op& op) {
  const OpTable& table = builtin_ops();
  // These ops only move elements, but do not have the trait `any_dtype`, because their kernels support fewer dtypes.
  static const std::array<const Op*, 4> choices{&table.at("where"), &table.at("masked_fill"), &table.at("tril"),
                                                &table.at("triu")};
  if (contains(choices, &op)) return true;
  return op.lowering.layouts.parts || (op.lowering.dtypes.any && !op.lowering.tile);
}

/// Reads the map from the layout of a view. Plays nothing.
Dependences through_view(const DependenceCall& call) {
  const std::vector<std::int64_t> places =
      places_of(*call.node.op->lowering.view.output(call.recorded(), Layout::dense(call.inputs[0].shape)));
  std::vector<IndexSets::Id> ids;
  ids.reserve(places.size());
  for (const std::int64_t place : places) ids.push_back((*call.given[0])[place]);
  return std::vector<Dependence>{std::make_shared<const std::vector<IndexSets::Id>>(std::move(ids))};
}

/// Returns the op whose gradient shows to which places elements contribute, or null if the call is of another kind.
const Op* sum_like(const Op& op) {
  const OpTable& table = builtin_ops();
  static const std::array<const Op*, 2> extremes{&table.at("max"), &table.at("min")};
  static const std::array<const Op*, 4> sums{&table.at("sum"), &table.at("index_add"), &table.at("scatter_add"),
                                             &table.at("watch")};
  if (contains(extremes, &op)) return sums[0];
  return contains(sums, &op) ? &op : nullptr;
}
}  // namespace

Dependences through_moves(const DependenceCall& call) {
  if (call.node.op->is_view()) return through_view(call);
  if (!moves_elements(*call.node.op)) return std::nullopt;
  Tape apart = call.tape.blank();
  Vars inputs;
  std::vector<Array> numbers, opposites;
  std::vector<IndexSets::Id> sets;  // the sets of all elements, in the order of their numbers
  Vars numbered;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& [dtype, shape] = call.inputs[i];
    if (is_floating(dtype)) {
      inputs.push_back(apart.input("in" + std::to_string(i), shape, Dtype::float64));
      numbered.push_back(inputs.back());
      numbers.push_back(numbers_from(std::ssize(sets), shape));
      opposites.push_back(negated(numbers.back()));
      const auto end = sets.size() + static_cast<std::size_t>(count_of(shape));
      if (call.given[i]) sets.insert(sets.end(), call.given[i]->begin(), call.given[i]->end());
      sets.resize(end, IndexSets::none);
    } else if (const Array* value = call.known(i)) {
      inputs.push_back(apart.constant(*value));
    } else {
      return std::nullopt;
    }
  }
  const Vars outputs = record_call(apart, *call.node.op, inputs, call.node.attributes);
  Player player = plain_player(apart, outputs);
  const auto played = [&](const std::vector<Array>& arrays) {
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < arrays.size(); ++i) feeds.emplace_back(numbered[i], arrays[i]);
    player.play(feeds, 0);
    std::vector<Array> values;
    for (const Var& output : outputs) values.emplace_back(player.view(output));
    return values;
  };
  const std::vector<Array> found = played(numbers), opposite = played(opposites);
  std::vector<Dependence> results;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    std::vector<IndexSets::Id> ids(static_cast<std::size_t>(found[k].count()), IndexSets::none);
    // The second play has the opposite numbers. An output element whose sign is the same in both plays is a constant,
    // such as the value of a pad, and not the number of an element.
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (const double number = found[k].as<double>()[i]; number > 0 && opposite[k].as<double>()[i] == -number)
        ids[i] = sets[static_cast<std::size_t>(number) - 1];
    results.push_back(std::make_shared<const std::vector<IndexSets::Id>>(std::move(ids)));
  }
  return results;
}

Dependences through_sums(const DependenceCall& call) {
  const Op* op = sum_like(*call.node.op);
  if (op == nullptr) return std::nullopt;
  Tape apart = call.tape.blank();
  Vars inputs, reached;
  std::vector<Dependence> sources;
  std::vector<ValueId> unknown;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& [dtype, shape] = call.inputs[i];
    const Array* value = is_floating(dtype) ? nullptr : call.known(i);
    inputs.push_back(value ? apart.constant(*value)
                           : apart.input("in" + std::to_string(i), shape, is_floating(dtype) ? Dtype::float64 : dtype));
    if (call.given[i]) {
      reached.push_back(inputs[i]);
      sources.push_back(call.given[i]);
    } else if (!value) {
      unknown.push_back(inputs[i].id());
    }
  }
  const Var output = record_call(apart, *op, inputs, call.node.attributes)[0];
  const Var numbers = apart.input("numbers", output.shape(), Dtype::float64);
  const Vars places = grad({output}, reached, {numbers}, {.materialize_grads = true});
  std::vector<ValueId> ids;
  for (const Var& each : places) ids.push_back(each.id());
  const std::vector<bool> needed = needed_by(apart, ids);
  // The rule does not apply if the places depend on unknown values, such as indices.
  for (const ValueId& id : unknown)
    if (static_cast<std::size_t>(id.node) < needed.size() && needed[id.node]) return std::nullopt;
  Player player = plain_player(apart, places);
  player.play({{numbers, numbers_from(0, output.shape())}}, 0);
  CollectedSets meetings;
  for (std::size_t k = 0; k < places.size(); ++k) {
    const double* place = player.view(places[k]).as<double>();
    for (std::size_t i = 0; i < sources[k]->size(); ++i)
      if (place[i] > 0) meetings.add(static_cast<std::int64_t>(place[i]) - 1, (*sources[k])[i]);
  }
  const std::int64_t count = count_of(output.shape());
  return std::vector<Dependence>{std::make_shared<const std::vector<IndexSets::Id>>(meetings.united(call.sets, count))};
}

}  // namespace xtape
