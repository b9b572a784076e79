// The past of the rows of a tape in mode predict, and the states that hold it.
#include "tape/tape_data.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

void Tape::set_past(const Var& tokens, const Var& past, std::int64_t capacity) {
  if (mode() != Mode::predict)
    throw Error(std::string("only a tape in mode predict has a past, not one in mode ") + name_of(mode()));
  if (data_->past >= 0) throw Error("the tape already has a past");
  if (tokens.tape() != *this || past.tape() != *this) throw HandleError("set_past: its vars must be of this tape");
  if (tokens.rank() == 0 || past.type() != ValueType{Dtype::int64, {tokens.size(0)}})
    throw ShapeError("the past of tokens " + to_string(tokens.type()) +
                     " must be int64, one number for each row, not " + to_string(past.type()));
  if (capacity < 1) throw Error("the capacity of caches must be at least 1, got " + std::to_string(capacity));
  data_->tokens = tokens.id().node;
  data_->past = past.id().node;
  data_->capacity = capacity;
}

Var Tape::past_of(const Var& x) const {
  if (x.tape() != *this) throw HandleError("past_of: the var is of another tape");
  if (data_->past < 0) return {};
  std::vector<bool> seen(size(), false);
  std::vector<std::int32_t> open{x.id().node};
  while (!open.empty()) {
    const std::int32_t index = open.back();
    open.pop_back();
    if (index == data_->tokens || index == data_->past) return var({data_->past, 0});
    if (seen[index]) continue;
    seen[index] = true;
    for (const ValueId& input : node(index).inputs) open.push_back(input.node);
  }
  return {};
}

std::int64_t Tape::capacity() const {
  return data_->capacity;
}

std::vector<Carry> Tape::states() const {
  std::vector<Carry> states;
  for (const auto& [input, output] : data_->states) states.push_back({var(input), var(output)});
  return states;
}

void Tape::add_state(const Var& input, const Var& output) {
  if (input.tape() != *this || output.tape() != *this) throw HandleError("add_state: a var is of another tape");
  if (input.node().op != &input_op())
    throw Error("add_state: a state begins at an input, not at " + input.node().op->name);
  data_->states.emplace_back(input.id(), output.id());
}

}  // namespace xtape
