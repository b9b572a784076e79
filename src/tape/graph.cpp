#include "tape/graph.hpp"

#include <algorithm>
#include <utility>

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

}  // namespace xtape
