#include "xtape/tape.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/arrays/visit.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "tape/tape_data.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

const char* name_of(Mode mode) {
  return mode == Mode::train ? "train" : mode == Mode::eval ? "eval" : "predict";
}

Mode mode_named(const std::string& name) {
  for (Mode mode : {Mode::train, Mode::eval, Mode::predict})
    if (name == name_of(mode)) return mode;
  throw Error("unknown mode '" + name + "': use train, eval or predict");
}

namespace {
// The places of tapes that are gone. They are never freed, because vars may still refer to them.
std::mutex places_mutex;
TapePlace* free_places = nullptr;

TapePlace& free_place() {
  const std::lock_guard lock(places_mutex);
  if (free_places == nullptr) return *new TapePlace;
  return *std::exchange(free_places, free_places->next_free);
}
}  // namespace

TapeData::TapeData() : place(free_place()) {
  place.tape = this;
}
TapeData::~TapeData() {
  ++place.number;
  const std::lock_guard lock(places_mutex);
  place.next_free = std::exchange(free_places, &place);
}

Tape::Tape() : Tape(Mode::train) {}

Tape::Tape(Mode mode) : data_(std::make_shared<TapeData>()) {
  data_->mode = mode;
  data_->site.scope = std::make_shared<const Scope>();
}

Tape::Tape(Dtype default_dtype, Mode mode) : Tape(mode) {
  set_default_dtype(default_dtype);
}

Var Tape::input(const std::string& name, const Shape& shape, std::optional<Dtype> dtype, Caller caller) {
  return as_call(*this, &input_op(), caller, [&] {
    if (data_->inputs.count(name) != 0) throw Error("the tape already has an input named '" + name + "'");
    Node node;
    node.op = &input_op();
    node.outputs = {{dtype.value_or(default_dtype()), shape}};
    node.name = name;
    return var(append(std::move(node)));
  });
}

Var Tape::parameter(const Store& store, const std::string& name, Caller caller) {
  return as_call(*this, &parameter_op(), caller, [&] { return parameter(name, store.at(name)); });
}

Var Tape::parameter(const std::string& name, const Array& array, Caller caller) {
  return as_call(*this, &parameter_op(), caller, [&] {
    if (!array) throw Error("parameter '" + name + "': the array is empty");
    const auto known = data_->parameters.find(array.data());
    if (known != data_->parameters.end()) return var({known->second, 0});
    Node node;
    node.op = &parameter_op();
    node.outputs = {{array.dtype(), array.shape()}};
    node.name = name;
    node.storage = array;
    return var(append(std::move(node)));
  });
}

Var Tape::constant(const ArrayView& values, Caller caller) {
  return as_call(*this, &constant_op(), caller, [&] {
    Node node;
    node.op = &constant_op();
    node.outputs = {{values.dtype(), values.shape()}};
    node.storage = Array(values);
    return var(append(std::move(node)));
  });
}

namespace {
/// Returns the dtype of a list of literals.
Dtype dtype_of(std::initializer_list<Literal> values, const Tape& tape) {
  const auto all = [&](bool (Literal::*is)() const) {
    return values.size() > 0 && std::ranges::all_of(values, [&](const Literal& each) { return (each.*is)(); });
  };
  return all(&Literal::is_boolean) ? Dtype::boolean : all(&Literal::is_whole) ? Dtype::int64 : tape.default_dtype();
}
}  // namespace

Var Tape::constant(const Literal& value, std::optional<Dtype> dtype, Caller caller) {
  return as_call(*this, &constant_op(), caller,
                 [&] { return constant(array_of({value}, dtype.value_or(dtype_of({value}, *this)), {})); });
}

Var Tape::constant(std::initializer_list<Literal> values, std::optional<Dtype> dtype, Caller caller) {
  return as_call(*this, &constant_op(), caller, [&] {
    const Shape shape{std::ssize(values)};
    return constant(array_of(values, dtype.value_or(dtype_of(values, *this)), shape));
  });
}

Mode Tape::mode() const {
  return data_->mode;
}
Dtype Tape::default_dtype() const {
  return data_->default_dtype;
}

void Tape::set_default_dtype(Dtype dtype) {
  if (dtype != Dtype::float32 && dtype != Dtype::float64)
    throw DtypeError(std::string("the default dtype is float32 or float64, not ") + name_of(dtype));
  data_->default_dtype = dtype;
}

Tape Tape::blank() const {
  Tape tape(mode());
  tape.set_default_dtype(default_dtype());
  tape.data_->ops = data_->ops;
  return tape;
}

const OpTable* Tape::ops() const {
  return data_->ops;
}
void Tape::set_ops(const OpTable& table) {
  data_->ops = &table;
}
std::size_t Tape::size() const {
  return data_->nodes.size();
}

const Node& Tape::node(std::size_t index) const {
  if (index >= size())
    throw HandleError("the tape has no node " + std::to_string(index) + ": it has " + std::to_string(size()));
  return data_->nodes[index];
}

const ValueType& Tape::type(ValueId id) const {
  if (id.node < 0) throw HandleError("the tape has no node " + std::to_string(id.node));
  const Node& node = this->node(id.node);
  if (id.output < 0 || static_cast<std::size_t>(id.output) >= node.outputs.size())
    throw HandleError("node " + std::to_string(id.node) + ", " + node.op->name + ", has no output " +
                      std::to_string(id.output) + ": it has " + std::to_string(node.outputs.size()));
  return node.outputs[id.output];
}

Var Tape::var(ValueId id) const {
  type(id);  // checks that there is such a value
  Var var;
  var.place_ = &data_->place;
  var.tape_ = data_->place.number;
  var.id_ = id;
  var.serial_ = node(id.node).serial;
  return var;
}

const std::vector<ValueId>& Tape::results() const {
  return data_->results;
}

void Tape::set_results(std::vector<ValueId> results) {
  for (const ValueId result : results) type(result);  // checks that there is such a value
  data_->results = std::move(results);
}

std::vector<ValueId> Tape::inputs() const {
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < size(); ++i)
    if (data_->nodes[i].op == &input_op()) ids.push_back({static_cast<std::int32_t>(i), 0});
  return ids;
}

namespace {
/// Throws ShapeError if an output cannot be an array. Code that uses the types of values on a tape can therefore rely
/// on valid sizes.
void check_outputs(const Tape& tape, const Node& node) {
  for (const ValueType& type : node.outputs) try {
      checked_bytes(type.dtype, type.shape);
    } catch (const ShapeError& error) {
      std::string text = node.op->name + (node.name.empty() ? "" : " '" + node.name + "'") + ": " + error.what();
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        text += (i == 0 ? "; its operands are " : " and ") + to_string(tape.type(node.inputs[i]));
      throw ShapeError(text);
    }
}

/// Throws Error if an input, parameter or constant has inputs or several outputs. Throws Error if a parameter or
/// constant has no array of the type of its output.
void check_source(const Node& node) {
  const auto refuse = [&](const std::string& why) {
    throw Error(node.op->name + (node.name.empty() ? "" : " '" + node.name + "'") + ": " + why);
  };
  if (node.outputs.size() != 1 || !node.inputs.empty()) refuse("a source has one output and no inputs");
  if (node.op == &input_op()) return;
  if (!node.storage) refuse("the array is empty");
  const ValueType held{node.storage.dtype(), node.storage.shape()};
  if (held != node.outputs[0]) refuse("its array is " + to_string(held) + ", its output " + to_string(node.outputs[0]));
}

void check_inputs(const Node& node) {
  try {
    check_arity(*node.op, node.inputs.size());
  } catch (Error& error) {
    error.name_op(node.op->name);
    throw;
  }
}
}  // namespace

ValueId Tape::append(Node node) {
  if (node.op == nullptr) throw Error("append: the node has no op");
  const auto index = static_cast<std::int32_t>(size());
  for (const ValueId& input : node.inputs) {
    if (input.node < 0 || input.node >= index) throw HandleError("a node may only use nodes that precede it");
    type(input);  // checks that the node has this output
    if (const auto& types = data_->nodes[input.node].outputs; types == node.outputs) node.outputs = types;  // share it
  }
  if (node.op->is_source())
    check_source(node);
  else
    check_inputs(node);
  check_outputs(*this, node);
  return push(*data_, std::move(node));
}

ValueId push(TapeData& data, Node&& node) {
  data.nodes.push_back(std::move(node));
  return complete_last(data);
}

ValueId complete_last(TapeData& data) {
  const auto index = static_cast<std::int32_t>(data.nodes.size()) - 1;
  Node& node = data.nodes.back();
  const std::size_t counted_before = std::min(data.counted.size(), data.enclosed_from);
  if (!node.site.scope) node.site = next_site(data, *node.op);
  node.fused |= data.fused;
  node.serial = data.next_serial++;
  if (node.op == &input_op()) data.inputs.emplace(node.name, index);
  if (node.op == &parameter_op()) data.parameters.emplace(node.storage.data(), index);
  data.values_before.push_back(data.values_before.back() + node.outputs.size());
  data.counted_before.push_back(counted_before);
  data.enclosed_from = TapeData::no_enclosed;
  return {index, 0};
}

void drop_nodes(TapeData& data, std::size_t size) {
  const auto forget = [](auto& index_of, const auto& key, std::size_t index) {
    const auto found = index_of.find(key);
    if (found != index_of.end() && found->second == static_cast<std::int32_t>(index)) index_of.erase(found);
  };
  while (data.nodes.size() > size) {
    const Node& last = data.nodes.back();
    if (last.op == &input_op()) forget(data.inputs, last.name, data.nodes.size() - 1);
    if (last.op == &parameter_op()) forget(data.parameters, last.storage.data(), data.nodes.size() - 1);
    data.nodes.pop_back();
    data.values_before.pop_back();
  }
  while (!data.states.empty() && data.states.back().second.node >= static_cast<std::int32_t>(size))
    data.states.pop_back();
  if (std::max(data.tokens, data.past) < static_cast<std::int32_t>(size)) return;
  data.tokens = data.past = -1;
  data.capacity = 0;
  data.caches = Dtype::float32;
}

std::size_t counted_at(const TapeData& data, std::size_t size) {
  if (size < data.counted_before.size()) return data.counted_before[size];
  return std::min(data.counted.size(), data.enclosed_from);
}

void Tape::truncate(std::size_t size) {
  TapeData& data = *data_;
  const std::size_t counted = counted_at(data, size);
  for (; data.counted.size() > counted; data.counted.pop_back()) --data.occurrences[data.counted.back()];
  drop_nodes(data, size);
  data.counted_before.resize(data.nodes.size());
  data.enclosed_from = TapeData::no_enclosed;
}

TapeData& Var::data(const Caller& caller) const {
  return *at_place(caller, [&] { return &data(); });
}

TapeData& Var::data() const {
  if (serial_ == 0) throw HandleError("an empty var: it was never recorded");
  if (place_->number != tape_) throw HandleError("a stale var: its tape is gone");
  TapeData& data = *place_->tape;
  const auto index = static_cast<std::size_t>(id_.node);
  if (index >= data.nodes.size() || data.nodes[index].serial != serial_)
    throw HandleError("a stale var: its node was taken off the tape (by a failed call, or into a checkpoint)");
  return data;
}

const ValueType& Var::type(Caller caller) const {
  return node(caller).outputs[id_.output];
}
const Node& Var::node(Caller caller) const {
  return data(caller).nodes[id_.node];
}

ValueId Var::id(Caller caller) const {
  data(caller);
  return id_;
}

Tape Var::tape(Caller caller) const {
  return Tape(data(caller).shared_from_this());
}

std::int64_t Var::size(std::int64_t axis, Caller caller) const {
  const Shape& sizes = shape(caller);
  return sizes[at_place(caller, [&] { return normal_axis(axis, sizes.size()); })];
}

}  // namespace xtape
