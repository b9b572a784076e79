// Ops put in where their expansion stands on the tape, the backward part taken along by provenance.
#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "passes.hpp"

namespace xtape {

namespace {
/// A fused op's expansion: what to look for.
struct Pattern {
  const Op* op = nullptr;
  Attributes attributes;
  Tape tape;
  Vars inputs;
  std::vector<ValueId> outputs;
  ValueId root() const { return outputs.at(0); }
};

Pattern pattern_of(const Op& op, const FuseSample& sample, const Tape& like) {
  Pattern pattern{&op, sample.attributes, like.blank(), {}, {}};
  for (std::size_t i = 0; i < sample.inputs.size(); ++i)
    pattern.inputs.push_back(
        pattern.tape.input("in" + std::to_string(i), sample.inputs[i].shape, sample.inputs[i].dtype));
  Node node;
  node.op = &op;
  node.attributes = sample.attributes;
  for (const Var& output : op.expand({op, node, pattern.tape, pattern.inputs})) pattern.outputs.push_back(output.id());
  return pattern;
}

/// A place in a program where a pattern stands.
struct Match {
  std::vector<ValueId> inputs;     // for the pattern's inputs
  Attributes attributes;           // of the fused op
  std::vector<const Node*> found;  // for the pattern's nodes; null for its inputs
  std::set<std::int32_t> forward;  // the nodes of the expansion
  std::int32_t root = -1;
  // The backward part, where a sweep has been over it:
  std::set<std::int32_t> backward;
  std::int32_t sweep = -1;
  ValueId cotangent;                                       // of the root's output
  std::vector<std::pair<std::size_t, ValueId>> gradients;  // (input of the pattern, what flows on to it)
  std::int32_t first_backward = -1;
};

/// What the fused op's gradient rule records for the inputs that a match has gradients of.
Vars fused_gradients(const Match& match, const Op& op, const Vars& inputs, const Vars& fused, const Var& cotangent) {
  GradientCall call{op, fused[0].node(), inputs, fused, Vars(fused.size()), {}, nullptr};
  call.cotangents[0] = cotangent;
  call.needs.assign(inputs.size(), false);
  for (const auto& gradient : match.gradients) call.needs[gradient.first] = true;
  return op.gradient(call);
}

/// Finds where one pattern stands, looking from one node on backwards.
class Matcher {
 public:
  Matcher(const Program& program, const Pattern& pattern)
      : program_(program), pattern_(pattern), users_(users_of(program.tape)) {}

  std::optional<Match> at(std::int32_t root) {
    const bool found = pattern_.op->fuse_attributes ? with_its_attributes(root) : stands_at(root, pattern_, true);
    if (!found || !backward_part() || !wanted() || !closed() || !types_fit() || !gradient_fits()) return std::nullopt;
    return match_;
  }

 private:
  bool stands_at(std::int32_t root, const Pattern& pattern, bool exactly) {
    match_ = Match();
    match_.root = root;
    match_.inputs.assign(pattern.inputs.size(), ValueId{});
    match_.attributes = pattern.attributes;
    match_.found.assign(pattern.tape.size(), nullptr);
    return same(pattern, pattern.root(), {root, 0}, exactly);
  }

  /// Where nodes like the sample's stand, their attributes say which expansion should stand there.
  bool with_its_attributes(std::int32_t root) {
    if (!stands_at(root, pattern_, false)) return false;
    const std::optional<Attributes> attributes = pattern_.op->fuse_attributes(match_.found);
    if (!attributes) return false;
    FuseSample sample{{}, *attributes};
    for (const ValueId& id : match_.inputs) {
      if (id.node < 0) return false;
      sample.inputs.push_back(program_.tape.type(id));
    }
    try {
      return stands_at(root, pattern_of(*pattern_.op, sample, program_.tape), true);
    } catch (const Error&) {
      return false;
    }
  }

  /// A literal in an expansion is part of the pattern.
  static bool same_constant(const Node& pattern, const Node& node) {
    if (pattern.op != &constant_op()) return true;
    const Array& a = pattern.storage;
    const Array& b = node.storage;
    return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
  }

  /// `exactly`: with the pattern's attributes and literals.
  bool same(const Pattern& pattern, ValueId wanted, ValueId found, bool exactly) {
    for (std::size_t i = 0; i < pattern.inputs.size(); ++i)
      if (pattern.inputs[i].id() == wanted) {
        if (match_.inputs[i].node >= 0) return match_.inputs[i] == found;
        match_.inputs[i] = found;
        return true;
      }
    const Node& sought = pattern.tape.node(static_cast<std::size_t>(wanted.node));
    const Node& node = program_.node(found.node);
    if (sought.op != node.op || wanted.output != found.output || sought.inputs.size() != node.inputs.size())
      return false;
    if (exactly && (!(sought.attributes == node.attributes) || !same_constant(sought, node))) return false;
    match_.forward.insert(found.node);
    match_.found[static_cast<std::size_t>(wanted.node)] = &node;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!same(pattern, sought.inputs[i], node.inputs[i], exactly)) return false;
    return true;
  }

  /// What one sweep recorded for the forward nodes, what comes into it, and what flows out of it.
  bool backward_part() {
    for (const Adjoint& adjoint : program_.tape.adjoints()) {
      if (match_.forward.count(adjoint.forward) == 0) continue;
      if (match_.sweep >= 0 && match_.sweep != adjoint.sweep) return false;  // two sweeps: leave it alone
      match_.sweep = adjoint.sweep;
      if (adjoint.of_output) {
        if (adjoint.forward != match_.root) continue;
        if (adjoint.index != 0) return false;  // the fused gradient is given that of the first output alone
        match_.cotangent = adjoint.value;
        continue;
      }
      const ValueId flows_to = program_.node(adjoint.forward).inputs[static_cast<std::size_t>(adjoint.index)];
      for (std::size_t i = 0; i < match_.inputs.size(); ++i)
        if (match_.inputs[i] == flows_to && !add_gradient(i, adjoint.value)) return false;
    }
    for (std::size_t i = 0; i < program_.tape.size(); ++i) {
      const Provenance& of = program_.tape.node(i).of;
      if (of.sweep >= 0 && match_.forward.count(of.forward) != 0) match_.backward.insert(static_cast<std::int32_t>(i));
    }
    if (match_.backward.empty()) return true;
    match_.first_backward = *match_.backward.begin();
    for (const auto& gradient : match_.gradients)  // a cotangent handed on as it stands is not ours to replace
      if (match_.backward.count(gradient.second.node) == 0) return false;
    return match_.cotangent.node >= 0 && match_.cotangent.node < match_.first_backward && !match_.gradients.empty();
  }

  /// What flows on to an input: false where it does so by two ways (the fused gradient gives only their sum) or where
  /// one value flows on to two.
  bool add_gradient(std::size_t input, ValueId value) {
    for (const auto& gradient : match_.gradients)
      if (gradient.first == input || gradient.second == value) return false;
    match_.gradients.emplace_back(input, value);
    return true;
  }

  /// An op that gives more than stands at the root makes its gradients beforehand: in vain, where none are taken.
  bool wanted() const {
    return !match_.backward.empty() || std::all_of(pattern_.outputs.begin(), pattern_.outputs.end(),
                                                   [&](ValueId id) { return id.node == pattern_.root().node; });
  }

  bool inside(std::int32_t node) const { return match_.forward.count(node) != 0 || match_.backward.count(node) != 0; }

  /// No interior value is used elsewhere or asked for, nor what the fused op or its gradient would be given, and what the
  /// backward part takes stands before it.
  bool closed() const {
    for (const ValueId& id : match_.inputs)
      if (inside(id.node)) return false;
    if (inside(match_.cotangent.node) && !given(match_.cotangent)) return false;
    for (std::int32_t node : match_.forward)
      for (std::size_t k = 0; k < program_.node(node).outputs.size(); ++k) {
        const ValueId id{node, static_cast<std::int32_t>(k)};
        if (!given(id) && !only_used_inside(id)) return false;
      }
    for (std::int32_t node : match_.backward) {
      const bool flows_out = std::any_of(match_.gradients.begin(), match_.gradients.end(),
                                         [&](const auto& gradient) { return gradient.second.node == node; });
      for (std::size_t k = 0; !flows_out && k < program_.node(node).outputs.size(); ++k)
        if (!only_used_inside({node, static_cast<std::int32_t>(k)})) return false;
      for (const ValueId& id : program_.node(node).inputs)
        if (match_.backward.count(id.node) == 0 && id.node >= match_.first_backward) return false;
    }
    return true;
  }

  /// Whether the fused op gives this value.
  bool given(ValueId id) const {
    return id.node == match_.root && std::any_of(pattern_.outputs.begin(), pattern_.outputs.end(), [&](ValueId output) {
             return output == ValueId{pattern_.root().node, id.output};
           });
  }

  bool only_used_inside(ValueId id) const {
    const auto& users = users_[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.output)];
    return std::find(program_.outputs.begin(), program_.outputs.end(), id) == program_.outputs.end() &&
           std::all_of(users.begin(), users.end(), [&](std::int32_t user) { return inside(user); });
  }

  bool types_fit() const {
    Call typed{*pattern_.op, match_.attributes, {}, {}, nullptr, {}};
    for (const ValueId& id : match_.inputs) {
      if (id.node < 0) return false;
      typed.inputs.push_back(program_.tape.type(id));
    }
    try {
      return pattern_.op->shape(typed).at(0) == program_.node(match_.root).outputs[0];
    } catch (const Error&) {
      return false;
    }
  }

  /// The fused op's rule, tried on a tape of its own: it may decline gradients that the expansion has.
  bool gradient_fits() const {
    if (match_.backward.empty()) return true;
    if (!pattern_.op->gradient) return false;
    Tape trial = program_.tape.blank();
    const auto enter = [&](ValueId id) {
      const ValueType& type = program_.tape.type(id);
      return trial.input("in" + std::to_string(trial.size()), type.shape, type.dtype);
    };
    Vars inputs;
    for (const ValueId& id : match_.inputs) inputs.push_back(enter(id));
    const Var cotangent = enter(match_.cotangent);
    const Vars fused = record_call(trial, *pattern_.op, inputs, match_.attributes);
    const Vars gradients = fused_gradients(match_, *pattern_.op, inputs, fused, cotangent);
    return std::all_of(match_.gradients.begin(), match_.gradients.end(), [&](const auto& gradient) {
      return gradient.first < gradients.size() && !gradients[gradient.first].empty() &&
             gradients[gradient.first].type() == program_.tape.type(gradient.second);
    });
  }

  const Program& program_;
  const Pattern& pattern_;
  std::vector<std::vector<std::vector<std::int32_t>>> users_;
  Match match_;
};

/// Records the fused gradient in the backward part's place.
void record_backward(const Program& program, const Match& match, const Op& op, const Vars& fused, Rewriter& rewriter) {
  const auto in_site = rewriter.tape().in_site(program.node(match.root).site);
  const Vars gradients = fused_gradients(match, op, rewriter.now(match.inputs), fused, rewriter.now(match.cotangent));
  for (const auto& gradient : match.gradients) rewriter.replace(gradient.second, gradients[gradient.first]);
  rewriter.close(match.first_backward);
}

Program fuse_one(const Program& program, const Pattern& pattern) {
  Matcher matcher(program, pattern);
  std::vector<Match> matches;
  std::vector<std::int32_t> match_of_root(program.tape.size(), -1);
  std::vector<std::int32_t> match_of_backward(program.tape.size(), -1);
  std::vector<bool> taken(program.tape.size(), false);
  for (std::size_t i = 0; i < program.tape.size(); ++i) {
    const std::optional<Match> match = matcher.at(static_cast<std::int32_t>(i));
    if (!match) continue;
    const auto free = [&](std::int32_t node) { return !taken[static_cast<std::size_t>(node)]; };
    if (!std::all_of(match->forward.begin(), match->forward.end(), free) ||
        !std::all_of(match->backward.begin(), match->backward.end(), free))
      continue;
    for (std::int32_t node : match->forward) taken[static_cast<std::size_t>(node)] = true;
    for (std::int32_t node : match->backward) taken[static_cast<std::size_t>(node)] = true;
    match_of_root[i] = static_cast<std::int32_t>(matches.size());
    if (match->first_backward >= 0)
      match_of_backward[static_cast<std::size_t>(match->first_backward)] = static_cast<std::int32_t>(matches.size());
    matches.push_back(*match);
  }
  if (matches.empty()) return program;
  Rewriter rewriter(program);
  std::vector<Vars> fused(matches.size());
  for (std::size_t i = 0; i < program.tape.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (match_of_root[i] >= 0) {
      const auto m = static_cast<std::size_t>(match_of_root[i]);
      const auto in_site = rewriter.tape().in_site(program.node(index).site);
      fused[m] = record_call(rewriter.tape(), *pattern.op, rewriter.now(matches[m].inputs), matches[m].attributes);
      for (std::size_t k = 0; k < pattern.outputs.size(); ++k)
        if (pattern.outputs[k].node == pattern.root().node)
          rewriter.replace({index, pattern.outputs[k].output}, fused[m][k]);
      rewriter.close(index);
    } else if (match_of_backward[i] >= 0) {
      const auto m = static_cast<std::size_t>(match_of_backward[i]);
      record_backward(program, matches[m], *pattern.op, fused[m], rewriter);
    } else if (!taken[i]) {
      rewriter.keep(index);
    }
  }
  return rewriter.finish();
}
}  // namespace

Program fuse_pass(const Program& program) {
  Program current = program;
  for (const auto& row : builtin_ops().rows())
    for (const FuseSample& sample : row.second->fuses)
      current = fuse_one(current, pattern_of(*row.second, sample, program.tape));
  return current;
}

}  // namespace xtape
