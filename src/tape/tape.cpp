#include "xtape/tape.hpp"

#include <algorithm>

#include "calls.hpp"
#include "check_call.hpp"
#include "graph.hpp"
#include "tape_data.hpp"
#include "visit.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// The 64-bit FNV-1a hash.
class Hash {
 public:
  Hash& add(const std::string& text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    add_byte(0xff);  // so that ("a", "b") and ("ab", "") differ
    return *this;
  }
  Hash& add(std::int64_t number) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(number >> (8 * i)));
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211ULL; }
  std::uint64_t value_ = 14695981039346656037ULL;
};

std::uint64_t place_hash(const Site& site, const Op& op) {
  return Hash().add(site.scope->path).add(site.line).add(op.name).value();
}

/// Returns the site of the next call of `op`: the current scope and line, and the number of earlier calls of `op` at
/// this place.
Site next_site(TapeData& data, const Op& op) {
  if (data.site_is_fixed) return data.site;
  Site site = data.site;
  if (site.op == nullptr) site.op = &op;
  const std::uint64_t place = place_hash(site, op);
  site.occurrence = data.occurrences[place]++;
  data.counted.push_back(place);
  site.key = Hash().add(static_cast<std::int64_t>(place)).add(site.occurrence).value();
  return site;
}
}  // namespace

const char* name_of(Mode mode) {
  return mode == Mode::train ? "train" : mode == Mode::eval ? "eval" : "predict";
}

Mode mode_named(const std::string& name) {
  for (Mode mode : {Mode::train, Mode::eval, Mode::predict})
    if (name == name_of(mode)) return mode;
  throw Error("unknown mode '" + name + "': use train, eval or predict");
}

Tape::Tape() : Tape(Mode::train) {}

Tape::Tape(Mode mode) : data_(std::make_shared<TapeData>()) {
  data_->mode = mode;
  data_->site.scope = std::make_shared<const Scope>();
}

Tape::Tape(Dtype default_dtype, Mode mode) : Tape(mode) { set_default_dtype(default_dtype); }

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
    return values.size() > 0 && std::all_of(values.begin(), values.end(), [&](const Literal& each) { return (each.*is)(); });
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
    const Shape shape{static_cast<std::int64_t>(values.size())};
    return constant(array_of(values, dtype.value_or(dtype_of(values, *this)), shape));
  });
}

Mode Tape::mode() const { return data_->mode; }
Dtype Tape::default_dtype() const { return data_->default_dtype; }

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

const OpTable* Tape::ops() const { return data_->ops; }
void Tape::set_ops(const OpTable& table) { data_->ops = &table; }
std::size_t Tape::size() const { return data_->nodes.size(); }

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
  var.tape_ = data_;
  var.id_ = id;
  var.serial_ = node(id.node).serial;
  return var;
}

const std::vector<ValueId>& Tape::results() const { return data_->results; }

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
}  // namespace

namespace {
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

namespace {
/// Removes the nodes from index `size` on, and all references to these nodes.
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
}

/// Returns how many sites were counted before node `size`. If `enclose` replaced the nodes from `size` on, returns how
/// many were counted before the replaced nodes.
std::size_t counted_at(const TapeData& data, std::size_t size) {
  if (size < data.counted_before.size()) return data.counted_before[size];
  return std::min(data.counted.size(), data.enclosed_from);
}
}  // namespace

void Tape::truncate(std::size_t size) {
  TapeData& data = *data_;
  const std::size_t counted = counted_at(data, size);
  for (; data.counted.size() > counted; data.counted.pop_back()) --data.occurrences[data.counted.back()];
  drop_nodes(data, size);
  data.counted_before.resize(data.nodes.size());
  data.enclosed_from = TapeData::no_enclosed;
}

namespace {
/// Returns whether the node is a literal. Each body has its own copies of literals, because fusion rules read literals.
bool is_literal(const Node& node) { return node.op == &constant_op() && node.outputs[0].shape.empty(); }
}  // namespace

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

  Vars outer;                                              // the outer values that become the inputs of the body
  std::vector<std::pair<ValueId, ValueId>> taken;          // (outer value, body input)
  std::vector<std::int32_t> inner(region.size(), -1);      // region node -> body node
  std::vector<std::int32_t> hoisted(region.size(), -1);    // region source -> node of this tape
  const auto first = static_cast<std::int32_t>(size);
  const auto into_body = [&](ValueId id) -> ValueId {
    if (id.node >= first && inner[id.node - first] >= 0)
      return {inner[id.node - first], id.output};
    const ValueId source = id.node >= first ? ValueId{hoisted[id.node - first], 0} : id;
    for (const auto& pair : taken)
      if (pair.first == source) return pair.second;
    if (const Node& known = node(source.node); is_literal(known)) {
      taken.emplace_back(source, body->append(known));
      return taken.back().second;
    }
    const Var input = body->input("in" + std::to_string(outer.size()), type(source).shape, type(source).dtype);
    taken.emplace_back(source, input.id());
    outer.push_back(var(source));
    return input.id();
  };
  for (std::size_t i = 0; i < region.size(); ++i) {
    Node node = std::move(region[i]);
    if (node.op->is_source()) {
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

// Guards ------------------------------------------------------------------------------------------------------------

Tape::Guard::Guard(std::shared_ptr<TapeData> tape, Site site, bool site_is_fixed, bool fused)
    : tape_(std::move(tape)),
      site_before_(tape_->site),
      fixed_before_(tape_->site_is_fixed),
      fused_before_(tape_->fused) {
  tape_->site = std::move(site);
  tape_->site_is_fixed = site_is_fixed;
  tape_->fused = fused;
}

Tape::Guard::~Guard() {
  tape_->site = std::move(site_before_);
  tape_->site_is_fixed = fixed_before_;
  tape_->fused = fused_before_;
}

Tape::Guard Tape::in_call(const Op* op, const Caller& caller) {
  Site site = data_->site;
  if (!data_->site_is_fixed && site.op == nullptr && !site.caller.known()) {
    site.op = op;
    if (site.scope->where.empty()) site.caller = caller;
  }
  return Guard(data_, std::move(site), data_->site_is_fixed, data_->fused);
}

Tape::Guard Tape::out_of_call() {
  Site site = data_->site;
  if (!data_->site_is_fixed) {
    site.op = nullptr;
    site.caller = {};
  }
  return Guard(data_, std::move(site), data_->site_is_fixed, data_->fused);
}

Tape::Guard Tape::in_scope(std::shared_ptr<const Scope> scope, std::int32_t line) {
  if (!scope) throw Error("in_scope: the scope is null");
  return Guard(data_, Site{std::move(scope), line, 0, 0}, false, data_->fused);
}

Tape::Guard Tape::in_site(const Site& site) {
  Site complete = site;
  if (!complete.scope) complete.scope = std::make_shared<const Scope>();
  return Guard(data_, std::move(complete), true, data_->fused);
}

Tape::Guard Tape::in_fused_call() { return Guard(data_, data_->site, data_->site_is_fixed, true); }

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
