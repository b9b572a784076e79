#include "program.hpp"

#include <algorithm>

namespace xtape {

namespace {
/// The program without the nodes that are not in `need`.
Program pruned(const Program& from, const std::vector<bool>& need) {
  Program to(from.tape);
  to.region_count = from.region_count;
  Copier copier(from.tape, to.tape);
  for (std::size_t i = 0; i < from.tape.size(); ++i) {
    if (!need[i]) continue;
    const auto index = static_cast<std::int32_t>(i);
    const std::int32_t fresh = copier.copy(index);
    to.regions.push_back(from.regions[i]);
    const auto origins = from.origins.of(index);
    to.origins.add_node(origins.size(), {});
    std::copy(origins.begin(), origins.end(), to.origins.of(fresh).begin());
  }
  for (const ValueId& id : from.outputs) to.outputs.push_back(copier.now(id));
  for (const auto& carry : from.carries) to.carries.emplace_back(copier.now(carry.first), copier.now(carry.second));
  return to;
}
}  // namespace

Program extract(const Tape& tape, const Vars& outputs, const std::vector<Carry>& carries) {
  if (outputs.empty() && carries.empty()) throw Error("a player needs at least one output");
  Program whole(tape);
  whole.tape = tape;  // shares the nodes of the caller's tape, which are only read
  whole.regions.assign(tape.size(), 0);
  for (std::size_t i = 0; i < tape.size(); ++i)
    whole.origins.add_node(tape.node(i).outputs.size(), {static_cast<std::int32_t>(i), tape.node(i).op});
  const auto own = [&](const Var& var) {
    if (var.tape() != tape) throw HandleError("the outputs and carries of a player must belong to its tape");
    return var.id();
  };
  for (const Var& output : outputs) whole.outputs.push_back(own(output));
  for (const Carry& carry : carries) {
    if (carry.input.node().op != &input_op()) throw Error("a carry's first var must be an input of the tape");
    if (carry.input.type() != carry.output.type())
      throw ShapeError("a carry's vars must have one type, got " + to_string(carry.input.type()) + " and " +
                       to_string(carry.output.type()));
    if (carry.memory && ValueType{carry.memory.dtype(), carry.memory.shape()} != carry.input.type())
      throw ShapeError("the memory of carry '" + carry.input.node().name + "' must be " +
                       to_string(carry.input.type()) + ", got " +
                       to_string(ValueType{carry.memory.dtype(), carry.memory.shape()}));
    for (const auto& other : whole.carries)
      if (other.first == own(carry.input)) throw Error("input '" + carry.input.node().name + "' is carried twice");
    whole.carries.emplace_back(own(carry.input), own(carry.output));
    whole.outputs.push_back(own(carry.output));
  }
  return pruned(whole, needed_by(tape, whole.outputs));
}

std::string to_string(const Origin& origin) {
  return "#" + std::to_string(origin.node) + " " + origin.op->name;
}

Users::Users(const Tape& tape) : counts_(tape, 0), ends_(tape, 0) {
  for (std::size_t i = 0; i < tape.size(); ++i)
    for (const ValueId& input : tape.node(i).inputs) ++counts_[input];
  std::size_t end = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(tape.size()); ++i)
    for (std::size_t k = 0; k < counts_.of(i).size(); ++k) {
      ends_.of(i)[k] = end;  // the beginning for now; the loop below advances it once per user
      end += counts_.of(i)[k];
    }
  users_.resize(end);
  for (std::size_t i = 0; i < tape.size(); ++i)
    for (const ValueId& input : tape.node(i).inputs) users_[ends_[input]++] = static_cast<std::int32_t>(i);
}

Rewriter::Rewriter(const Program& from) : from_(from), to_(from.tape), copier_(from.tape, to_.tape) {
  to_.region_count = from.region_count;
}

Vars Rewriter::now(const std::vector<ValueId>& old) const {
  Vars vars;
  for (const ValueId& id : old) vars.push_back(now(id));
  return vars;
}

void Rewriter::keep_as(std::int32_t index, Node node) {
  const std::int32_t fresh = copier_.copy_as(index, std::move(node));
  begin_origins();
  const auto origins = from_.origins.of(index);
  std::copy(origins.begin(), origins.end(), to_.origins.of(fresh).begin());
  close(index);
}

void Rewriter::replace(ValueId old, const Var& fresh) {
  const ValueId id = fresh.id();
  copier_.replace(old, id);
  begin_origins();
  Origin& origin = to_.origins[id];
  if (origin.node < 0) origin = from_.origins[old];
}

/// Gives the outputs of newly recorded nodes an empty origin.
void Rewriter::begin_origins() {
  for (std::size_t i = to_.origins.nodes(); i < to_.tape.size(); ++i)
    to_.origins.add_node(to_.tape.node(i).outputs.size(), {});
}

void Rewriter::close(std::int32_t index, std::int32_t region) {
  begin_origins();
  const Origin& whole = from_.origins[{index, 0}];
  for (std::size_t i = to_.regions.size(); i < to_.tape.size(); ++i)
    for (Origin& origin : to_.origins.of(static_cast<std::int32_t>(i)))
      if (origin.node < 0) origin = whole;  // computed on the way to its outputs
  to_.regions.resize(to_.tape.size(), region);
}

Program Rewriter::finish() {
  for (const ValueId& id : from_.outputs) to_.outputs.push_back(copier_.now(id));
  for (const auto& carry : from_.carries) to_.carries.emplace_back(copier_.now(carry.first), copier_.now(carry.second));
  const std::vector<bool> need = needed_by(to_.tape, to_.outputs);
  if (std::find(need.begin(), need.end(), false) == need.end()) return std::move(to_);
  return pruned(to_, need);
}

}  // namespace xtape
