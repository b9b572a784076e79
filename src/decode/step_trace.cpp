#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arrays/visit.hpp"
#include "decode/recording.hpp"
#include "decode/step_trials.hpp"
#include "xtape/inspect.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape::decode {

std::vector<double> numbers_of(const ArrayView& view) {
  const Array dense(view);
  std::vector<double> numbers(static_cast<std::size_t>(dense.count()));
  visit_elements(dense, [&](const auto* from) { std::copy(from, from + numbers.size(), numbers.begin()); });
  return numbers;
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double between = std::abs(a - b);
  return std::isfinite(between) ? between : std::numeric_limits<double>::infinity();
}

double greatest_finite(const std::vector<double>& numbers) {
  double greatest = 0;
  for (const double number : numbers)
    if (std::isfinite(number)) greatest = std::max(greatest, std::abs(number));
  return greatest;
}

namespace {
/// Returns whether two nodes were recorded for the same call, at the precision of an error message.
bool same_call(const Site& a, const Site& b) {
  return a.op == b.op && a.line == b.line && a.scope->path == b.scope->path;
}

/// Returns for each node whether another call reads it, or whether it is the result of the function or a state.
/// Intermediate nodes of a call, inputs and parameters do not count.
std::vector<bool> looked_at(const Recording& recording) {
  const Tape& tape = recording.tape;
  std::vector<bool> needed(tape.size(), false), looked(tape.size(), false);
  const auto need = [&](const Var& var) { needed[var.id().node] = looked[var.id().node] = true; };
  need(recording.result);
  for (const Carry& state : tape.states()) need(state.output);
  for (std::size_t i = tape.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Node& node = tape.node(i);
    if (node.op == &input_op() || node.op == &parameter_op()) looked[i] = false;
    for (const ValueId& input : node.inputs) {
      const auto index = static_cast<std::size_t>(input.node);
      needed[index] = true;
      if (!same_call(tape.node(index).site, node.site)) looked[index] = true;
    }
  }
  return looked;
}

/// Returns for each node whether it is computed from `var`.
std::vector<bool> computed_from(const Tape& tape, const Var& var) {
  std::vector<bool> from(tape.size(), false);
  if (!var.empty()) from[var.id().node] = true;
  for (std::size_t i = 0; i < tape.size(); ++i)
    for (const ValueId& input : tape.node(i).inputs) from[i] = from[i] || from[input.node];
  return from;
}

std::string described(const Node& node) {
  const std::string site = to_string(node.site);
  return (node.site.op != nullptr ? node.site.op->name : node.op->name) + (site.empty() ? "" : ", " + site);
}

/// One of two plays that should agree.
struct Play {
  const Recording& recording;
  std::vector<Feed> feeds;
  std::int64_t from = 0;  // the first position to compare
};

/// Two plays of the same ops, and the part of their values to compare.
struct Comparison {
  Play first, second;
  const Recording& shorter;  // recorded for fewer tokens, to find the axes that count tokens
  const Recording& roomier;  // recorded for a larger capacity, to find the axes that count positions of caches
  std::int64_t tokens, fewer_tokens;
  std::int64_t places;  // the number of tokens to compare
  std::int64_t room;    // the number of cache positions in use

  /// Returns the part of a value to compare, as a further value of the play's tape. The var is empty if no part can be
  /// compared.
  Var part(const Play& play, ValueId id, bool knows_past) const {
    const Var value = play.recording.tape.var(id);
    const Shape &whole = first.recording.tape.type(id).shape, less = shorter.tape.type(id).shape,
                &more = roomier.tape.type(id).shape;
    if (less.size() != whole.size() || more.size() != whole.size()) return {};
    std::vector<std::int64_t> start(whole.size(), 0), stop(value.shape().begin(), value.shape().end());
    bool counts = false;
    for (std::size_t axis = 0; axis < whole.size(); ++axis) {
      if (whole[axis] == less[axis] && whole[axis] == more[axis]) continue;
      counts = true;
      if (whole[axis] == less[axis]) {
        stop[axis] = room;
      } else if (whole[axis] == more[axis] && whole[axis] == tokens && less[axis] == fewer_tokens) {
        start[axis] = play.from;
        stop[axis] = play.from + places;
      } else {
        return {};
      }
    }
    // Values at the beginning of a piece, such as the states of a scan, depend on the past and differ between pieces.
    if (knows_past && !counts) return {};
    return counts ? slice(value, start, stop) : value;
  }
};

/// Returns the first call whose values differ, or an empty text if there is none.
std::string first_unlike(const Comparison& compared, double tolerance) {
  const Recording &whole = compared.first.recording, &other = compared.second.recording;
  const std::vector<bool> looked = looked_at(whole), knows_past = computed_from(whole.tape, whole.past);
  NamedVars first, second;
  const std::size_t size = whole.tape.size();  // without the parts that are added below
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t k = 0; looked[i] && k < whole.tape.node(i).outputs.size(); ++k) {
      const ValueId id{static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)};
      const Var ours = compared.part(compared.first, id, knows_past[i]);
      if (ours.empty()) continue;
      const std::string name = std::to_string(i) + "." + std::to_string(k);
      first.add(name, ours);
      second.add(name, compared.part(compared.second, id, knows_past[i]));
    }
  PlayerOptions options;
  options.passes = Passes::unfused();
  const auto values = [](const NamedVars& vars) {
    Vars all;
    for (const auto& entry : vars) all.push_back(entry.value);
    return all;
  };
  Player player(whole.tape, values(first), options), other_player(other.tape, values(second), options);
  player.play(compared.first.feeds, 0);
  Store reference;
  for (const auto& [name, var] : first) reference.add(name, Array(player.view(var)));
  const RecordedPlay play = recorded_play(other_player, compared.second.feeds);
  const ReferenceComparison found = compare(play, second, reference, tolerance);
  return found.mismatched.empty() ? "" : described(whole.tape.node(std::stoul(found.mismatched[0].name)));
}

/// Records the function for the whole input, without a past.
Recording record_whole(const Traced& traced, const NamedSizes& sizes) {
  Recording made;
  const NamedVars inputs = traced.model.inputs(made.tape, traced.function, sizes);
  made.tokens = inputs.at(traced.stepped);
  made.result = traced.model.record(made.tape, traced.function, inputs)[0].value;
  for (const auto& [name, var] : inputs)
    if (name != traced.stepped) made.fixed.add(name, var);
  return made;
}

NamedSizes of_length(const Traced& traced, std::int64_t tokens) {
  NamedSizes sizes = traced.sizes;
  sizes.set(traced.tokens_size, tokens);
  return sizes;
}

Array columns_of(const Array& tokens, std::int64_t from, std::int64_t count) {
  const std::int64_t rows = tokens.shape()[0], columns = tokens.shape()[1];
  Array part(Dtype::int64, {rows, count});
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(tokens.as<std::int64_t>() + row * columns + from, count, part.as<std::int64_t>() + row * count);
  return part;
}

/// Returns the feeds of a recording: the fixed inputs, the tokens, the number of earlier positions (`past`), and the
/// states after these positions.
std::vector<Feed> feeds_for(const Traced& traced, const Recording& recording, const Array& tokens, const Array& past,
                            const std::vector<Array>& states) {
  std::vector<Feed> feeds = feeds_of(recording.fixed, traced.inputs);
  feeds.emplace_back(recording.tokens, tokens);
  if (!recording.past.empty()) feeds.emplace_back(recording.past, past);
  for (std::size_t i = 0; i < states.size(); ++i) feeds.emplace_back(recording.tape.states()[i].input, states[i]);
  return feeds;
}
}  // namespace

std::string first_unlike_whole(const Traced& traced, std::int64_t cut) {
  const Array tokens(traced.inputs.at(traced.stepped));
  const std::int64_t rows = tokens.shape()[0], length = tokens.shape()[1], room = length + 3;
  const auto record = [&](std::int64_t count, std::int64_t places) {
    return record_step(traced.model, traced.function, traced.stepped, of_length(traced, count), places);
  };
  const Recording whole = record(length, room), roomier = record(length, room + 1);
  const Recording begin = record(cut, room), end = record(length - cut, room);
  if (!same_ops(whole, roomier) || !same_ops(whole, begin) || !same_ops(whole, end)) return "";
  std::vector<Array> nothing, left;
  Vars states;
  for (const Carry& state : begin.tape.states()) {
    nothing.emplace_back(state.input.dtype(), state.input.shape());
    states.push_back(state.output);
  }
  Array past(Dtype::int64, {rows});
  if (!states.empty()) {
    Player player(begin.tape, states);
    player.play(feeds_for(traced, begin, columns_of(tokens, 0, cut), past, nothing), 0);
    for (const Var& state : states) left.emplace_back(player.view(state));
  }
  const std::vector<Feed> feeds = feeds_for(traced, whole, tokens, past, nothing);
  const Array rest = columns_of(tokens, cut, length - cut);
  Array later(Dtype::int64, {rows});
  std::fill_n(later.as<std::int64_t>(), rows, cut);
  return first_unlike({{whole, feeds, cut},
                       {end, feeds_for(traced, end, rest, later, left)},
                       end,
                       roomier,
                       length,
                       length - cut,
                       length - cut,
                       length},
                      traced.tolerance);
}

std::string first_looking_ahead(const Traced& traced, std::int64_t cut, const Array& others) {
  const Array tokens(traced.inputs.at(traced.stepped));
  const std::int64_t length = tokens.shape()[1];
  const Recording whole = record_whole(traced, traced.sizes);
  const Recording shorter = record_whole(traced, of_length(traced, length - 1));
  if (!same_ops(whole, shorter)) return "";
  return first_unlike({{whole, feeds_for(traced, whole, tokens, {}, {})},
                       {whole, feeds_for(traced, whole, others, {}, {})},
                       shorter,
                       whole,
                       length,
                       length - 1,
                       cut,
                       0},
                      traced.tolerance);
}

}  // namespace xtape::decode
