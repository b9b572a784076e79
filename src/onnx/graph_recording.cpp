#include "onnx/graph_recording.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"

namespace xtape::onnx {

namespace {
/// Returns the node with references to attributes replaced by the attributes of the call.
Node resolved(const Node& node, const NodeAttributes& given) {
  Node copy = node;
  for (auto at = copy.attributes.begin(); at != copy.attributes.end();) {
    if (at->second.reference.empty()) {
      ++at;
      continue;
    }
    const auto found = given.find(at->second.reference);
    if (found == given.end()) {
      at = copy.attributes.erase(at);  // the call does not set the attribute
    } else {
      (at++)->second = found->second;
    }
  }
  return copy;
}

bool refers(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const auto& each) { return !each.second.reference.empty(); });
}

Vars vars_of(const TypedVars& values) {
  Vars vars;
  for (const Typed& value : values) vars.push_back(value.var);
  return vars;
}
}  // namespace

const LocalFunction* called_function(const Functions& functions, const Node& node) {
  if (functions.empty()) return nullptr;
  const auto found = functions.find(function_key(node.domain, node.op, node.overload));
  return found == functions.end() ? nullptr : &found->second;
}

Vars Recording::record(const std::vector<Node>& nodes, const std::vector<std::string>& results, const Setting& setting,
                       Values& values, const std::string& path) {
  return vars_of(record(nodes, results, Frame{setting, values, nullptr, path}));
}

TypedVars Recording::record(const std::vector<Node>& nodes, const std::vector<std::string>& results,
                            const Frame& frame) {
  for (const Node& node : nodes) record(node, frame);
  TypedVars vars;
  for (const std::string& result : results) {
    const auto found = frame.values.find(result);
    if (found == frame.values.end() || found->second.var.empty()) throw Error("there is no value '" + result + "'");
    vars.push_back(found->second);
  }
  return vars;
}

void Recording::record(const Node& written, const Frame& frame) {
  constexpr std::int64_t most = 1 << 22;  // limits the nodes of a recording, because calls of functions can nest
  const bool replaces = frame.attributes != nullptr && refers(written);
  const Node copy = replaces ? resolved(written, *frame.attributes) : Node();
  const Node& node = replaces ? copy : written;
  const auto scope = std::make_shared<const Scope>(Scope{frame.path + node.shown(), file_ + ", " + node.op});
  const Tape::Guard guard = tape_.in_scope(scope, 0);
  try {
    if (++recorded_ > most) throw Error("the model records more than " + std::to_string(most) + " nodes");
    TypedVars inputs;
    for (const std::string& input : node.inputs) {
      const auto found = frame.values.find(input);
      if (found == frame.values.end()) throw Error(node.op + ": there is no value '" + input + "' at this node");
      inputs.push_back(found->second);
    }
    const LocalFunction* function = called_function(functions_, node);
    const TypedVars results =
        function != nullptr ? call(*function, node, inputs, frame) : call(*find_operator(node.op), node, inputs, frame);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty() && !frame.values.emplace(node.outputs[i], results[i]).second)
        throw Error(node.op + ": there is a value '" + node.outputs[i] + "' already");
  } catch (Error& error) {
    error.name_location(to_string(Site{scope}));
    throw;
  }
}

TypedVars Recording::call(const Operator& known, const Node& node, const TypedVars& inputs, const Frame& frame) {
  NodeCall call(node, frame.setting, tape_, inputs,
                [&](const Graph& graph, const Vars& given) { return record(graph, given, frame); });
  const Vars vars = known.function(call);
  call.finish(vars.size());
  TypedVars results;
  for (std::size_t i = 0; i < vars.size(); ++i) results.push_back({vars[i], call.element_of_output(i)});
  if (known.like < inputs.size() && !inputs[known.like].var.empty() && !results.empty())
    results[0] = {cast(vars[0], inputs[known.like].var.dtype()), inputs[known.like].element};
  if (known.can_leave_range && !results.empty()) results[0].var = wrapped(results[0]);
  return results;
}

/// A graph inside a node can also use the values outside. Its own names hide names outside.
Vars Recording::record(const Graph& graph, const Vars& given, const Frame& outside) {
  if (given.size() != graph.inputs.size())
    throw Error("the graph inside has " + std::to_string(graph.inputs.size()) + " inputs, not " +
                std::to_string(given.size()));
  Values values = outside.values;
  for (std::size_t i = 0; i < given.size(); ++i)
    values[graph.inputs[i].name] = {given[i], static_cast<Element>(graph.inputs[i].element)};
  for (const Tensor& tensor : graph.initialisers)
    values[tensor.name] = {constant_of(tape_, with_floats(Array(tensor.array), outside.setting)), tensor.element};
  for (const Node& node : graph.nodes)
    for (const std::string& output : node.outputs) values.erase(output);
  values[""] = {};
  std::vector<std::string> results;
  for (const Value& output : graph.outputs) results.push_back(output.name);
  return vars_of(record(graph.nodes, results, Frame{outside.setting, values, outside.attributes, outside.path}));
}

/// The nodes of a function can use only its inputs. Trailing inputs and outputs may be missing.
TypedVars Recording::call(const LocalFunction& function, const Node& node, const TypedVars& inputs,
                          const Frame& outside) {
  if (inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    throw Error(node.op + ": the function has " + std::to_string(function.inputs.size()) + " inputs and " +
                std::to_string(function.outputs.size()) + " outputs, not " + std::to_string(inputs.size()) + " and " +
                std::to_string(node.outputs.size()));
  Values values = {{"", {}}};
  for (std::size_t i = 0; i < function.inputs.size(); ++i)
    values[function.inputs[i]] = i < inputs.size() ? inputs[i] : Typed{};
  NodeAttributes attributes = node.attributes;
  attributes.insert(function.defaults.begin(), function.defaults.end());
  const Setting setting{function.opset == 0 ? outside.setting.opset : function.opset, outside.setting.floats};
  const std::vector<std::string> results(function.outputs.begin(), function.outputs.begin() + std::ssize(node.outputs));
  return record(function.nodes, results, Frame{setting, values, &attributes, outside.path + node.shown() + "/"});
}

namespace {
const std::map<std::string, Operator>& table() {
  static const std::map<std::string, Operator> all = [] {
    std::map<std::string, Operator> made;
    for (const Operators* family :
         {&elementwise_operators(), &constant_operators(), &control_operators(), &reduction_operators(),
          &shape_operators(), &indexing_operators(), &product_operators(), &norm_operators(), &recurrent_operators(),
          &resampling_operators(), &attention_operators()})
      for (const Operator& each : *family) made.emplace(each.name, each);
    return made;
  }();
  return all;
}
}  // namespace

const Operator* find_operator(const std::string& name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : &found->second;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const auto& [name, each] : table()) names.push_back(name);
  return names;
}

}  // namespace xtape::onnx
