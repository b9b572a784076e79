#include "rewrite/fusions.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "rewrite/pattern.hpp"

namespace xtape {

namespace {
constexpr int deepest_call = 2;  // depth of the search for inputs: values that are read, then calls on such values
constexpr std::size_t most_nodes = 200;  // the limit of nodes that a search visits, far more than any pattern has

/// Tests quickly whether a rule's pattern can match a term of a region. Compares only kinds, ops and exponents.
class QuickTest {
 public:
  QuickTest(const RulePattern& pattern, const CanonicalForm& form, std::int32_t region)
      : pattern_(pattern), form_(form), region_(region) {}

  bool root(const Term& term) const {
    const Term& sought = pattern_.terms[pattern_.root];
    if (sought.kind != term.kind || sought.op != term.op || sought.parts.size() != term.parts.size()) return false;
    return any_part(term, [&](const Term& part) { return part.kind == term.kind && part.parts.size() == 1; }) ||
           parts(sought, term, levels);
  }

 private:
  static constexpr int levels = 4;  // the number of levels below the root that are compared

  bool part(TermId wanted, TermId found, int below) const {
    if (pattern_.input_of(wanted)) return true;
    const Term& sought = pattern_.terms[wanted];
    const Term& term = inside(found);
    switch (sought.kind) {
      case Term::Kind::product:  // a term equals a product that contains only this term
        if (term.kind != Term::Kind::product)
          return sought.parts.size() == 1 && sought.parts[0].factor == 1 && part(sought.parts[0].term, found, below);
        break;
      case Term::Kind::contraction:  // the term may be a multiple of a contraction
        return term.kind == Term::Kind::contraction || term.kind == Term::Kind::product;
      default:
        if (term.kind != sought.kind || term.op != sought.op) return false;
    }
    // If a part has the same kind, the match may expand it.
    const bool joins = sought.kind == Term::Kind::sum || sought.kind == Term::Kind::product;
    if (below == 0 || (joins && any_part(term, [&](const Term& part) { return part.kind == term.kind; }))) return true;
    return sought.parts.size() == term.parts.size() && parts(sought, term, below - 1);
  }

  bool parts(const Term& sought, const Term& term, int below) const {
    return std::all_of(sought.parts.begin(), sought.parts.end(), [&](const Term::Part& wanted) {
      return std::any_of(term.parts.begin(), term.parts.end(), [&](const Term::Part& found) {
        return (sought.kind != Term::Kind::product || wanted.factor == found.factor) &&
               part(wanted.term, found.term, below);
      });
    });
  }

  template <class Is>
  bool any_part(const Term& term, const Is& is) const {
    return std::any_of(term.parts.begin(), term.parts.end(),
                       [&](const Term::Part& part) { return is(inside(part.term)); });
  }

  const Term& inside(TermId term) const { return form_.terms[form_.inside(term, region_)]; }

  const RulePattern& pattern_;
  const CanonicalForm& form_;
  std::int32_t region_;
};

/// Returns whether a term of a pattern and its operands call only these ops.
bool calls_only(const RulePattern& pattern, TermId id, const std::unordered_set<const Op*>& ops) {
  const Term& term = pattern.terms[id];
  return ops.count(term.op) != 0 && std::all_of(term.parts.begin(), term.parts.end(), [&](const Term::Part& part) {
           return calls_only(pattern, part.term, ops);
         });
}

void collect_values(const FusedInput& input, std::vector<ValueId>& values) {
  if (input.op == nullptr && std::find(values.begin(), values.end(), input.value) == values.end())
    values.push_back(input.value);
  for (const FusedInput& each : input.inputs) collect_values(each, values);
}
}  // namespace

Fusions::Fusions(const OpTable& table, TapeSegment segment, bool near)
    : segment_(std::move(segment)), form_(segment_), at_(segment_.nodes.size(), -1), near_(near) {
  std::unordered_set<const Op*> called(form_.terms.ops().begin(), form_.terms.ops().end());
  called.insert(nullptr);
  std::vector<std::pair<const FusionRule*, const RulePattern*>> rules;
  for (const FusionRule& rule : table.rules())
    if (const RulePattern& pattern = pattern_of(rule); calls_only(pattern, pattern.root, called))
      rules.emplace_back(&rule, &pattern);
  std::stable_sort(rules.begin(), rules.end(),
                   [](const auto& a, const auto& b) { return a.second->tape.size() > b.second->tape.size(); });
  for (const auto& rule : rules)
    rules_[static_cast<std::size_t>(rule.second->terms[rule.second->root].kind)].push_back(rule);
  for (std::size_t i = segment_.nodes.size(); i-- > 0;)
    if (segment_.nodes[i] && at_[i] == -1) look_at(static_cast<std::int32_t>(i));
  if (near_) drop_repeated_misses();
}

/// Drops a near miss of an op if it contains a fusion of the same op, or if it is inside another near miss of the op.
/// For example, a near miss that is a multiple of a fusion's result contains this fusion.
void Fusions::drop_repeated_misses() {
  std::set<std::pair<const Op*, std::int32_t>> inside;  // nodes inside the near misses kept; later nodes come first
  std::vector<NearMiss> kept;
  for (NearMiss& miss : near_misses_) {
    const Op* op = miss.rule->op;
    const auto gives_it = [&](std::int32_t node) {
      const Fusion* fusion = at(node);
      return fusion != nullptr && fusion->rule->op == op;
    };
    if (inside.count({op, miss.root}) != 0 || std::any_of(miss.interior.begin(), miss.interior.end(), gives_it))
      continue;
    for (const std::int32_t node : miss.interior) inside.emplace(op, node);
    kept.push_back(std::move(miss));
  }
  near_misses_ = std::move(kept);
}

const Fusion* Fusions::at(std::int32_t node) const {
  const std::int32_t number = at_[node];
  return number < 0 ? nullptr : &found_[number];
}

/// Applies the first rule that matches at `root`.
void Fusions::look_at(std::int32_t root) {
  const std::int32_t region = segment_.region(root);
  const Term& term = form_.terms[form_.inside(form_.of({root, 0}), region)];
  const auto& rules = rules_[static_cast<std::size_t>(term.kind)];
  if (rules.empty()) return;
  const auto applies = [&](bool near) {
    return std::any_of(rules.begin(), rules.end(), [&](const auto& each) {
      return QuickTest(*each.second, form_, region).root(term) && apply(*each.first, *each.second, root, near);
    });
  };
  if (!applies(false) && near_) applies(true);
}

/// Tries to apply the rule at `root`, and returns whether it matches. Adds a fusion if the rule can be applied.
/// Otherwise, adds a near miss, and adds the fusion to `kept_open_` if only uses elsewhere prevent it.
bool Fusions::apply(const FusionRule& rule, const RulePattern& pattern, std::int32_t root, bool near) {
  Fusion fusion;
  fusion.rule = &rule;
  fusion.root = root;
  const TermId term = form_.of({root, 0});
  if (!match(pattern, form_, term, segment_.region(root), near, binding_, [&fusion, this] { return bind(fusion); }))
    return false;
  std::string miss = binding_.miss;
  fusion.outputs = pattern.outputs;
  // If the op of the root is not the op of the pattern's root (s * 1 instead of s), the root has only the first output.
  if (segment_.node(root).op != pattern.root_op)
    std::erase_if(fusion.outputs, [](const auto& output) { return output.first != 0; });
  if (miss.empty() && rule.refuses) {
    OpCall call{*rule.op, fusion.attributes, {}, {}, nullptr, {}};
    for (const TermId input : fusion.terms) call.inputs.push_back(form_.terms[input].type);
    miss = rule.refuses(call);
  }
  const std::optional<ValueId> elsewhere = read_elsewhere(fusion);
  const bool open = miss.empty() && elsewhere;
  if (open) miss = "is read elsewhere too";
  if (!miss.empty()) {
    if (near_) near_misses_.push_back({&rule, root, miss, open ? *elsewhere : ValueId{}, fusion.interior});
    if (open) kept_open_.push_back(std::move(fusion));
    return true;
  }
  for (const std::int32_t node : fusion.interior) at_[node] = -2;
  at_[root] = static_cast<std::int32_t>(found_.size());
  found_.push_back(std::move(fusion));
  return true;
}

/// Sets the fused call's terms, inputs and attributes. Returns false if the op does not accept these inputs and
/// attributes, or if its result has another type.
bool Fusions::bind(Fusion& fusion) {
  const FusionRule& rule = *fusion.rule;
  fusion.terms = binding_.inputs;
  fusion.attributes = rule.attributes;
  for (std::size_t i = 0; i < binding_.attributes.size(); ++i)
    if (binding_.attributes[i]) fusion.attributes.set(rule.attributes.items()[i].first, *binding_.attributes[i]);
  OpCall call{*rule.op, fusion.attributes, {}, {}, nullptr, {}};
  for (const TermId term : binding_.inputs) {
    if (term < 0) return false;
    call.inputs.push_back(form_.terms[term].type);
  }
  try {
    if (rule.op->shape(call).at(0) != segment_.type({fusion.root, 0})) return false;
  } catch (const Error&) {
    return false;
  }
  return locate(fusion);
}

/// Finds the values that the replaced calls read, as inputs of the fused call. Other values with equal terms are not
/// suitable, because they may differ in rounding. Returns false if the replaced calls do not read the term of an input,
/// or read two different values of one term.
bool Fusions::locate(Fusion& fusion) {
  const std::int32_t region = segment_.region(fusion.root);
  std::vector<TermId> sought;
  for (const TermId term : fusion.terms) sought.push_back(form_.inside(term, region));
  for (int depth = 0; depth < deepest_call; ++depth) {
    std::unordered_map<TermId, ValueId> read;
    if (!find_read(fusion.root, sought, read)) return false;
    fusion.inputs.assign(fusion.terms.size(), {});
    bool placed = true;
    for (std::size_t i = 0; i < fusion.terms.size(); ++i)
      placed = place(fusion.terms[i], region, read, fusion.inputs[i]) && placed;
    if (placed) return true;
    // the operands of inputs that are not read; such an input may be a call on values that are read
    std::vector<TermId> parts;
    for (const TermId term : sought)
      if (read.count(term) == 0 && form_.terms[term].op != nullptr)
        for (const Term::Part& part : form_.terms[term].parts) parts.push_back(form_.inside(part.term, region));
    if (parts.empty()) return false;
    sought.insert(sought.end(), parts.begin(), parts.end());
  }
  return false;
}

/// Searches backwards from `root` for reads of values whose terms are in `sought`. Returns false if the nodes read two
/// different values of one term, or if the search visits too many nodes.
bool Fusions::find_read(std::int32_t root, const std::vector<TermId>& sought,
                        std::unordered_map<TermId, ValueId>& read) {
  const std::int32_t region = segment_.region(root);
  std::vector<std::int32_t> open{root};
  std::unordered_set<std::int32_t> seen{root};
  while (!open.empty() && seen.size() <= most_nodes) {
    const Node& node = segment_.node(open.back());
    open.pop_back();
    for (const ValueId& id : node.inputs) {
      const TermId term = seen_as(id, region);
      if (std::find(sought.begin(), sought.end(), term) != sought.end()) {
        const auto [known, fresh] = read.emplace(term, id);
        if (!fresh && known->second != id && !are_equal_calls(known->second, id)) return false;
      } else if (segment_.region(id.node) == region && seen.insert(id.node).second) {
        open.push_back(id.node);
      }
    }
  }
  return open.empty();
}

TermId Fusions::seen_as(ValueId id, std::int32_t region) {
  return form_.inside(form_.as_input(id, region), region);
}

bool Fusions::are_equal_calls(ValueId a, ValueId b) const {
  const Node& first = segment_.node(a.node);
  const Node& second = segment_.node(b.node);
  return !first.op->is_source() && !first.op->random && !first.body && first.op == second.op && a.output == b.output &&
         first.inputs == second.inputs && first.attributes == second.attributes;
}

/// Sets `input` to the value of the term that was read, or to a call on such values.
bool Fusions::place(TermId term, std::int32_t region, const std::unordered_map<TermId, ValueId>& read,
                    FusedInput& input) const {
  if (const auto found = read.find(form_.inside(term, region)); found != read.end()) {
    input.value = found->second;
    return true;
  }
  const Term& known = form_.terms[term];
  if (known.op == nullptr || known.draws != 0 || known.output != 0) return false;
  input.op = known.op;
  input.attributes = known.attributes;
  input.inputs.assign(known.parts.size(), {});
  for (std::size_t i = 0; i < known.parts.size(); ++i) {
    const auto found = read.find(form_.inside(known.parts[i].term, region));
    if (found == read.end()) return false;
    input.inputs[i].value = found->second;
  }
  return true;
}

/// Sets the interior of the fusion. Returns a value inside the fusion that has outside uses or is in `asked`, or
/// nullopt if there is none. Views with such uses leave the interior and stay on the tape, because they cost nothing.
std::optional<ValueId> Fusions::read_elsewhere(Fusion& fusion) const {
  std::unordered_set<std::int32_t> given;
  for (const ValueId& id : values_of(fusion)) given.insert(id.node);
  std::vector<std::int32_t> open{fusion.root};
  std::unordered_set<std::int32_t> inside{fusion.root};
  while (!open.empty()) {
    const Node& node = segment_.node(open.back());
    open.pop_back();
    for (const ValueId& id : node.inputs)
      if (given.count(id.node) == 0 && !segment_.node(id.node).op->is_source() && segment_.nodes[id.node] &&
          inside.insert(id.node).second)
        open.push_back(id.node);
  }
  std::vector<std::int32_t> nodes(inside.begin(), inside.end());
  fusion.interior = nodes;
  fusion.interior.erase(std::find(fusion.interior.begin(), fusion.interior.end(), fusion.root));
  std::sort(nodes.begin(), nodes.end(), std::greater<>());
  for (const std::int32_t index : nodes) {  // users come before the nodes that they read
    const Node& node = segment_.node(index);
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId id{index, static_cast<std::int32_t>(k)};
      std::int32_t uses = form_.uses(id);
      if (uses == 0) continue;
      const auto is_given = [&](const auto& output) { return index == fusion.root && output.first == id.output; };
      if (std::any_of(fusion.outputs.begin(), fusion.outputs.end(), is_given)) continue;
      for (const std::int32_t user : inside)
        for (const ValueId& input : segment_.node(user).inputs) uses -= input == id;
      if (uses == 0) continue;
      if (!node.op->is_view()) return id;
      inside.erase(index);
      fusion.interior.erase(std::find(fusion.interior.begin(), fusion.interior.end(), index));
      break;
    }
  }
  return std::nullopt;
}

std::vector<std::int32_t> Fusions::recorded_calls(const Fusion& fusion) {
  if (!indexed_) {
    indexed_ = true;
    for (std::size_t i = 0; i < segment_.nodes.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      const Node& node = segment_.node(index);
      if (segment_.nodes[i] && node.fused && !node.inputs.empty())
        recorded_.emplace(seen_as(node.inputs[0], segment_.region(index)), index);
    }
  }
  const auto [begin, end] = recorded_.equal_range(form_.inside(fusion.terms.at(0), segment_.region(fusion.root)));
  std::vector<std::int32_t> calls;
  for (auto it = begin; it != end; ++it)
    if (it->second > fusion.root && is_call_of(fusion, it->second)) calls.push_back(it->second);
  return calls;
}

bool Fusions::is_call_of(const Fusion& fusion, std::int32_t index) {
  const Node& node = segment_.node(index);
  if (node.op != fusion.rule->op || node.inputs.size() != fusion.terms.size() ||
      !(node.attributes == fusion.attributes) || segment_.region(index) != segment_.region(fusion.root))
    return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::int32_t region = segment_.region(index);
    if (seen_as(node.inputs[i], region) != form_.inside(fusion.terms[i], region)) return false;
  }
  return true;
}

std::vector<ValueId> values_of(const Fusion& fusion) {
  std::vector<ValueId> values;
  for (const FusedInput& input : fusion.inputs) collect_values(input, values);
  return values;
}

namespace {
Var recorded(const FusedInput& input, Tape tape, const std::function<Var(ValueId)>& now) {
  if (input.op == nullptr) return now(input.value);
  Vars inputs;
  for (const FusedInput& each : input.inputs) inputs.push_back(recorded(each, tape, now));
  return record_call(tape, *input.op, inputs, input.attributes)[0];
}
}  // namespace

Vars record_fusion(const Fusion& fusion, Tape tape, const std::function<Var(ValueId)>& now) {
  Vars inputs;
  for (const FusedInput& input : fusion.inputs) inputs.push_back(recorded(input, tape, now));
  return record_call(tape, *fusion.rule->op, inputs, fusion.attributes);
}

}  // namespace xtape
