#include "tape/graph.hpp"

#include <algorithm>
#include <utility>

#include "tape/tape_data.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

std::vector<ValueType> types_of(const Vars& vars) {
  std::vector<ValueType> types;
  for (const Var& var : vars) types.push_back(var.type());
  return types;
}

bool is_number(const Node& node) {
  return node.op == &constant_op() && node.outputs[0].shape.empty();
}

bool is_literal(const Node& node) {
  return is_number(node) && node.site.op != &constant_op();
}

std::vector<bool> needed_by(const Tape& tape, const std::vector<ValueId>& values) {
  std::vector<bool> needed(tape.size(), false);
  // does not visit the nodes after the last of `values`, because programs record gradients of early values one by one
  // on a long tape
  std::int32_t finish = 0;
  for (const ValueId& id : values) {
    needed[id.node] = true;
    finish = std::max(finish, id.node + 1);
  }
  for (std::int32_t i = finish; i-- > 0;)
    if (needed[i])
      for (const ValueId& input : node_of(tape, i).inputs) needed[input.node] = true;
  return needed;
}

const TapeData& data_of(const Tape& tape) {
  return Copier::data(tape);
}

void Copier::replace(ValueId old, ValueId fresh) {
  now_.extend(from_, {});
  now_[old] = fresh;
}

std::int32_t Copier::copy(std::int32_t index) {
  to_.data_->nodes.push_back(node_of(from_, index));
  return place_last(index);
}

std::int32_t Copier::move(std::int32_t index) {
  to_.data_->nodes.push_back(std::move(editable(from_, index)));
  return place_last(index);
}

/// Connects the node that was just added, a copy of node `index`.
std::int32_t Copier::place_last(std::int32_t index) {
  for (ValueId& input : to_.data_->nodes.back().inputs) {
    input = now(input);
    if (input.node >= 0) continue;
    to_.data_->nodes.pop_back();
    throw HandleError("a node may only use nodes that precede it");
  }
  now_.extend(from_, {});
  const std::int32_t fresh = complete_last(*to_.data_).node;
  std::int32_t output = 0;
  for (ValueId& id : now_.of(index)) id = {fresh, output++};
  return fresh;
}

// Moves nodes of a tape into a body, and records the nodes of a body on a tape.

std::pair<std::shared_ptr<const Tape>, Vars> Tape::enclose(std::size_t size, const Vars& results) {
  if (size > this->size())
    throw HandleError("enclose: the tape has no node " + std::to_string(size) + ": it has " +
                      std::to_string(this->size()));
  for (const Var& result : results)
    if (result.tape() != *this) throw HandleError("enclose: a result is of another tape");
  auto body = std::make_shared<Tape>(blank());
  std::vector<Node> region;
  for (std::size_t i = size; i < this->size(); ++i) region.push_back(node(i));
  std::vector<ValueId> result_ids;
  for (const Var& result : results) result_ids.push_back(result.id());
  const std::size_t counted = counted_at(*data_, size);
  drop_nodes(*data_, size);
  data_->counted_before.resize(size);
  // the sites of the enclosed nodes stay counted, because the body contains these nodes now
  data_->enclosed_from = counted;

  Vars outer;                                            // the outer values that become the inputs of the body
  std::unordered_map<ValueId, ValueId> taken;            // outer value -> body input
  std::vector<std::int32_t> inner(region.size(), -1);    // region node -> body node
  std::vector<std::int32_t> hoisted(region.size(), -1);  // region source -> node of this tape
  const auto first = static_cast<std::int32_t>(size);
  const auto into_body = [&](ValueId id) -> ValueId {
    if (id.node >= first && inner[id.node - first] >= 0) return {inner[id.node - first], id.output};
    const ValueId source = id.node >= first ? ValueId{hoisted[id.node - first], 0} : id;
    if (const auto known = taken.find(source); known != taken.end()) return known->second;
    const Var input = body->input("in" + std::to_string(outer.size()), type(source).shape, type(source).dtype);
    taken.emplace(source, input.id());
    outer.push_back(var(source));
    return input.id();
  };
  for (std::size_t i = 0; i < region.size(); ++i) {
    Node node = std::move(region[i]);
    if (node.op->is_source() && !is_number(node)) {
      hoisted[i] = append(std::move(node)).node;
      continue;
    }
    for (ValueId& input : node.inputs) input = into_body(input);
    inner[i] = body->append(std::move(node)).node;
  }
  for (ValueId& id : result_ids) id = into_body(id);
  body->set_results(std::move(result_ids));
  return {body, outer};
}

namespace {
/// Throws Error if `inputs` cannot replace the inputs of the body on `tape`.
void check_inlining(const Tape& tape, const Tape& body, const Vars& inputs) {
  if (tape == body) throw Error("inline_body: a tape cannot be recorded on itself");
  const std::vector<ValueId> places = body.inputs();
  if (places.size() != inputs.size())
    throw Error("inline_body: the body has " + std::to_string(places.size()) + " inputs, got " +
                std::to_string(inputs.size()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (inputs[i].tape() != tape) throw HandleError("inline_body: an input is of another tape");
    if (inputs[i].type() != body.type(places[i]))
      throw ShapeError("inline_body: input " + std::to_string(i) + " of the body is " +
                       to_string(body.type(places[i])) + ", got " + to_string(inputs[i].type()));
  }
}
}  // namespace

Vars inline_body(Tape tape, const Tape& body, const Vars& inputs) {
  check_inlining(tape, body, inputs);
  Copier copier(body, tape);
  std::size_t next_input = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (body.node(i).op == &input_op())
      copier.replace({index, 0}, inputs[next_input++].id());
    else
      copier.copy(index);
  }
  Vars results;
  for (const ValueId& id : body.results()) results.push_back(tape.var(copier.now(id)));
  return results;
}

}  // namespace xtape
