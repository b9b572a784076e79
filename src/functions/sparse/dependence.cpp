#include "functions/sparse/dependence.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <string>

#include "base/arrays/order.hpp"
#include "ops/recording/enclosed.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/error.hpp"
#include "xtape/player.hpp"

namespace xtape {

IndexSets::IndexSets(std::int64_t count) : table_(64, none) {
  if (count > std::numeric_limits<std::int32_t>::max())
    throw ShapeError("sparsity: the input has " + std::to_string(count) + " elements, more than 2^31 - 1");
  seen_.resize(static_cast<std::size_t>(count));
}

IndexSets::Id IndexSets::single(std::int64_t index) {
  const auto narrow = static_cast<std::int32_t>(index);
  return interned({&narrow, 1});
}

IndexSets::Id IndexSets::united(Id a, Id b) {
  if (a == b || b == none) return a;
  if (a == none) return b;
  if (of(a).size() < of(b).size()) std::swap(a, b);
  const auto larger = of(a), smaller = of(b);
  fresh_.clear();
  for (const std::int32_t index : smaller)
    if (!std::binary_search(larger.begin(), larger.end(), index)) fresh_.push_back(index);
  if (fresh_.empty()) return a;
  together_.clear();
  std::merge(larger.begin(), larger.end(), fresh_.begin(), fresh_.end(), std::back_inserter(together_));
  return interned(together_);
}

IndexSets::Id IndexSets::united(std::vector<Id>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.empty()) return none;
  if (ids.size() <= 2) return united(ids.front(), ids.back());
  fresh_.clear();
  for (const Id id : ids)
    for (const std::int32_t index : of(id)) {
      if (seen_[index]) continue;
      seen_[index] = true;
      fresh_.push_back(index);
    }
  for (const std::int32_t index : fresh_) seen_[index] = false;
  std::ranges::sort(fresh_);
  return interned(fresh_);
}

IndexSets::Id IndexSets::interned(std::span<const std::int32_t> set) {
  if (set.empty()) return none;
  std::uint64_t hash = set.size();
  for (const std::int32_t index : set) mix(hash, static_cast<std::uint64_t>(index));
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = (hash >> 20) & mask;
  for (; table_[slot] != none; slot = (slot + 1) & mask) {
    const Id id = table_[slot];
    const auto present = of(id);
    if (hashes_[id] == hash && std::equal(present.begin(), present.end(), set.begin(), set.end())) return id;
  }
  if (indices_.size() + set.size() > static_cast<std::size_t>(most))
    throw Error(
        "sparsity: the sets of dependencies have more than 2^30 elements together: the Jacobian is not sparse, "
        "or give a pattern");
  const auto id = static_cast<Id>(hashes_.size());
  table_[slot] = id;
  indices_.insert(indices_.end(), set.begin(), set.end());
  begins_.push_back(indices_.size());
  hashes_.push_back(hash);
  if (2 * hashes_.size() > table_.size()) grow();
  return id;
}

void IndexSets::grow() {
  table_.assign(2 * table_.size(), none);
  const std::size_t mask = table_.size() - 1;
  for (std::size_t id = 1; id < hashes_.size(); ++id) {
    std::size_t slot = (hashes_[id] >> 20) & mask;
    while (table_[slot] != none) slot = (slot + 1) & mask;
    table_[slot] = static_cast<Id>(id);
  }
}

namespace {
/// Returns the number of nodes of the expansion of a call with a body. A number that does not fit in 64 bits is
/// returned as the largest std::int64_t.
std::int64_t nodes_in(const DependenceCall& call) {
  const Node& node = call.node;
  if (!node.body) return 0;
  auto count = static_cast<std::int64_t>(node.body->size());
  if (!node.op->lowering.body.steps) return count;
  const std::int64_t length = node.op->lowering.body.steps(call.recorded()).length;
  return checked_multiply(count, length) ? count : std::numeric_limits<std::int64_t>::max();
}
}  // namespace

std::vector<Dependence> DependenceWalk::run(const std::vector<ValueId>& outputs) {
  std::size_t begin = tape_.size(), finish = 0;
  for (const auto& [id, dependence] : found_) begin = std::min(begin, static_cast<std::size_t>(id.node));
  for (const ValueId& id : outputs) finish = std::max(finish, static_cast<std::size_t>(id.node) + 1);
  mark_constants(finish);
  const std::vector<bool> needed = needed_by(tape_, outputs);
  read_ = ValueTable<bool>(tape_, false);
  for (const ValueId& id : outputs) read_[id] = true;
  for (std::size_t index = begin; index < finish; ++index)
    if (needed[index])
      for (const ValueId& id : node_of(tape_, static_cast<std::int32_t>(index)).inputs) read_[id] = true;
  for (std::size_t index = begin; index < finish; ++index)
    if (needed[index]) visit(static_cast<std::int32_t>(index));
  std::vector<Dependence> results;
  for (const ValueId& id : outputs) {
    const auto found = found_.find(id);
    results.push_back(found == found_.end() ? nullptr : found->second);
  }
  return results;
}

void DependenceWalk::mark_constants(std::size_t finish) {
  std::vector<bool> given(finish, false);
  for (const auto& [id, dependence] : found_)
    if (static_cast<std::size_t>(id.node) < finish) given[id.node] = true;
  constant_.resize(finish);
  for (std::size_t index = 0; index < finish; ++index) {
    const Node& node = node_of(tape_, static_cast<std::int32_t>(index));
    const auto is_constant = [&](ValueId id) { return constant_[id.node]; };
    const bool follows =
        !node.op->is_source() && !node.op->random && !node.body && std::ranges::all_of(node.inputs, is_constant);
    constant_[index] = !given[index] && (node.op == &constant_op() || follows);
  }
}

const Array* DependenceWalk::known(ValueId id) {
  if (!constant_[id.node]) return nullptr;
  const Node& node = node_of(tape_, id.node);
  if (node.op == &constant_op()) return &node.storage;
  const auto present = known_.find(id);
  if (present != known_.end()) return &present->second;
  return &known_.emplace(id, evaluate(tape_.var(id))).first->second;
}

void DependenceWalk::visit(std::int32_t index) {
  const Node& node = node_of(tape_, index);
  DependenceCall call{.node = node,
                      .tape = tape_,
                      .known = [&](std::size_t input) { return known(node.inputs[input]); },
                      .sets = sets_};
  for (std::size_t k = 0; k < node.outputs.size(); ++k)
    call.read.push_back(read_[{index, static_cast<std::int32_t>(k)}]);
  bool reached = false;
  for (const ValueId& id : node.inputs) {
    call.inputs.push_back(type_of(tape_, id));
    const auto found = found_.find(id);
    call.given.push_back(found == found_.end() ? nullptr : found->second);
    reached = reached || call.given.back();
  }
  if (!reached || !node.op->differentiable) return;
  Dependences outputs;
  for (const auto rule : {through_moves, through_elements, through_sums, through_product, through_running_sum})
    if (!outputs) outputs = rule(call);
  if (!outputs) outputs = through_own_gradient(call);
  if (!outputs) outputs = through_expansion(call);
  if (!outputs) outputs = through_anything(call);
  for (std::size_t k = 0; k < outputs->size(); ++k)
    if ((*outputs)[k] && is_floating(node.outputs[k].dtype))
      found_[{index, static_cast<std::int32_t>(k)}] = (*outputs)[k];
}

Dependences DependenceWalk::through_own_gradient(const DependenceCall& call) {
  if (call.node.op != &custom_gradient_op() || nodes_in(call) > nodes_) return std::nullopt;
  nodes_ -= nodes_in(call);
  const Tape& body = *call.node.body;
  const auto& attributes = call.node.attributes;
  const auto& gradients_of = attributes.get<std::vector<std::int64_t>>("gradients_of");
  const auto values = static_cast<std::size_t>(attributes.get<std::int64_t>("values"));
  // the index of the first cotangent among the inputs of the body
  auto cotangent = values + static_cast<std::size_t>(attributes.get<std::int64_t>("inputs"));

  std::vector<std::int64_t> begins;  // per value: the index of its first element among the elements of all values
  std::int64_t total = 0;
  for (std::size_t k = 0; k < values; ++k) {
    begins.push_back(total);
    if (is_floating(call.node.outputs[k].dtype) && !checked_add(total, count_of(call.node.outputs[k].shape)))
      return std::nullopt;
  }
  if (total > std::numeric_limits<std::int32_t>::max()) return std::nullopt;  // IndexSets cannot hold more
  IndexSets of_cotangents(total);
  DependenceWalk inside(body, of_cotangents, nodes_);
  for (std::size_t k = 0; k < values; ++k) {
    if (!is_floating(call.node.outputs[k].dtype)) continue;
    std::vector<IndexSets::Id> own;
    for (std::int64_t i = 0; i < count_of(call.node.outputs[k].shape); ++i)
      own.push_back(of_cotangents.single(begins[k] + i));
    inside.set(body.inputs()[cotangent++], std::make_shared<const std::vector<IndexSets::Id>>(std::move(own)));
  }
  const std::vector<Dependence> gradients = inside.run(body.results());

  // Maps each set of cotangents to the dependences of the elements whose gradients read this set.
  std::map<IndexSets::Id, std::vector<IndexSets::Id>> readers;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Dependence& given = call.given[gradients_of[i]];
    if (!given || !gradients[i]) continue;
    for (std::size_t element = 0; element < given->size(); ++element)
      readers[(*gradients[i])[element]].push_back((*given)[element]);
  }
  CollectedSets meetings;
  for (auto& [cotangents, sets] : readers) {
    const IndexSets::Id all = sets_.united(sets);
    for (const std::int32_t place : of_cotangents.of(cotangents)) meetings.add(place, all);
  }
  const std::vector<IndexSets::Id> united = meetings.united(sets_, total);
  std::vector<Dependence> outputs(values);
  for (std::size_t k = 0; k < values; ++k)
    if (is_floating(call.node.outputs[k].dtype))
      outputs[k] = std::make_shared<const std::vector<IndexSets::Id>>(
          united.begin() + begins[k], united.begin() + begins[k] + count_of(call.node.outputs[k].shape));
  return outputs;
}

Dependences DependenceWalk::through_expansion(const DependenceCall& call) {
  const Node& node = call.node;
  const std::int64_t nodes = nodes_in(call);
  if (!node.op->expand || node.op->derivative.differs || nodes > nodes_) return std::nullopt;
  nodes_ -= nodes;
  Tape apart = tape_.blank();
  const auto in_site = apart.in_site(node.site);
  DependenceWalk inside(apart, sets_, nodes_);
  Vars inputs;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Array* value = call.known(i);
    inputs.push_back(value ? apart.constant(*value)
                           : apart.input("in" + std::to_string(i), call.inputs[i].shape, call.inputs[i].dtype));
    if (call.given[i]) inside.set(inputs[i].id(), call.given[i]);
  }
  std::vector<ValueId> read;
  const Vars made = expansion(node, apart, inputs);
  for (std::size_t k = 0; k < made.size(); ++k)
    if (call.read[k]) read.push_back(made[k].id());
  const std::vector<Dependence> found = inside.run(read);
  std::vector<Dependence> outputs(made.size());
  for (std::size_t k = 0, next = 0; k < made.size(); ++k)
    if (call.read[k]) outputs[k] = found[next++];
  return outputs;
}

}  // namespace xtape
