/// Tools for code that walks over the nodes of a tape or copies them to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tape/tape_data.hpp"

namespace xtape {

/// Returns a node that can be changed. The tape must have the node. Change only nodes of tapes that the library has
/// made for itself, never nodes of a user's tape.
inline Node& editable(const Tape& tape, std::int32_t index) {
  return tape.data_->nodes[index];
}
/// Like Tape::node and Tape::type, but without checks, because loops over nodes call these functions often. The node or
/// value must exist.
inline const Node& node_of(const Tape& tape, std::int32_t index) {
  return editable(tape, index);
}
inline const ValueType& type_of(const Tape& tape, ValueId id) {
  return node_of(tape, id.node).outputs[id.output];
}

std::vector<ValueType> types_of(const Vars& vars);

/// Returns whether the node is a constant of rank 0.
bool is_number(const Node& node);
/// Returns whether the node is a number that a call recorded for itself, such as the 2 of `x * 2`. The program holds no
/// var of it. So nothing is ever differentiated with respect to it, and calls may read its value while they are
/// recorded. They must not read the value of a constant that the program recorded, because their result would then
/// not depend on this constant.
bool is_literal(const Node& node);

const TapeData& data_of(const Tape& tape);

/// Stores one T for each value of a tape. The tape must outlive the table.
template <class T>
class ValueTable {
 public:
  ValueTable() = default;
  ValueTable(const Tape& tape, const T& initial) { extend(tape, initial); }
  /// Adds entries for the nodes that are on the tape but not in the table.
  void extend(const Tape& tape, const T& initial) { extend(tape, static_cast<std::int32_t>(tape.size()), initial); }
  /// Like the other extend, but only for the first `size` nodes of the tape.
  void extend(const Tape& tape, std::int32_t size, const T& initial) {
    data_ = &data_of(tape);
    if (static_cast<std::size_t>(size) <= nodes_) return;
    nodes_ = static_cast<std::size_t>(size);
    values_.resize(begin(size), initial);
  }
  std::size_t nodes() const { return nodes_; }
  std::vector<T>& all() { return values_; }
  // vector<bool> has its own reference type.
  typename std::vector<T>::reference operator[](ValueId id) { return values_[place(id)]; }
  typename std::vector<T>::const_reference operator[](ValueId id) const { return values_[place(id)]; }
  std::span<T> of(std::int32_t node) { return {values_.data() + begin(node), begin(node + 1) - begin(node)}; }
  std::span<const T> of(std::int32_t node) const {
    return {values_.data() + begin(node), begin(node + 1) - begin(node)};
  }

 private:
  std::size_t begin(std::int32_t node) const { return data_->values_before[node]; }
  std::size_t place(ValueId id) const { return begin(id.node) + static_cast<std::size_t>(id.output); }
  const TapeData* data_ = nullptr;
  std::size_t nodes_ = 0;
  std::vector<T> values_;
};

/// Returns for each node of the tape whether `values` depend on it. Looks only at the nodes up to the last node of
/// `values`.
std::vector<bool> needed_by(const Tape& tape, const std::vector<ValueId>& values);

/// Copies nodes of one tape to another. The inputs of a copy are the values of the new tape that stand for the old
/// inputs: copies, or the values passed to `replace`.
class Copier {
 public:
  Copier(const Tape& from, const Tape& to) : from_(from), to_(to), now_(from, {}) {}

  Tape& to() { return to_; }
  /// Returns the new value that stands for a value of the old tape. Its node is -1 if there is none yet.
  ValueId now(ValueId old) const {
    const bool is_known = old.node >= 0 && static_cast<std::size_t>(old.node) < now_.nodes();
    return is_known ? now_[old] : ValueId{};
  }
  bool known(ValueId old) const { return now(old).node >= 0; }
  void replace(ValueId old, ValueId fresh);
  /// Copies node `index`. Returns the index of the copy. Throws HandleError if no new value stands for an input.
  std::int32_t copy(std::int32_t index);
  /// Like copy, but moves the node. The old tape must not be used afterwards.
  std::int32_t move(std::int32_t index);

 private:
  friend const TapeData& data_of(const Tape& tape);
  static const TapeData& data(const Tape& tape) { return *tape.data_; }
  std::int32_t place_last(std::int32_t index);
  Tape from_, to_;
  ValueTable<ValueId> now_;
};

}  // namespace xtape
