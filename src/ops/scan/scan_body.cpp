// Prepares the body of a scan. Separates random draws from other ops, and applies rules.
#include "ops/recording/enclosed.hpp"
#include "ops/recording/op_helpers.hpp"
#include "ops/scan/scan.hpp"
#include "rewrite/fusions.hpp"
#include "tape/graph.hpp"
#include "xtape/ops.hpp"

// A scan over tokens that arrive in pieces. The states after every position are cached in the same way as keys and
// values. Each row therefore continues from its own last position.
namespace xtape {

CachedStates::CachedStates(Tape tape, const Var& past, const Vars& init) : tape_(tape), past_(past) {
  const std::int64_t rows = past.size(0), capacity = tape.capacity();
  // the last position of each row, counted over the positions of all rows
  const Var last = iota(tape, {rows}) * capacity + maximum(past - 1, 0);
  for (const Var& first : init) {
    if (first.rank() == 0 || first.shape()[0] != rows)
      throw ShapeError("scan: in mode predict a state must have a row for each of the " + std::to_string(rows) +
                       " rows of tokens, got " + to_string(first.type()));
    Shape shape = first.shape();
    shape.insert(1, capacity);
    const std::size_t number = tape.states().size() + held_.size();
    held_.push_back(tape.input("states " + std::to_string(number), shape, first.dtype()));
    shape.erase(0);
    shape[0] *= rows;
    Shape begun = Shape::filled(first.rank(), 1);
    begun[0] = rows;
    before_.push_back(where(reshape(past > 0, begun), take(reshape(held_.back(), shape), last), first));
  }
}

void CachedStates::hold(const Vars& states) {
  for (std::size_t j = 0; j < states.size(); ++j) {
    const Var held = apply(builtin_ops().at("cache"), {states[j], held_[j], past_}, {{"axis", std::int64_t{1}}})[0];
    tape_.add_state(held_[j], held);
  }
}

namespace {
/// Returns whether a node must be replaced by its expansion, so that its random numbers can be drawn for all steps at
/// once.
bool hides_draws(const Node& node) {
  return draws(node) && (!node.inputs.empty() || node.body);
}
/// Returns the var on the new tape for a value of the old tape.
using Now = std::function<Var(ValueId)>;

/// Records the body on a new tape. For each node, `instead` may record a replacement and return its outputs. If it
/// returns no outputs, the node is copied.
Tape rerecorded(const Tape& body, const std::function<Vars(Tape& next, std::int32_t index, const Now& now)>& instead) {
  Copier copier(body, body.blank());
  const Now now = [&](ValueId id) { return copier.to().var(copier.now(id)); };
  for (std::int32_t index = 0; index < static_cast<std::int32_t>(body.size()); ++index) {
    const auto in_site = copier.to().in_site(body.node(index).site);
    const Vars made = instead(copier.to(), index, now);
    if (made.empty()) copier.copy(index);
    for (std::size_t k = 0; k < made.size(); ++k)
      if (!made[k].empty()) copier.replace({index, static_cast<std::int32_t>(k)}, made[k].id());
  }
  std::vector<ValueId> results;
  for (const ValueId& id : body.results()) results.push_back(copier.now(id));
  copier.to().set_results(results);
  return copier.to();
}
}  // namespace

Tape with_draws_apart(const Tape& body) {
  Tape current = body;
  for (bool again = true; again;) {
    again = false;
    current = rerecorded(current, [&](Tape& next, std::int32_t index, const Now& now) {
      const Node& node = current.node(index);
      if (!hides_draws(node)) return Vars{};
      if (node.op->own_derivative)
        throw Error("scan: the body of " + node.op->name +
                    " draws random numbers: draw them in the cell, outside of it");
      if (!node.op->expand)
        throw Error("scan: " + node.op->name +
                    " cannot draw its random numbers for all steps at once: use uniform in its place");
      again = true;
      Vars inputs;
      for (const ValueId& input : node.inputs) inputs.push_back(now(input));
      return expansion({*node.op, node, next, inputs});
    });
  }
  return current;
}

Tape with_fused_calls(const Tape& body) {
  const Fusions fusions(ops_of(body), {body, std::vector<bool>(body.size(), true), body.results()});
  if (fusions.found().empty()) return body;
  return rerecorded(body, [&](Tape& next, std::int32_t index, const Now& now) {
    const Fusion* fusion = fusions.at(index);
    if (fusion == nullptr || fusion->rule->gradients_beforehand) return Vars{};
    const auto in_fused_call = next.in_fused_call();
    const Vars fused = record_fusion(*fusion, next, now);
    Vars outputs(body.node(index).outputs.size());
    for (const auto& [of_root, of_call] : fusion->outputs) outputs[of_root] = fused[of_call];
    return outputs;
  });
}

}  // namespace xtape
