#include "player/program/program.hpp"

#include <algorithm>

namespace xtape {

std::vector<std::int32_t> Program::positions() const {
  std::vector<std::int32_t> positions(tape.size(), -1);
  std::int32_t next = 0;
  for (const std::int32_t index : order) positions[index] = next++;
  return positions;
}

namespace {
/// Returns the program on its own tape. place(copier, index) copies or moves each node there.
template <class Place>
Program in_order(const Program& from, const Place& place) {
  Program to(from.tape);
  to.region_count = from.region_count;
  to.order.reserve(from.order.size());
  to.regions.reserve(from.order.size());
  Copier copier(from.tape, to.tape);
  for (const std::int32_t index : from.order) {
    to.order.push_back(place(copier, index));
    to.regions.push_back(from.regions[index]);
  }
  to.origins = ValueTable<Origin>(to.tape, {});
  for (std::size_t i = 0; i < from.order.size(); ++i)
    std::ranges::copy(from.origins.of(from.order[i]), to.origins.of(to.order[i]).begin());
  for (const ValueId& id : from.outputs) to.outputs.push_back(copier.now(id));
  for (const auto& carry : from.carries) to.carries.emplace_back(copier.now(carry.first), copier.now(carry.second));
  return to;
}

/// Removes from `order` the nodes that the outputs do not need.
void prune(Program& program) {
  std::vector<bool> needed(program.tape.size(), false);
  for (const ValueId& id : program.outputs) needed[id.node] = true;
  for (std::size_t i = program.order.size(); i-- > 0;)
    if (const auto index = program.order[i]; needed[index])
      for (const ValueId& input : program.node(index).inputs) needed[input.node] = true;
  std::erase_if(program.order, [&](std::int32_t index) { return !needed[index]; });
  for (auto& carry : program.carries)
    if (carry.first.node >= 0 && !needed[carry.first.node]) carry.first = {};
}
}  // namespace

Program Program::copy() const {
  return in_order(*this, [](Copier& copier, std::int32_t index) { return copier.copy(index); });
}

void Program::compact() {
  if (order.size() == tape.size() && std::is_sorted(order.begin(), order.end())) return;
  *this = in_order(*this, [](Copier& copier, std::int32_t index) { return copier.move(index); });
}

OpCall call_of(const Program& program, const Node& node) {
  OpCall call{{node.attributes}, *node.op, {}, node.outputs, node.body.get(), node.site};
  call.inputs.reserve(node.inputs.size());
  for (const ValueId& id : node.inputs) call.inputs.push_back(program.type(id));
  return call;
}

Program extract(const Tape& tape, const Vars& outputs, const std::vector<Carry>& carries) {
  if (outputs.empty() && carries.empty()) throw Error("a player needs at least one output");
  Program program(tape);
  const auto own = [&](const Var& var) {
    if (var.tape() != tape) throw HandleError("the outputs and carries of a player must belong to its tape");
    return var.id();
  };
  for (const Var& output : outputs) program.outputs.push_back(own(output));
  for (const Carry& carry : carries) {
    if (carry.input.node().op != &input_op()) throw Error("a carry's first var must be an input of the tape");
    if (carry.input.type() != carry.output.type())
      throw ShapeError("a carry's vars must have one type, got " + to_string(carry.input.type()) + " and " +
                       to_string(carry.output.type()));
    if (carry.memory && ValueType{carry.memory.dtype(), carry.memory.shape()} != carry.input.type())
      throw ShapeError("the memory of carry '" + carry.input.node().name + "' must be " +
                       to_string(carry.input.type()) + ", got " +
                       to_string(ValueType{carry.memory.dtype(), carry.memory.shape()}));
    for (const auto& other : program.carries)
      if (other.first == own(carry.input)) throw Error("input '" + carry.input.node().name + "' is carried twice");
    program.carries.emplace_back(own(carry.input), own(carry.output));
    program.outputs.push_back(own(carry.output));
  }
  const std::vector<bool> needed = needed_by(tape, program.outputs);
  program.order.reserve(tape.size());
  program.origins.all().reserve(tape.size());
  Copier copier(tape, program.tape);
  for (std::int32_t index = 0; index < static_cast<std::int32_t>(tape.size()); ++index) {
    if (!needed[index]) continue;
    program.order.push_back(copier.copy(index));
    program.origins.extend(program.tape, {index, node_of(tape, index).op});
  }
  program.regions.assign(program.order.size(), 0);
  for (ValueId& id : program.outputs) id = copier.now(id);
  for (auto& [input, output] : program.carries) {
    input = copier.now(input);
    output = copier.now(output);
  }
  return program;
}

std::string to_string(const Origin& origin) {
  return "#" + std::to_string(origin.node) + " " + origin.op->name;
}

Users::Users(const Program& program) : slices_(program.tape, {}) {
  std::vector<std::pair<Slice*, std::int32_t>> uses;
  for (const std::int32_t index : program.order)
    for (const ValueId& input : program.node(index).inputs) {
      ++slices_[input].count;
      uses.emplace_back(&slices_[input], index);
    }
  std::uint32_t end = 0;
  for (Slice& slice : slices_.all()) {
    slice.end = end;  // initially the beginning; the loop below advances it once per user
    end += slice.count;
  }
  users_.resize(end);
  for (const auto& [slice, user] : uses) users_[slice->end++] = user;
}

Vars Rewriter::vars(std::span<const ValueId> old) const {
  Vars vars;
  vars.reserve(old.size());
  for (const ValueId& id : old) vars.push_back(var(id));
  return vars;
}

void Rewriter::keep(std::int32_t index) {
  close(index);
  for (ValueId& input : editable(program_.tape, index).inputs) input = now(input);
  order_.push_back(index);
}

void Rewriter::replace(ValueId old, const Var& fresh) {
  const ValueId id = fresh.id();
  if (id == old) return;
  now_[old] = id;
  program_.origins.extend(program_.tape, {});  // new nodes have no origin yet
  Origin& origin = program_.origins[id];
  if (origin.node < 0) origin = program_.origins[old];
}

void Rewriter::close(std::int32_t index, std::int32_t region) {
  if (seen_ == program_.tape.size()) return;
  program_.origins.extend(program_.tape, {});  // new nodes have no origin yet
  const Origin whole = program_.origins[{index, 0}];
  const bool early = program_.node(index).early;
  for (; seen_ < program_.tape.size(); ++seen_) {
    const auto fresh = static_cast<std::int32_t>(seen_);
    for (Origin& origin : program_.origins.of(fresh))
      if (origin.node < 0) origin = whole;  // a value that is computed on the way to the outputs
    editable(program_.tape, fresh).early |= early;
    order_.push_back(fresh);
  }
  program_.regions.resize(program_.tape.size(), region);
}

void Rewriter::finish_without_pruning() {
  program_.order = std::move(order_);
  for (ValueId& id : program_.outputs) id = now(id);
  for (auto& carry : program_.carries) {
    if (carry.first.node >= 0) carry.first = now(carry.first);
    carry.second = now(carry.second);
  }
}

void Rewriter::finish() {
  finish_without_pruning();
  prune(program_);
}

}  // namespace xtape
