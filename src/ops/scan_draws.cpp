// What a step draws, set apart, so that it can be drawn for all steps at once.
#include "scan.hpp"

namespace xtape {

namespace {
bool draws(const Tape& tape) {
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (const Node& node = tape.node(i); node.op->random || (node.body && draws(*node.body))) return true;
  return false;
}

/// Whether a node must be replaced by its expansion, so that what it draws can be drawn for all steps at once.
bool hides_draws(const Node& node) {
  return (node.op->random && !node.inputs.empty()) || (node.body && draws(*node.body));
}
}  // namespace

Tape with_draws_apart(const Tape& body) {
  Tape current = body;
  for (bool again = true; again;) {
    again = false;
    Tape next = current.blank();
    std::vector<Vars> now(current.size());
    const auto var_of = [&](ValueId id) {
      return now[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.output)];
    };
    for (std::size_t i = 0; i < current.size(); ++i) {
      Node node = current.node(i);
      if (!hides_draws(node)) {
        for (ValueId& input : node.inputs) input = var_of(input).id();
        const std::size_t count = node.outputs.size();
        const std::int32_t placed = next.append(std::move(node)).node;
        for (std::size_t k = 0; k < count; ++k) now[i].push_back(next.var({placed, static_cast<std::int32_t>(k)}));
        continue;
      }
      if (!node.op->expand)
        throw Error("scan: " + node.op->name +
                    " cannot be drawn for all steps at once: draw uniform numbers in its place");
      again = true;
      Vars inputs;
      for (const ValueId& input : node.inputs) inputs.push_back(var_of(input));
      const auto in_site = next.in_site(node.site);
      now[i] = node.op->expand({*node.op, node, next, inputs});
    }
    std::vector<ValueId> results;
    for (const ValueId& id : current.results()) results.push_back(var_of(id).id());
    next.set_results(results);
    current = next;
  }
  return current;
}

}  // namespace xtape
