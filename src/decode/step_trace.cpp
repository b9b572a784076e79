#include "step_trace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "recording.hpp"
#include "xtape/op.hpp"

namespace xtape::decode {

std::vector<double> numbers_of(const ArrayView& view) {
  const Array dense(view);
  std::vector<double> numbers(static_cast<std::size_t>(dense.count()));
  const auto take = [&](const auto* from) { std::copy(from, from + numbers.size(), numbers.begin()); };
  switch (dense.dtype()) {
    case Dtype::float32:
      take(dense.as<float>());
      break;
    case Dtype::float64:
      take(dense.as<double>());
      break;
    case Dtype::bfloat16:
      take(dense.as<bfloat16>());
      break;
    case Dtype::int8:
      take(dense.as<std::int8_t>());
      break;
    case Dtype::int32:
      take(dense.as<std::int32_t>());
      break;
    case Dtype::int64:
      take(dense.as<std::int64_t>());
      break;
    default:
      take(dense.as<bool>());
      break;
  }
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
/// What an axis of a value counts.
enum class Role : std::uint8_t {
  other,
  time,  // positions of the present tokens
  room,  // positions of caches
  unclear
};

Role role_of(std::int64_t size, std::int64_t tokens, std::int64_t shorter, std::int64_t fewer_tokens,
             std::int64_t roomier) {
  if (size == shorter && size == roomier) return Role::other;
  if (size == shorter) return Role::room;
  return size == roomier && size == tokens && shorter == fewer_tokens ? Role::time : Role::unclear;
}

/// How the value of a node in a first play is compared with its value in a second play, which begins at position `from`
/// of the first.
struct Pair {
  Shape shape, other_shape;
  std::vector<Role> roles;
  std::int64_t from = 0;    // on axes of role time, in the first play
  std::int64_t places = 0;  // positions on axes of role time that are compared
  std::int64_t room = 0;    // positions of caches that are in use
};

/// Whether two values differ where both must be the same.
bool unlike(const Pair& pair, const std::vector<double>& first, const std::vector<double>& second, double tolerance) {
  const double allowed = tolerance * greatest_finite(first);
  std::vector<std::int64_t> at(pair.other_shape.size(), 0);
  for (const double number : second) {
    bool compared = true;
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      const Role role = pair.roles[axis];
      compared =
          compared && (role != Role::time || at[axis] < pair.places) && (role != Role::room || at[axis] < pair.room);
      place = place * pair.shape[axis] + at[axis] + (role == Role::time ? pair.from : 0);
    }
    if (compared && !(distance(first[static_cast<std::size_t>(place)], number) <= allowed)) return true;
    for (std::size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < pair.other_shape[axis]) break;
      at[axis] = 0;
    }
  }
  return false;
}

/// Whether two nodes were recorded for the same call, as far as an error message names it.
bool same_call(const Site& a, const Site& b) {
  return a.op == b.op && a.line == b.line && a.scope->path == b.scope->path;
}

/// Per node: whether it is a result of a call that the function needs. Intermediate nodes of a call, inputs and
/// parameters are not.
std::vector<bool> looked_at(const Recording& recording) {
  const Tape& tape = recording.tape;
  std::vector<bool> needed(tape.size(), false), looked(tape.size(), false);
  const auto need = [&](const Var& var) {
    needed[static_cast<std::size_t>(var.id().node)] = looked[static_cast<std::size_t>(var.id().node)] = true;
  };
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

bool same_ops(const Tape& a, const Tape& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a.node(i).op != b.node(i).op || a.node(i).inputs != b.node(i).inputs) return false;
  return true;
}

/// Which nodes are computed from `var`.
std::vector<bool> computed_from(const Tape& tape, const Var& var) {
  std::vector<bool> from(tape.size(), false);
  if (!var.empty()) from[static_cast<std::size_t>(var.id().node)] = true;
  for (std::size_t i = 0; i < tape.size(); ++i)
    for (const ValueId& input : tape.node(i).inputs) from[i] = from[i] || from[static_cast<std::size_t>(input.node)];
  return from;
}

/// Plays a recording once without rewriting, and holds the values of the nodes that are `looked` at.
class Values {
 public:
  Values(const Recording& recording, const std::vector<bool>& looked, const std::vector<Feed>& feeds)
      : player_(recording.tape, outputs(recording, looked), without_passes()) {
    player_.play(feeds, 0);
  }
  std::vector<double> of(const Var& var) const { return numbers_of(player_.view(var)); }
  Array copy_of(const Var& var) const { return Array(player_.view(var)); }

 private:
  static Vars outputs(const Recording& recording, const std::vector<bool>& looked) {
    Vars vars;
    for (std::size_t i = 0; i < looked.size(); ++i)
      if (looked[i])
        for (std::size_t k = 0; k < recording.tape.node(i).outputs.size(); ++k)
          vars.push_back(recording.tape.var({static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)}));
    return vars;
  }
  static PlayerOptions without_passes() {
    PlayerOptions options;
    options.passes = Passes::reference();
    options.passes.expand = false;
    return options;
  }

  Player player_;
};

std::string described(const Node& node) {
  const std::string site = to_string(node.site);
  return (node.site.op != nullptr ? node.site.op->name : node.op->name) + (site.empty() ? "" : ", " + site);
}

/// Two recordings of a function with the same ops, and how their values are compared.
struct Comparison {
  const Recording& first;
  const Recording& second;
  const Recording& shorter;  // for fewer tokens: shows which axes have role time
  const Recording& roomier;  // for a larger capacity: shows which axes have role room
  std::int64_t tokens = 0, fewer_tokens = 0;
  Pair places;
};

std::string first_unlike(const Comparison& compared, const std::vector<bool>& looked, const Values& first,
                         const Values& second, double tolerance) {
  const Tape& tape = compared.first.tape;
  const std::vector<bool> counts = computed_from(tape, compared.first.past);
  for (std::size_t i = 0; i < tape.size(); ++i) {
    if (!looked[i]) continue;
    for (std::size_t k = 0; k < tape.node(i).outputs.size(); ++k) {
      const ValueId id{static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)};
      Pair pair = compared.places;
      pair.shape = tape.type(id).shape;
      pair.other_shape = compared.second.tape.type(id).shape;
      const Shape& shorter = compared.shorter.tape.type(id).shape;
      const Shape& roomier = compared.roomier.tape.type(id).shape;
      if (shorter.size() != pair.shape.size() || roomier.size() != pair.shape.size()) continue;
      for (std::size_t axis = 0; axis < pair.shape.size(); ++axis)
        pair.roles.push_back(
            role_of(pair.shape[axis], compared.tokens, shorter[axis], compared.fewer_tokens, roomier[axis]));
      const auto has = [&](Role role) {
        return std::find(pair.roles.begin(), pair.roles.end(), role) != pair.roles.end();
      };
      // Values at the beginning of a piece, such as the states of a scan, depend on the past and differ between pieces.
      if (has(Role::unclear) || (counts[i] && !has(Role::time) && !has(Role::room))) continue;
      if (unlike(pair, first.of(tape.var(id)), second.of(compared.second.tape.var(id)), tolerance))
        return described(tape.node(i));
    }
  }
  return "";
}

/// Records the function for the whole, without a past.
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

/// The feeds of a recording: the fixed inputs, the tokens, the number of positions before them (`past`), and the states
/// that these left.
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
  if (!same_ops(whole.tape, roomier.tape) || !same_ops(whole.tape, begin.tape) || !same_ops(whole.tape, end.tape))
    return "";
  std::vector<Array> nothing, left;
  for (const Carry& state : whole.tape.states()) nothing.emplace_back(state.input.dtype(), state.input.shape());
  Array past(Dtype::int64, {rows});
  const std::vector<bool> looked = looked_at(whole);
  const Values expected(whole, looked, feeds_for(traced, whole, tokens, past, nothing));
  const Values before(begin, looked, feeds_for(traced, begin, columns_of(tokens, 0, cut), past, nothing));
  for (const Carry& state : begin.tape.states()) left.push_back(before.copy_of(state.output));
  std::fill_n(past.as<std::int64_t>(), rows, cut);
  const Array rest = columns_of(tokens, cut, length - cut);
  const Values found(end, looked, feeds_for(traced, end, rest, past, left));
  const Pair places{{}, {}, {}, cut, length - cut, length};
  return first_unlike({whole, end, end, roomier, length, length - cut, places}, looked, expected, found,
                      traced.tolerance);
}

std::string first_looking_ahead(const Traced& traced, std::int64_t cut, const Array& others) {
  const Array tokens(traced.inputs.at(traced.stepped));
  const std::int64_t length = tokens.shape()[1];
  const Recording whole = record_whole(traced, traced.sizes);
  const Recording shorter = record_whole(traced, of_length(traced, length - 1));
  if (!same_ops(whole.tape, shorter.tape)) return "";
  const std::vector<bool> looked = looked_at(whole);
  const Values expected(whole, looked, feeds_for(traced, whole, tokens, {}, {}));
  const Values found(whole, looked, feeds_for(traced, whole, others, {}, {}));
  const Pair places{{}, {}, {}, 0, cut, 0};
  return first_unlike({whole, whole, shorter, whole, length, length - 1, places}, looked, expected, found,
                      traced.tolerance);
}

}  // namespace xtape::decode
