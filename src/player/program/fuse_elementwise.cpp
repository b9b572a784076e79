// Fuses elementwise ops.
#include <algorithm>
#include <unordered_map>

#include "base/arrays/order.hpp"
#include "player/program/passes.hpp"
#include "tape/node_text.hpp"

namespace xtape {

namespace {
// nodes; with more, the interior values of a tile would not fit in the cache
constexpr std::int32_t max_fused_ops = 64;

/// The groups of fused nodes, by number. The number is -1 for nodes that are not elementwise.
class Groups {
 public:
  explicit Groups(const Program& program)
      : program_(program),
        users_(program),
        positions_(program.positions()),
        requested_(program.tape, false),
        group_(program.tape.size(), -1),
        next_(program.tape.size(), -1) {
    for (const ValueId& id : program.outputs) requested_[id] = true;
    for (std::size_t i = program.order.size(); i-- > 0;) place(program.order[i]);
  }
  std::int32_t of(std::int32_t node) const { return group_[node]; }
  bool any() const { return groups_.size() < placed_; }  ///< Returns whether a group has two or more members.
  std::int32_t size(std::int32_t group) const { return groups_[group].size; }
  std::int32_t root(std::int32_t group) const { return groups_[group].root; }    ///< The last member.
  std::int32_t first(std::int32_t group) const { return groups_[group].first; }  ///< The first member.
  /// The next member, or -1 after the last one.
  std::int32_t next(std::int32_t member) const { return next_[member]; }
  /// Returns whether the value is an output of the program or is read outside of its group.
  bool used_outside(ValueId id) const {
    const auto users = users_.of(id);
    return requested_[id] ||
           std::any_of(users.begin(), users.end(), [&](std::int32_t user) { return of(user) != of(id.node); });
  }

 private:
  struct Group {
    std::int32_t root, first, size;
  };

  /// Assigns a node to a group. The calls go from the last node to the first. A group runs at the position of its last
  /// member, the root. A node may therefore join the group of a user only if all users outside of the group come after
  /// the root.
  void place(std::int32_t index) {
    if (!program_.node(index).op->lowering.tile) return;
    ++placed_;
    for (const std::int32_t user : users_.of(index))
      if (const std::int32_t group = of(user); group >= 0 && may_join(index, group)) {
        group_[index] = group;
        next_[index] = groups_[group].first;
        groups_[group].first = index;
        ++groups_[group].size;
        return;
      }
    group_[index] = static_cast<std::int32_t>(groups_.size());
    groups_.push_back({index, index, 1});
  }

  bool may_join(std::int32_t index, std::int32_t group) const {
    const std::int32_t root = groups_[group].root;
    if (groups_[group].size >= max_fused_ops || program_.regions[index] != program_.regions[root]) return false;
    if (program_.node(index).outputs[0].shape != program_.node(root).outputs[0].shape) return false;
    const auto users = users_.of(index);
    return std::all_of(users.begin(), users.end(),
                       [&](std::int32_t user) { return of(user) == group || positions_[user] >= positions_[root]; });
  }

  const Program& program_;
  Users users_;
  std::vector<std::int32_t> positions_;
  ValueTable<bool> requested_;
  std::size_t placed_ = 0;           // number of nodes in groups
  std::vector<std::int32_t> group_;  // per node: its group
  std::vector<std::int32_t> next_;   // per node: the next member of its group
  std::vector<Group> groups_;
};

/// Records each group as one node in place of its root. Equal groups share a body, so twelve equal layers need only one
/// body.
class Recorder {
 public:
  Recorder(Program& program, const Groups& groups, Rewriter& rewriter)
      : program_(program), groups_(groups), rewriter_(rewriter) {}

  void record(std::int32_t group) {
    const std::int32_t root = groups_.root(group);
    Node fused;
    fused.op = &fused_elementwise_op();
    fused.site = program_.node(root).site;
    lay_out(group, fused.inputs);
    fused.outputs = types();
    fused.body = body(fused.inputs, fused.site);
    const std::int32_t placed = rewriter_.tape().append(std::move(fused)).node;
    for (std::size_t k = 0; k < given_.size(); ++k)
      rewriter_.replace(given_[k], program_.var({placed, static_cast<std::int32_t>(k)}));
    rewriter_.close(root);
  }

 private:
  static constexpr std::int32_t an_input = -1;

  /// Returns the types of the outputs of the fused node. Shares the list of a member that has the same types.
  SharedList<ValueType> types() const {
    const auto& first = program_.node(given_[0].node).outputs;
    if (given_.size() == 1 && first.size() == 1) return first;
    std::vector<ValueType> types;
    types.reserve(given_.size());
    for (const ValueId& id : given_) types.push_back(program_.type(id));
    return types;
  }

  /// Sets the nodes and results of the group's body, and sets `inputs` to the values that the body reads. The inputs of
  /// members become values of the body.
  void lay_out(std::int32_t group, ValueIds& inputs) {
    nodes_.clear();
    inside_.clear();
    given_.clear();
    results_.clear();
    const auto find = [&](ValueId id) -> ValueId {
      for (const auto& pair : inside_)
        if (pair.first == id) return pair.second;
      inputs.push_back(rewriter_.now(id));
      nodes_.push_back(an_input);
      return inside_.emplace_back(id, ValueId{static_cast<std::int32_t>(nodes_.size()) - 1, 0}).second;
    };
    for (std::int32_t member = groups_.first(group); member >= 0; member = groups_.next(member)) {
      Node& node = editable(program_.tape, member);
      for (ValueId& input : node.inputs) input = find(input);
      const auto placed = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back(member);
      for (std::int32_t k = 0; k < static_cast<std::int32_t>(node.outputs.size()); ++k) {
        const ValueId old{member, k};
        inside_.push_back({old, {placed, k}});
        if (!groups_.used_outside(old)) continue;
        given_.push_back(old);
        results_.push_back({placed, k});
      }
    }
  }

  /// Returns an equal body, or a new body with the members.
  std::shared_ptr<const Tape> body(const ValueIds& inputs, const Site& site) {
    std::uint64_t hash = results_.size();
    bool random = false;  // whether the body draws random numbers, which depend on its own site
    for (const std::int32_t member : nodes_) {
      if (member == an_input) continue;
      const Node& node = program_.node(member);
      mix(hash, reinterpret_cast<std::uintptr_t>(node.op));
      mix(hash, hash_of(node.attributes));
      mix(hash, static_cast<std::uint64_t>(count_of(node.outputs[0].shape)));
      for (const ValueId& id : node.inputs) mix(hash, static_cast<std::uint64_t>(id.node));
      random |= node.op->random;
    }
    const auto [begin, end] = bodies_.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& each) { return is_of(*each.second, inputs); });
    if (same != end && !random) return same->second;
    auto made = std::make_shared<Tape>(program_.tape.blank());
    auto input = inputs.begin();
    for (const std::int32_t member : nodes_) {
      Node node;
      if (member != an_input) {
        node = program_.node(member);
      } else {
        node.op = &input_op();
        node.outputs = {program_.type(*input++)};
        node.site = site;
      }
      made->append(std::move(node));
    }
    made->set_results(results_);
    return bodies_.emplace(hash, std::move(made))->second;
  }

  /// Returns whether a body has the nodes and results that were laid out.
  bool is_of(const Tape& body, const ValueIds& inputs) const {
    if (body.size() != nodes_.size() || body.results() != results_) return false;
    auto input = inputs.begin();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& there = node_of(body, static_cast<std::int32_t>(i));
      if (nodes_[i] == an_input) {
        if (there.op != &input_op() || there.outputs[0] != program_.type(*input++)) return false;
        continue;
      }
      const Node& own = program_.node(nodes_[i]);
      if (there.op != own.op || there.inputs != own.inputs || there.outputs != own.outputs ||
          !same_attributes(there.attributes, own.attributes))
        return false;
    }
    return true;
  }

  Program& program_;
  const Groups& groups_;
  Rewriter& rewriter_;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const Tape>> bodies_;  // by a hash of the nodes
  // The group being recorded:
  std::vector<std::int32_t> nodes_;                  // per node of the body: the member, or `an_input`
  std::vector<std::pair<ValueId, ValueId>> inside_;  // (value of the program, value of the body)
  std::vector<ValueId> given_;                       // values of the program that are outputs of the fused node
  std::vector<ValueId> results_;                     // the corresponding values of the body
};
}  // namespace

const Op& fused_elementwise_op() {
  static const Op entry = [] {
    Op op;
    op.name = "fused_elementwise";
    op.doc = "Applies elementwise ops together, tile by tile.";
    op.inputs = {{"xs", Accept::any, Arity::many}};
    op.outputs = {"ys"};
    op.lowering.body.tiles = true;
    op.shape = [](const OpCall& call) {
      std::vector<ValueType> types;
      for (const ValueId& id : call.body->results()) types.push_back(call.body->type(id));
      return types;
    };
    op.expand = [](const ExpandCall& call) { return inline_body(call.tape, *call.node.body, call.inputs); };
    return op;
  }();
  return entry;
}

bool runs_in_tiles(const Op& op) {
  return op.lowering.tile || op.lowering.body.tiles;
}

void elementwise_pass(Program& program) {
  const Groups groups(program);
  if (!groups.any()) return;
  Rewriter rewriter(program);
  Recorder recorder(program, groups, rewriter);
  for (const std::int32_t index : program.order) {
    const std::int32_t group = groups.of(index);
    if (group < 0 || groups.size(group) == 1)
      rewriter.keep(index);
    else if (groups.root(group) == index)
      recorder.record(group);
  }
  rewriter.finish_without_pruning();
}

}  // namespace xtape
