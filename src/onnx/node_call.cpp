#include <algorithm>
#include <cmath>
#include <map>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "onnx/operators.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/elementwise.hpp"
#include "xtape/player.hpp"

namespace xtape::onnx {

namespace {
/// Returns the value of `var`, or nothing if it depends on an input of the tape. Plays copies of the needed nodes on a
/// separate tape, so that the time does not grow with the whole tape.
std::optional<Array> value_of(const Var& var) {
  const Tape tape = var.tape();
  std::set<std::int32_t> needed;
  std::vector<std::int32_t> open = {var.id().node};
  while (!open.empty()) {
    const std::int32_t index = open.back();
    open.pop_back();
    if (!needed.insert(index).second) continue;
    const xtape::Node& node = tape.node(static_cast<std::size_t>(index));
    // In the body of a scan, slices and states have a different value at each step.
    if (node.op->name == "input" || node.op->name == "step_slice" || node.op->name == "step_state") return std::nullopt;
    for (const ValueId input : node.inputs) open.push_back(input.node);
  }
  Tape apart = tape.blank();
  std::map<std::int32_t, std::int32_t> copies;
  for (const std::int32_t index : needed) {
    xtape::Node node = tape.node(static_cast<std::size_t>(index));
    for (ValueId& input : node.inputs) input.node = copies.at(input.node);
    copies[index] = apart.append(std::move(node)).node;
  }
  return evaluate(apart.var({copies.at(var.id().node), var.id().output}));
}

template <class T>
std::vector<T> numbers_of(const Array& array) {
  std::vector<T> numbers;
  visit_elements(array, [&](const auto* elements) {
    for (std::int64_t i = 0; i < array.count(); ++i) {
      if (std::is_integral_v<T> && is_floating(array.dtype()) && !(std::abs(static_cast<double>(elements[i])) < 0x1p63))
        throw Error("a number is no integer of 64 bits");
      numbers.push_back(static_cast<T>(elements[i]));
    }
  });
  return numbers;
}
}  // namespace

Dtype dtype_in(std::int64_t element, const Setting& setting, const std::string& what) {
  const Dtype dtype = dtype_of_element(element, what);
  return is_floating(dtype) ? setting.floats.value_or(dtype) : dtype;
}

Array with_floats(Array array, const Setting& setting) {
  if (!setting.floats || !is_floating(array.dtype()) || array.dtype() == *setting.floats) return array;
  Array converted(*setting.floats, array.shape());
  convert_floats(array, converted);
  return converted;
}

Var constant_of(Tape tape, const Array& array) {
  const auto in_call = tape.in_call(&builtin_ops().at("full"), {});
  return tape.constant(array);
}

Var constant_integers(const Tape& tape, const Integers& numbers) {
  Array array(Dtype::int64, {std::ssize(numbers)});
  std::copy(numbers.begin(), numbers.end(), array.as<std::int64_t>());
  return Tape(tape).constant(array);
}

Var wide(const Var& x) {
  if (!is_floating(x.dtype())) return cast(x, Dtype::float64);
  return is_half(x.dtype()) ? cast(x, Dtype::float32) : x;
}

Vars in_one_dtype(Vars xs) {
  std::set<Dtype> dtypes;
  for (const Var& x : xs)
    if (!x.empty()) dtypes.insert(x.dtype());
  const Dtype widest = dtypes.count(Dtype::float64) != 0 ? Dtype::float64 : Dtype::float32;
  for (Var& x : xs)
    if (dtypes.size() > 1 && !x.empty()) x = cast(x, widest);
  return xs;
}

std::optional<std::pair<std::int64_t, std::int64_t>> range_of(Element element) {
  if (element == Element::uint8) return std::pair{0, 0xFF};
  if (element == Element::uint16) return std::pair{0, 0xFFFF};
  if (element == Element::int16) return std::pair{-0x8000, 0x7FFF};
  if (element == Element::uint32) return std::pair{std::int64_t{0}, std::int64_t{0xFFFFFFFF}};
  return std::nullopt;
}

Var wrapped(const Typed& value) {
  const auto range = range_of(value.element);
  if (!range) return value.var;
  if (range->first == 0) return bitwise_and(value.var, range->second);
  return bitwise_right_shift(bitwise_left_shift(value.var, 16), 16);
}

NodeCall::NodeCall(const Node& node, const Setting& setting, Tape tape, const TypedVars& inputs, RecordGraph record)
    : node_(node), setting_(setting), tape_(std::move(tape)), record_(std::move(record)) {
  for (const Typed& input : inputs) inputs_.push_back(input.var), elements_.push_back(input.element);
}

void NodeCall::set_element(std::size_t output, Element element) {
  given_.resize(std::max(given_.size(), output + 1), Element::none);
  given_[output] = element;
}

void NodeCall::set_elements(const Graph& graph, std::size_t from) {
  for (std::size_t i = from; i < graph.outputs.size(); ++i)
    set_element(i - from, static_cast<Element>(graph.outputs[i].element));
}

void NodeCall::fail(const std::string& message) const {
  throw Error(node_.op + ": " + message);
}

const Var& NodeCall::at(std::size_t i) {
  if (!has(i)) fail("input " + std::to_string(i) + " is missing");
  read_inputs_.insert(i);
  return inputs_[i];
}

Var NodeCall::optional(std::size_t i) {
  return has(i) ? at(i) : Var();
}

const Vars& NodeCall::all() {
  for (std::size_t i = 0; i < std::max<std::size_t>(1, inputs_.size()); ++i) at(i);
  return inputs_;
}

Array NodeCall::known(const Var& var, const std::string& what) {
  if (count_of(var.shape()) > most_numbers)
    fail(what + " has the shape " + to_string(var.shape()) + ", too many numbers");
  std::optional<Array> value = value_of(var);
  if (!value) fail(what + " must be known while recording, but depends on the values of the model's inputs");
  return std::move(*value);
}

Array NodeCall::known(std::size_t i) {
  const Var& var = at(i);  // comes first, because it throws if the input is missing
  return known(var, "input " + std::to_string(i) + " ('" + node_.inputs[i] + "')");
}

Array NodeCall::known_one(std::size_t i) {
  Array array = known(i);
  if (array.count() != 1)
    fail("input " + std::to_string(i) + " has " + std::to_string(array.count()) + " numbers, not one");
  return array;
}

std::int64_t NodeCall::known_integer(const Var& var, const std::string& what) {
  const std::vector<std::int64_t> numbers = numbers_of<std::int64_t>(known(var, what));
  if (numbers.size() != 1) fail(what + " has " + std::to_string(numbers.size()) + " numbers, not one");
  return numbers.front();
}

Integers NodeCall::known_integers(std::size_t i) {
  return numbers_of<std::int64_t>(known(i));
}
std::vector<double> NodeCall::known_numbers(std::size_t i) {
  return numbers_of<double>(known(i));
}
std::int64_t NodeCall::known_integer(std::size_t i) {
  return numbers_of<std::int64_t>(known_one(i)).front();
}
double NodeCall::known_number(std::size_t i) {
  return numbers_of<double>(known_one(i)).front();
}

const Attribute* NodeCall::find(const std::string& name, Attribute::Type type) {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return nullptr;
  read_attributes_.insert(name);
  if (!found->second.reference.empty())
    fail("attribute '" + name + "' stands for '" + found->second.reference + "' of a call, outside of functions");
  if (found->second.type != type)
    fail("attribute '" + name + "' has type " + std::to_string(found->second.type) + ", not " + std::to_string(type));
  return &found->second;
}

std::int64_t NodeCall::integer(const std::string& name, std::optional<std::int64_t> otherwise) {
  if (const Attribute* attribute = find(name, Attribute::integer)) return attribute->i;
  if (!otherwise) fail("attribute '" + name + "' is missing");
  return *otherwise;
}

bool NodeCall::flag(const std::string& name, bool otherwise) {
  const std::int64_t given = integer(name, otherwise ? 1 : 0);
  if (given != 0 && given != 1) fail("attribute '" + name + "' is " + std::to_string(given) + ", not 0 or 1");
  return given == 1;
}

double NodeCall::real(const std::string& name, std::optional<double> otherwise) {
  if (const Attribute* attribute = find(name, Attribute::real)) return attribute->f;
  if (!otherwise) fail("attribute '" + name + "' is missing");
  return *otherwise;
}

std::string NodeCall::text(const std::string& name, const std::string& otherwise) {
  const Attribute* attribute = find(name, Attribute::text);
  return attribute != nullptr ? attribute->s : otherwise;
}

Integers NodeCall::integers(const std::string& name, const std::optional<Integers>& otherwise) {
  if (const Attribute* attribute = find(name, Attribute::integers)) return attribute->ints;
  if (!otherwise) fail("attribute '" + name + "' is missing");
  return *otherwise;
}

Array NodeCall::array(const std::string& name) {
  const Attribute* attribute = find(name, Attribute::tensor);
  if (attribute == nullptr) fail("attribute '" + name + "' is missing");
  set_element(0, attribute->t.element);
  return with_floats(Array(attribute->t.array), setting_);
}

std::vector<double> NodeCall::reals(const std::string& name) {
  const Attribute* attribute = find(name, Attribute::reals);
  return attribute != nullptr ? attribute->floats : std::vector<double>{};
}

std::vector<std::string> NodeCall::texts(const std::string& name) {
  const Attribute* attribute = find(name, Attribute::texts);
  return attribute != nullptr ? attribute->strings : std::vector<std::string>{};
}

Vars NodeCall::record(const std::string& name, const Vars& inputs) {
  return record_(graph(name), inputs);
}

const Graph& NodeCall::graph(const std::string& name) {
  const Attribute* attribute = find(name, Attribute::graph);
  if (attribute == nullptr || attribute->g == nullptr) fail("attribute '" + name + "' is missing");
  return *attribute->g;
}

std::optional<Integers> NodeCall::integers(const std::string& name, std::size_t input) {
  if (has(name)) return integers(name);
  if (has(input)) return known_integers(input);
  return std::nullopt;
}

void NodeCall::finish(std::size_t results) const {
  std::vector<std::string> left;
  for (const auto& [name, attribute] : node_.attributes)
    // 'consumed_inputs' of versions before 6 allowed a program to reuse memory
    if (read_attributes_.count(name) == 0 && name != "consumed_inputs") left.push_back("attribute '" + name + "'");
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (has(i) && read_inputs_.count(i) == 0) left.push_back("input " + std::to_string(i));
  for (std::size_t i = results; i < outputs(); ++i)
    if (gives(i)) left.push_back("output " + std::to_string(i));
  if (!left.empty()) fail(joined(left) + (left.size() == 1 ? " is" : " are") + " not supported");
}

}  // namespace xtape::onnx
