// A scan over tokens that arrive in pieces. The states after every position are cached in the same way as keys and
// values. Each row therefore continues from its own last position.
#include "ops/scan/scan.hpp"
#include "xtape/ops.hpp"

namespace xtape {

CachedStates::CachedStates(Tape tape, const Var& past, const Vars& init) : tape_(tape), past_(past) {
  const std::int64_t rows = past.size(0), capacity = tape.capacity();
  // the last position of each row, counted over the positions of all rows
  const Var last = iota(tape, {rows}) * capacity + maximum(past - 1, 0);
  for (const Var& first : init) {
    if (first.rank() == 0 || first.shape()[0] != rows)
      throw ShapeError("scan: in mode predict a state must have a row for each of the " + std::to_string(rows) +
                       " rows of tokens, got " + to_string(first.type()));
    Shape shape = first.shape();
    shape.insert(1, capacity);
    const std::size_t number = tape.states().size() + held_.size();
    held_.push_back(tape.input("states " + std::to_string(number), shape, first.dtype()));
    shape.erase(0);
    shape[0] *= rows;
    Shape begun = Shape::filled(first.rank(), 1);
    begun[0] = rows;
    before_.push_back(where(reshape(past > 0, begun), take(reshape(held_.back(), shape), last), first));
  }
}

void CachedStates::hold(const Vars& states) {
  for (std::size_t j = 0; j < states.size(); ++j) {
    const Var held = apply(builtin_ops().at("cache"), {states[j], held_[j], past_}, {{"axis", std::int64_t{1}}})[0];
    tape_.add_state(held_[j], held);
  }
}

}  // namespace xtape
