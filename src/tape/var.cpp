#include <utility>

#include "tape/calls.hpp"
#include "tape/tape_data.hpp"
#include "xtape/tape.hpp"

namespace xtape {

TapeData* Var::locked(const Caller& caller) const {
  return at_place(caller, [&] { return locked(); });
}

TapeData* Var::locked() const {
  if (serial_ == 0) throw HandleError("an empty var: it was never recorded");
  const auto data = tape_.lock();
  if (!data) throw HandleError("a stale var: its tape is gone");
  const auto index = static_cast<std::size_t>(id_.node);
  if (index >= data->nodes.size() || data->nodes[index].serial != serial_)
    throw HandleError("a stale var: its node was taken off the tape (by a failed call, or into a checkpoint)");
  return data.get();
}

const ValueType& Var::type(Caller caller) const {
  return node(caller).outputs[id_.output];
}
const Node& Var::node(Caller caller) const {
  return locked(caller)->nodes[id_.node];
}

ValueId Var::id(Caller caller) const {
  locked(caller);
  return id_;
}

Tape Var::tape(Caller caller) const {
  locked(caller);
  return Tape(tape_.lock());
}

std::int64_t Var::size(std::int64_t axis, Caller caller) const {
  const Shape& sizes = shape(caller);
  return sizes[at_place(caller, [&] { return normal_axis(axis, sizes.size()); })];
}

}  // namespace xtape
