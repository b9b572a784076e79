// Fuses elementwise ops.
#include <algorithm>

#include "passes/passes.hpp"

namespace xtape {

namespace {
constexpr std::size_t max_fused_ops = 64;  // nodes; the interior values of a tile of more would not fit in the cache

/// The groups of nodes that are fused, by number; -1 for nodes that are not elementwise.
class Groups {
 public:
  explicit Groups(const Program& program)
      : program_(program),
        users_(program),
        positions_(program.positions()),
        requested_(program.tape, false),
        group_(program.tape.size(), -1) {
    for (const ValueId& id : program.outputs) requested_[id] = true;
    for (std::size_t i = program.order.size(); i-- > 0;) place(program.order[i]);
  }
  std::int32_t of(std::int32_t node) const { return group_[node]; }
  bool any() const { return any_; }  ///< Whether some group has two or more members.
  const std::vector<std::int32_t>& members(std::int32_t group) const { return members_[group]; }
  /// Whether the value is an output of the program, or is read outside of its group.
  bool used_outside(ValueId id) const {
    const auto users = users_.of(id);
    return requested_[id] ||
           std::any_of(users.begin(), users.end(), [&](std::int32_t user) { return of(user) != of(id.node); });
  }

 private:
  /// Assigns a node to a group. Called from the last node to the first. A group runs at the position of its last
  /// member, the root, so a node may join the group of a user only if no user outside that group comes before the root.
  void place(std::int32_t index) {
    if (!program_.node(index).op->lowering.tile) return;
    for (const std::int32_t user : users_.of(index))
      if (const std::int32_t group = of(user); group >= 0 && may_join(index, group)) {
        group_[index] = group;
        members_[group].push_back(index);
        any_ = true;
        return;
      }
    group_[index] = static_cast<std::int32_t>(members_.size());
    members_.push_back({index});
  }

  bool may_join(std::int32_t index, std::int32_t group) const {
    const auto& members = members_[group];
    const std::int32_t root = members.front();
    if (members.size() >= max_fused_ops || program_.regions[index] != program_.regions[root]) return false;
    if (program_.node(index).outputs[0].shape != program_.node(root).outputs[0].shape) return false;
    const auto users = users_.of(index);
    return std::all_of(users.begin(), users.end(), [&](std::int32_t user) {
      return of(user) == group || positions_[user] >= positions_[root];
    });
  }

  const Program& program_;
  Users users_;
  std::vector<std::int32_t> positions_;
  ValueTable<bool> requested_;
  bool any_ = false;
  std::vector<std::int32_t> group_;                 // per node
  std::vector<std::vector<std::int32_t>> members_;  // root first, then backwards
};

/// Records a group as one node in place of its root. Moves the members to the body of the node.
void record_fused(Program& program, const Groups& groups, std::int32_t group, Rewriter& rewriter) {
  const std::vector<std::int32_t>& members = groups.members(group);
  const std::int32_t root = members.front();
  auto body = std::make_shared<Tape>(program.tape.blank());
  Node fused;
  fused.op = &fused_elementwise_op();
  fused.site = program.node(root).site;
  std::vector<std::pair<ValueId, ValueId>> inside;  // (value of the program, value of the body)
  const auto find = [&](ValueId id) -> ValueId {
    for (const auto& pair : inside)
      if (pair.first == id) return pair.second;
    const ValueId now = rewriter.now(id);
    Node input;
    input.op = &input_op();
    const SharedList<ValueType>& types = program.node(now.node).outputs;
    input.outputs = types.size() == 1 ? types : SharedList<ValueType>{program.type(now)};
    input.site = fused.site;
    fused.inputs.push_back(now);
    return inside.emplace_back(id, body->append(std::move(input))).second;
  };
  std::vector<ValueId> given;    // values of the program that are outputs of the fused node
  std::vector<ValueId> results;  // the same in the body
  std::vector<ValueType> types;
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    Node node = std::move(editable(program.tape, *member));
    for (ValueId& input : node.inputs) input = find(input);
    const SharedList<ValueType> outputs = node.outputs;
    const std::int32_t placed = body->append(std::move(node)).node;
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(outputs.size()); ++k) {
      const ValueId old{*member, k};
      inside.push_back({old, {placed, k}});
      if (!groups.used_outside(old)) continue;
      given.push_back(old);
      results.push_back({placed, k});
      types.push_back(outputs[k]);
    }
  }
  body->set_results(results);
  fused.outputs = std::move(types);
  fused.body = body;
  const std::int32_t placed = rewriter.tape().append(std::move(fused)).node;
  for (std::size_t k = 0; k < given.size(); ++k)
    rewriter.replace(given[k], program.var({placed, static_cast<std::int32_t>(k)}));
  rewriter.close(root);
}
}  // namespace

const Op& fused_elementwise_op() {
  static const Op entry = [] {
    Op op;
    op.name = "fused_elementwise";
    op.doc = "Applies elementwise ops together, tile by tile.";
    op.inputs = {{"xs", Accept::any, Arity::many}};
    op.outputs = {"ys"};
    op.lowering.tiles_body = true;
    op.shape = [](const Call& call) {
      std::vector<ValueType> types;
      for (const ValueId& id : call.body->results()) types.push_back(call.body->type(id));
      return types;
    };
    op.expand = [](const ExpandCall& call) { return inline_body(call.tape, *call.node.body, call.inputs); };
    return op;
  }();
  return entry;
}

void elementwise_pass(Program& program) {
  const Groups groups(program);
  if (!groups.any()) return;
  Rewriter rewriter(program);
  for (const std::int32_t index : program.order) {
    const std::int32_t group = groups.of(index);
    if (group < 0 || groups.members(group).size() == 1)
      rewriter.keep(index);
    else if (groups.members(group).front() == index)
      record_fused(program, groups, group, rewriter);
  }
  rewriter.finish();
}

}  // namespace xtape
