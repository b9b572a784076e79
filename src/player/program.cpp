#include "program.hpp"

namespace xtape {

namespace {
/// Which nodes of the program its outputs need.
std::vector<bool> needed(const Tape& tape, const std::vector<ValueId>& outputs) {
  std::vector<bool> need(tape.size(), false);
  for (const ValueId& id : outputs) need[static_cast<std::size_t>(id.node)] = true;
  for (std::size_t i = tape.size(); i-- > 0;)
    if (need[i])
      for (const ValueId& input : tape.node(i).inputs) need[static_cast<std::size_t>(input.node)] = true;
  return need;
}

Program pruned(const Program& from) {
  const std::vector<bool> need = needed(from.tape, from.outputs);
  Program to(from.tape);
  to.region_count = from.region_count;
  to.fusions = from.fusions;
  std::vector<std::int32_t> map(from.tape.size(), -1);
  const auto moved = [&](ValueId id) {
    return ValueId{id.node < 0 ? -1 : map[static_cast<std::size_t>(id.node)], id.output};
  };
  for (std::size_t i = 0; i < from.tape.size(); ++i) {
    if (!need[i]) continue;
    Node node = from.tape.node(i);
    for (ValueId& input : node.inputs) input = moved(input);
    map[i] = to.tape.append(std::move(node)).node;
    to.regions.push_back(from.regions[i]);
    to.origins.push_back(from.origins[i]);
  }
  for (const ValueId& id : from.outputs) to.outputs.push_back(moved(id));
  for (const auto& carry : from.carries) to.carries.emplace_back(moved(carry.first), moved(carry.second));
  return to;
}
}  // namespace

Program extract(const Tape& tape, const Vars& outputs, const std::vector<Carry>& carries) {
  if (outputs.empty() && carries.empty()) throw Error("a player needs at least one output");
  Program whole(tape);
  whole.tape = tape;  // the same list: nothing is recorded on it, it is only read
  whole.regions.assign(tape.size(), 0);
  for (std::size_t i = 0; i < tape.size(); ++i)
    whole.origins.emplace_back(tape.node(i).outputs.size(), Origin{static_cast<std::int32_t>(i), tape.node(i).op});
  const auto own = [&](const Var& var) {
    if (var.tape() != tape) throw HandleError("a player's vars must be of its tape");
    return var.id();
  };
  for (const Var& output : outputs) whole.outputs.push_back(own(output));
  for (const Carry& carry : carries) {
    if (carry.input.node().op != &input_op()) throw Error("a carry's first var must be an input of the tape");
    if (carry.input.type() != carry.output.type())
      throw ShapeError("a carry's vars must have one type, got " + to_string(carry.input.type()) + " and " +
                       to_string(carry.output.type()));
    if (carry.memory && ValueType{carry.memory.dtype(), carry.memory.shape()} != carry.input.type())
      throw ShapeError("the memory of carry '" + carry.input.node().name + "' must be " + to_string(carry.input.type()) +
                       ", got " + to_string(ValueType{carry.memory.dtype(), carry.memory.shape()}));
    for (const auto& other : whole.carries)
      if (other.first == own(carry.input))
        throw Error("input '" + carry.input.node().name + "' is carried twice");
    whole.carries.emplace_back(own(carry.input), own(carry.output));
    whole.outputs.push_back(own(carry.output));
  }
  return pruned(whole);
}

std::string Program::label(ValueId id) const {
  const Origin& origin = origins[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.output)];
  return "#" + std::to_string(origin.node) + " " + origin.op->name;
}

std::vector<std::vector<std::vector<std::int32_t>>> users_of(const Tape& tape) {
  std::vector<std::vector<std::vector<std::int32_t>>> users(tape.size());
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    users[i].resize(node.outputs.size());
    for (const ValueId& input : node.inputs)
      users[static_cast<std::size_t>(input.node)][static_cast<std::size_t>(input.output)].push_back(
          static_cast<std::int32_t>(i));
  }
  return users;
}

Rewriter::Rewriter(const Program& from) : from_(from), to_(from.tape), map_(from.tape.size()) {
  to_.region_count = from.region_count;
  to_.fusions = from.fusions;
  for (std::size_t i = 0; i < map_.size(); ++i) map_[i].resize(from.tape.node(i).outputs.size());
}

ValueId Rewriter::now_id(ValueId old) const {
  return map_[static_cast<std::size_t>(old.node)][static_cast<std::size_t>(old.output)];
}

bool Rewriter::known(ValueId old) const { return old.node >= 0 && now_id(old).node >= 0; }

Vars Rewriter::now(const std::vector<ValueId>& old) const {
  Vars vars;
  for (const ValueId& id : old) vars.push_back(now(id));
  return vars;
}

void Rewriter::keep(std::int32_t index) {
  Node node = from_.node(index);
  for (ValueId& input : node.inputs) input = now_id(input);
  const std::int32_t fresh = to_.tape.append(std::move(node)).node;
  for (std::size_t i = 0; i < map_[static_cast<std::size_t>(index)].size(); ++i)
    map_[static_cast<std::size_t>(index)][i] = {fresh, static_cast<std::int32_t>(i)};
  begin_origins();
  to_.origins.back() = from_.origins[static_cast<std::size_t>(index)];
  close(index);
}

void Rewriter::replace(ValueId old, const Var& fresh) {
  const ValueId id = fresh.id();
  map_[static_cast<std::size_t>(old.node)][static_cast<std::size_t>(old.output)] = id;
  begin_origins();
  Origin& origin = to_.origins[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.output)];
  if (origin.node < 0) origin = from_.origins[static_cast<std::size_t>(old.node)][static_cast<std::size_t>(old.output)];
}

/// Outputs of fresh nodes come from nowhere yet.
void Rewriter::begin_origins() {
  for (std::size_t i = to_.origins.size(); i < to_.tape.size(); ++i)
    to_.origins.emplace_back(to_.tape.node(i).outputs.size());
}

void Rewriter::close(std::int32_t index, std::int32_t region) {
  begin_origins();
  const Origin& whole = from_.origins[static_cast<std::size_t>(index)][0];
  for (std::size_t i = to_.regions.size(); i < to_.tape.size(); ++i)
    for (Origin& origin : to_.origins[i])
      if (origin.node < 0) origin = whole;  // a part of it
  to_.regions.resize(to_.tape.size(), region);
}

Program Rewriter::finish() {
  for (const ValueId& id : from_.outputs) to_.outputs.push_back(now_id(id));
  for (const auto& carry : from_.carries)
    to_.carries.emplace_back(known(carry.first) ? now_id(carry.first) : ValueId{}, now_id(carry.second));
  return pruned(to_);
}

}  // namespace xtape
