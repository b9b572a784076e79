#include "rewrite/fusions.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace xtape {

namespace {
/// Returns whether a term of a pattern and its operands call only these ops.
bool calls_only(const RulePattern& pattern, TermId id, const std::vector<const Op*>& ops) {
  const Term& term = pattern.terms[id];
  return std::find(ops.begin(), ops.end(), term.op) != ops.end() &&
         std::all_of(term.parts.begin(), term.parts.end(),
                     [&](const Term::Part& part) { return calls_only(pattern, part.term, ops); });
}

}  // namespace

std::vector<ValueId> Fusion::values() const {
  std::vector<ValueId> values;
  const auto add = [&](ValueId id) {
    if (std::find(values.begin(), values.end(), id) == values.end()) values.push_back(id);
  };
  for (const FusedInput& input : inputs) {
    if (input.op == nullptr) add(input.value);
    for (const ValueId& id : input.inputs) add(id);
  }
  return values;
}

bool Fusion::gives(std::int32_t output) const {
  return std::any_of(outputs.begin(), outputs.end(), [&](const auto& each) { return each.first == output; });
}

Fusions::Fusions(const OpTable& table, TapeSegment segment, bool finds_misses)
    : segment_(std::move(segment)),
      form_(segment_),
      fusion_of_(segment_.nodes.size(), -1),
      replaced_(segment_.nodes.size(), false) {
  std::vector<const RulePattern*> patterns;
  for (const FusionRule& rule : table.rules())
    if (const RulePattern& pattern = pattern_of(rule); calls_only(pattern, pattern.root, form_.terms.ops()))
      patterns.push_back(&pattern);
  std::stable_sort(patterns.begin(), patterns.end(),
                   [](const auto* a, const auto* b) { return a->tape.size() > b->tape.size(); });
  std::unordered_set<const Op*> fused_ops;
  for (const RulePattern* pattern : patterns) fused_ops.insert(pattern->rule.op);
  for (std::int32_t i = static_cast<std::int32_t>(segment_.nodes.size()); i-- > 0;) {
    if (!segment_.nodes[i]) continue;
    if (const Node& node = segment_.node(i); node.fused && fused_ops.count(node.op) != 0) marked_.push_back(i);
    const Term& root = form_.terms[form_.terms.inside(form_.of({i, 0}))];
    const auto applies = [&](bool may_miss) {
      return std::any_of(patterns.begin(), patterns.end(), [&](const RulePattern* pattern) {
        return may_match(*pattern, form_.terms, root) && apply(*pattern, i, may_miss);
      });
    };
    if (!replaced_[i] && !applies(false) && finds_misses) applies(true);
  }
  drop_repeated_misses();
}

/// Drops a near miss of an op if it contains a fusion of the same op, or if it is inside another near miss of the op.
/// For example, a near miss that is a multiple of a fusion's result contains this fusion.
void Fusions::drop_repeated_misses() {
  std::set<std::pair<const Op*, std::int32_t>> inside;  // nodes inside the near misses kept; later nodes come first
  std::erase_if(near_misses_, [&](const NearMiss& miss) {
    const Op* op = miss.rule->op;
    const auto gives_it = [&](std::int32_t node) { return at(node) != nullptr && at(node)->rule->op == op; };
    if (inside.count({op, miss.root}) != 0 || std::any_of(miss.interior.begin(), miss.interior.end(), gives_it))
      return true;
    for (const std::int32_t node : miss.interior) inside.emplace(op, node);
    return false;
  });
}

const Fusion* Fusions::at(std::int32_t node) const {
  return fusion_of_[node] < 0 ? nullptr : &found_[fusion_of_[node]];
}

/// Tries to apply a rule at `root`, and returns whether it matches. Adds a fusion if the rule can be applied.
/// Otherwise, adds a near miss, and adds the fusion to `prevented_` if only uses elsewhere prevent it.
bool Fusions::apply(const RulePattern& pattern, std::int32_t root, bool may_miss) {
  Fusion fusion;
  fusion.rule = &pattern.rule;
  fusion.root = root;
  const auto accept = [&fusion, this] { return bind(fusion); };
  if (!match(pattern, form_, form_.of({root, 0}), may_miss, binding_, accept)) return false;
  fusion.outputs = pattern.outputs;
  // If the op of the root is not the op of the pattern's root (s * 1 instead of s), the root has only the first output.
  if (segment_.node(root).op != pattern.root_op)
    std::erase_if(fusion.outputs, [](const auto& output) { return output.first != 0; });
  std::optional<ValueId> elsewhere = read_elsewhere(fusion);
  if (!binding_.miss.empty()) {
    near_misses_.push_back({fusion.rule, root, binding_.miss, {}, fusion.interior});
  } else if (elsewhere) {
    near_misses_.push_back({fusion.rule, root, "is read elsewhere too", *elsewhere, fusion.interior});
    prevented_.push_back(std::move(fusion));
  } else {
    for (const std::int32_t node : fusion.interior) replaced_[node] = true;
    fusion_of_[root] = static_cast<std::int32_t>(found_.size());
    found_.push_back(std::move(fusion));
  }
  return true;
}

/// Sets the fused call's attributes and inputs, the interior, and why the rule refuses the call. Returns false if the
/// op does not accept the inputs and attributes, if its result has another type, or if the calls between do not read
/// the inputs.
bool Fusions::bind(Fusion& fusion) {
  const FusionRule& rule = *fusion.rule;
  fusion.attributes = rule.attributes;
  for (std::size_t i = 0; i < binding_.attributes.size(); ++i)
    if (binding_.attributes[i]) fusion.attributes.set(rule.attributes.items()[i].first, *binding_.attributes[i]);
  OpCall call{{fusion.attributes}, *rule.op};
  fusion.inputs.assign(binding_.inputs.size(), {});
  for (std::size_t i = 0; i < binding_.inputs.size(); ++i) {
    if (binding_.inputs[i] < 0 || !place(binding_.inputs[i], fusion.inputs[i])) return false;
    call.inputs.push_back(form_.terms[binding_.inputs[i]].type);
  }
  try {
    if (rule.op->shape(call).at(0) != segment_.type({fusion.root, 0})) return false;
  } catch (const Error&) {
    return false;
  }
  if (!find_interior(fusion)) return false;
  if (binding_.miss.empty() && rule.refuses) binding_.miss = rule.refuses(call);
  return true;
}

/// Sets `input` to the value that has the term, or to a call on such values.
bool Fusions::place(TermId term, FusedInput& input) const {
  const Term& known = form_.terms[term];
  input.value = known.value;
  if (known.value.node >= 0) return true;
  if (known.op == nullptr || !known.text.empty() || known.draws != 0 || known.output != 0) return false;
  input.op = known.op;
  input.attributes = known.attributes;
  for (const Term::Part& part : known.parts) input.inputs.push_back(form_.terms[part.term].value);
  return std::all_of(input.inputs.begin(), input.inputs.end(), [](ValueId id) { return id.node >= 0; });
}

/// Sets the interior: the calls between the inputs and the root. Returns false if they do not read all inputs. They may
/// compute the same from another value, whose rounding may differ.
bool Fusions::find_interior(Fusion& fusion) const {
  const std::vector<ValueId> values = fusion.values();
  std::unordered_set<std::int32_t> given, inside{fusion.root};
  for (const ValueId& id : values) given.insert(id.node);
  std::set<ValueId> read;
  std::vector<std::int32_t> to_visit{fusion.root};
  while (!to_visit.empty()) {
    const Node& node = segment_.node(to_visit.back());
    to_visit.pop_back();
    for (const ValueId& id : node.inputs)
      if (given.count(id.node) != 0)
        read.insert(id);
      else if (!segment_.node(id.node).op->is_source() && segment_.nodes[id.node] && inside.insert(id.node).second)
        to_visit.push_back(id.node);
  }
  inside.erase(fusion.root);
  fusion.interior.assign(inside.begin(), inside.end());
  std::sort(fusion.interior.begin(), fusion.interior.end(), std::greater<>());
  return std::all_of(values.begin(), values.end(), [&](ValueId id) { return read.count(id) != 0; });
}

/// Returns a value inside the fusion that is required or has uses outside, or nullopt if there is none. Views with such
/// uses leave the interior and stay on the tape, because they cost nothing.
std::optional<ValueId> Fusions::read_elsewhere(Fusion& fusion) const {
  std::vector<std::int32_t> inside{fusion.root};  // users come before the nodes that they read
  inside.insert(inside.end(), fusion.interior.begin(), fusion.interior.end());
  const auto used_outside = [&](ValueId id) {
    std::int32_t uses = form_.uses(id);
    if (uses == 0 || (id.node == fusion.root && fusion.gives(id.output))) return false;
    for (const std::int32_t user : inside)
      for (const ValueId& input : segment_.node(user).inputs) uses -= input == id;
    return uses != 0;
  };
  for (const std::int32_t index : std::vector(inside)) {
    const Node& node = segment_.node(index);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      if (!used_outside(id)) continue;
      if (!node.op->is_view()) return id;
      std::erase(inside, index);
      std::erase(fusion.interior, index);
      break;
    }
  }
  return std::nullopt;
}

std::vector<std::int32_t> Fusions::recorded_calls(const Fusion& fusion) const {
  std::vector<std::int32_t> calls;
  for (const std::int32_t index : marked_) {
    const Node& node = segment_.node(index);
    const auto matches = [&](const FusedInput& input, ValueId id) { return is_input(input, id); };
    if (index > fusion.root && node.op == fusion.rule->op && node.attributes == fusion.attributes &&
        segment_.region(index) == segment_.region(fusion.root) &&
        std::equal(fusion.inputs.begin(), fusion.inputs.end(), node.inputs.begin(), node.inputs.end(), matches))
      calls.push_back(index);
  }
  return calls;
}

/// Returns whether a value of the tape is this input of a fused call.
bool Fusions::is_input(const FusedInput& input, ValueId id) const {
  if (input.op == nullptr) return form_.same(input.value, id);
  const Node& node = segment_.node(id.node);
  const auto matches = [&](ValueId a, ValueId b) { return form_.same(a, b); };
  return node.op == input.op && node.attributes == input.attributes &&
         std::equal(input.inputs.begin(), input.inputs.end(), node.inputs.begin(), node.inputs.end(), matches);
}

Vars record_fusion(const Fusion& fusion, Tape tape, const std::function<Var(ValueId)>& now) {
  Vars inputs;
  for (const FusedInput& input : fusion.inputs) {
    Vars operands;
    for (const ValueId& id : input.inputs) operands.push_back(now(id));
    inputs.push_back(input.op == nullptr ? now(input.value)
                                         : record_call(tape, *input.op, operands, input.attributes)[0]);
  }
  return record_call(tape, *fusion.rule->op, inputs, fusion.attributes);
}

}  // namespace xtape
