#include "model/definition/definition_blocks.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/messages/wording.hpp"
#include "nn/layers.hpp"

namespace xtape::model {

namespace {
const std::vector<std::string> reserved_names = {"and", "or", "not", "for", "true", "false", "none", "inf"};

void check_name(const std::string& name, const JsonNode& node) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool good = !name.empty() && letter(name[0]);
  for (char c : name) good = good && (letter(c) || (c >= '0' && c <= '9'));
  if (!good) node.fail("'" + name + "' cannot be a name: names consist of letters, digits and _, no digit first");
  if (contains(reserved_names, name)) node.fail("'" + name + "' cannot be a name: it is a reserved word");
}

Line parsed(const JsonNode& node, bool may_assign) {
  return parse_line(node.text(), location_of(node), may_assign);
}

Input read_input(const std::string& text, const JsonNode& node) {
  Input input;
  input.location = location_of(node);
  input.many = !text.empty() && text[0] == '*';
  input.name = input.many ? text.substr(1) : text;
  check_name(input.name, node);
  return input;
}

/// Reads a type such as "float [b, t, d]", "int" or "any [...]".
void read_type(Input& input, const JsonNode& node) {
  std::string text = node.text();
  const std::size_t bracket = std::min(text.find('['), text.size());
  std::string kind = text.substr(0, bracket);
  kind.erase(kind.find_last_not_of(' ') + 1);
  input.optional = !kind.empty() && kind.back() == '?';
  if (input.optional) {
    text[kind.size() - 1] = ' ';
    kind.pop_back();
  }
  const std::vector<std::string> kinds = {"int",      "float",   "bool",  "any",   "float32", "float64",
                                          "bfloat16", "float16", "int32", "int64", "int8"};
  if (!contains(kinds, kind))
    fail(location_of(node), text, 0,
         "a type is written as in \"float [b, t]\", with int, float, bool, any or a dtype before the sizes" +
             did_you_mean(kind, kinds));
  input.kind = kind;
  if (bracket == text.size()) return;
  input.has_dims = true;
  if (text.find_first_not_of(' ', bracket + 1) == text.find(']', bracket)) return;  // "[]": rank 0
  // Parses the type as an index, which allows expressions and an ellipsis as sizes.
  const Line whole = parse_line(text, location_of(node), false);
  if (whole.value.form != Form::index) fail(location_of(node), text, bracket, "a type must end with its sizes");
  if (whole.value.children.size() > Shape::max_rank + 2)
    fail(location_of(node), text, bracket, "an array has at most " + std::to_string(Shape::max_rank) + " axes");
  int ellipses = 0;
  for (std::size_t i = 1; i < whole.value.children.size(); ++i) {
    Line dim{.location = whole.location, .text = text, .value = whole.value.children[i]};
    if (dim.value.form == Form::range) dim.fail(dim.value.column, "a size belongs here, not a range");
    if (dim.value.form == Form::ellipsis && ++ellipses > 1)
      dim.fail(dim.value.column, "'...' can appear only once in a type");
    input.dims.push_back(std::move(dim));
  }
}

std::vector<Input> read_inputs(const JsonNode& node, bool typed) {
  std::vector<Input> inputs;
  if (node.is_array() && !typed) {
    for (const JsonNode& each : node.elements()) inputs.push_back(read_input(each.text(), each));
  } else {
    for (const auto& [name, type] : node.entries()) {
      inputs.push_back(read_input(name, type));
      read_type(inputs.back(), type);
      if (typed && inputs.back().many) type.fail("a function takes a fixed number of inputs");
      if (typed && inputs.back().optional) type.fail("an input of a function is an array: only blocks take none");
      if (typed && (!inputs.back().has_dims || inputs.back().kind == "any"))
        type.fail("an input of a function needs a dtype and its sizes, such as \"int [b, t]\"");
    }
  }
  std::set<std::string> names;
  for (const Input& input : inputs) {
    if (input.many && &input != &inputs.back()) node.fail("'*" + input.name + "' must be the last input");
    if (!names.insert(input.name).second) node.fail("the input '" + input.name + "' is declared twice");
  }
  return inputs;
}

Computation read_computation(const JsonNode& node) {
  Computation computation;
  if (node.has("do"))
    for (const JsonNode& each : node.at("do").elements()) computation.lines.push_back(parsed(each, true));
  const JsonNode result = node.at("result");
  if (result.is_object()) {
    for (const auto& [name, value] : result.entries()) {
      check_name(name, value);
      computation.results.emplace_back(name, parsed(value, false));
    }
    if (computation.results.empty()) result.fail("at least one result belongs here");
  } else {
    computation.results.emplace_back("", parsed(result, false));
  }
  for (const auto& [name, line] : computation.results)
    if (line.value.form == Form::tuple && line.value.children.empty())
      line.fail(line.value.column, "at least one result belongs here");
  return computation;
}

/// If an expression chooses the initialiser, the settings of all initialisers are allowed. Settings of the initialisers
/// that are not chosen have no effect.
void read_initialiser(WeightSpec& weight, const JsonNode& entry) {
  weight.init = read_expression(entry.at("init"));
  const std::string& named = weight.init.text;
  const bool chosen = initialiser_settings(named) == nullptr;
  std::vector<std::string> known = {"shape", "init", "when", "about"};
  for (const std::string& name : chosen ? initialiser_names() : std::vector{named})
    for (const auto& [setting, initial] : *initialiser_settings(name))
      if (!contains(known, setting)) {
        known.push_back(setting);
        if (entry.has(setting)) weight.settings.emplace_back(setting, read_expression(entry.at(setting)));
      }
  entry.only(known);
}

std::vector<WeightSpec> read_weights(const Entries& entries) {
  std::vector<WeightSpec> weights;
  for (const auto& [name, entry] : entries) {
    check_name(name, entry);
    WeightSpec weight;
    weight.name = name;
    weight.location = location_of(entry);
    for (const JsonNode& size : entry.at("shape").elements()) weight.shape.push_back(read_expression(size));
    if (weight.shape.size() > Shape::max_rank)
      entry.at("shape").fail("an array has at most " + std::to_string(Shape::max_rank) + " axes");
    read_initialiser(weight, entry);
    if (entry.has("when")) weight.when = read_expression(entry.at("when"));
    weights.push_back(std::move(weight));
  }
  return weights;
}

/// Reads a parameter of a module, or the parameters under "pass".
void read_setting(const std::string& key, const JsonNode& value, Settings& settings) {
  if (key != "pass") {
    settings.emplace_back(key, read_expression(value));
    return;
  }
  for (const JsonNode& each : value.elements()) {
    check_name(each.text(), each);
    settings.emplace_back(each.text(), read_expression(each));
  }
}

ModuleSpec read_module(const std::string& name, const JsonNode& node, const Definition& home) {
  check_name(name, node);
  ModuleSpec module;
  module.name = name;
  module.location = location_of(node);
  module.identity = node.place();
  module.home = &home;
  module.given = node.is_null();
  if (module.given) return module;
  if (node.is_string()) node.fail("a module is an object: {\"block\": \"" + node.text() + "\"}");
  module.block = read_expression(node.at("block"));
  for (const auto& [key, value] : node.entries()) {
    if (key == "block" || key == "about") continue;
    if (key == "repeat")
      module.repeat = read_expression(value);
    else if (key == "when")
      module.when = read_expression(value);
    else if (key == "checkpoint")
      module.checkpoint = value.flag();
    else if (value.is_object())
      module.modules.push_back(read_module(key, value, home));
    else
      read_setting(key, value, module.settings);
  }
  return module;
}

std::vector<ModuleSpec> read_modules(const Entries& entries, const Definition& home) {
  std::vector<ModuleSpec> modules;
  for (const auto& [name, entry] : entries) modules.push_back(read_module(name, entry, home));
  return modules;
}

/// Throws DefinitionError if two parameters, weights, modules or inputs of a block have the same name. This name would
/// be ambiguous in lines.
void check_distinct(const Block& block, const JsonNode& node) {
  std::map<std::string, const char*> taken;
  const auto take = [&](const std::string& name, const char* kind) {
    const auto [other, is_new] = taken.emplace(name, kind);
    if (!is_new)
      node.fail("the " + std::string(kind) + " '" + name + "' has the same name as " +
                (other->second[0] == 'i' ? "an " : "a ") + other->second);
  };
  for (const Parameter& each : block.parameters) take(each.name, "parameter");
  for (const WeightSpec& each : block.weights) take(each.name, "weight");
  for (const ModuleSpec& each : block.modules) take(each.name, "module");
  for (const Input& each : block.inputs) take(each.name, "input");
}

std::vector<std::string> names_of(const std::vector<WeightSpec>& weights) {
  std::vector<std::string> names;
  for (const WeightSpec& each : weights) names.push_back(each.name);
  return names;
}

void index(Block& block) {
  block.parameter_index = index_of(block.parameters);
  block.weight_index = index_of(block.weights);
  block.module_index = index_of(block.modules);
}
}  // namespace

Line read_expression(const JsonNode& node) {
  if (node.is_string() && node.text().starts_with('='))
    throw OldForm(location_of(node), node.text(), node.text().substr(1));
  if (node.is_string()) return parsed(node, false);
  if (node.is_array()) {
    const std::string list =
        joined(node.elements(), [](const JsonNode& each) { return to_source(read_expression(each).value); });
    return parse_line("[" + list + "]", location_of(node), false);
  }
  const Json& json = node.json();
  if (!json.is_boolean() && !json.is_number())
    node.fail(std::string("an expression, a number, a flag or a list belongs here, not ") + json.type_name());
  return parse_line(node.source()->spelling(json), location_of(node), false);
}

Settings read_settings(const JsonNode& node) {
  Settings settings;
  for (const auto& [key, value] : node.entries()) read_setting(key, value, settings);
  return settings;
}

std::vector<Parameter> read_parameters(const Entries& entries) {
  std::vector<Parameter> parameters;
  for (const auto& [name, value] : entries) {
    check_name(name, value);
    Parameter parameter{name, location_of(value), {}};
    if (!value.is_null()) parameter.initial = read_expression(value);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

std::unique_ptr<Block> read_block(const std::string& name, const JsonNode& node, const Definition& home) {
  node.only({"about", "hyper", "weights", "modules", "inputs", "do", "result", "update", "export"});
  check_name(name, node);
  auto block = std::make_unique<Block>();
  block->name = name;
  block->node = node;
  block->location = location_of(node);
  block->home = &home;
  block->parameters = read_parameters(merged({node}, "hyper"));
  block->weights = read_weights(merged({node}, "weights"));
  block->modules = read_modules(merged({node}, "modules"), home);
  block->inputs = read_inputs(node.at("inputs"), false);
  block->computation = read_computation(node);
  for (const auto& [weight, value] : merged({node}, "export")) {
    check_name(weight, value);
    block->exports.emplace_back(weight, parsed(value, false));
  }
  if (block->computation.results.size() > 1 || !block->computation.results[0].first.empty())
    node.at("result").fail("a block's results have no names: give several as \"a, b\"");
  for (const Parameter& each : block->parameters)
    for (const char* key : {"block", "repeat", "when", "checkpoint", "about", "pass", "change"})
      if (each.name == key)
        node.at("hyper").fail("a parameter cannot be called '" + each.name + "': modules use that key");
  index(*block);
  for (const auto& [weight, value] : merged({node}, "update")) {
    if (block->weight_index.count(weight) == 0)
      value.fail_at_key("block '" + name + "' has no weight '" + weight + "' to update" +
                        did_you_mean(weight, names_of(block->weights)));
    block->updates.emplace_back(weight, parsed(value, false));
  }
  check_distinct(*block, node);
  return block;
}

std::unique_ptr<const Block> read_model(const std::vector<JsonNode>& nodes, const Definition& home) {
  for (const JsonNode& node : nodes) node.only({"about", "weights", "modules", "functions"});
  auto block = std::make_unique<Block>();
  const JsonNode& node = nodes.back();
  block->location = location_of(node);
  block->home = &home;
  block->weights = read_weights(merged(nodes, "weights"));
  block->modules = read_modules(merged(nodes, "modules"), home);
  for (const ModuleSpec& module : block->modules)
    if (module.given) fail(module.location, "a model cannot be given modules: describe '" + module.name + "' here");
  index(*block);
  check_distinct(*block, node);
  return block;
}

namespace {
/// Throws DefinitionError if the function has the name of a module or weight of the model, or if two results have the
/// same name.
void check_function(const Function& function, const Block& model, const JsonNode& node) {
  const std::string& name = function.name;
  const auto taken = [&](const Index& index, const char* kind) {
    if (index.count(name) != 0) node.fail_at_key("'" + name + "' is the name of a " + kind + " of the model already");
  };
  taken(model.module_index, "module");
  taken(model.weight_index, "weight");
  const Line& result = function.computation.results[0].second;
  if (!function.computation.results[0].first.empty() || result.value.form != Form::tuple) return;
  const auto is_name = [](const Expression& each) { return each.form == Form::name; };
  if (!std::ranges::all_of(result.value.children, is_name)) return;
  std::set<std::string> results;
  for (const Expression& each : result.value.children)
    if (!results.insert(each.text).second)
      result.fail(each.column,
                  "two results are called '" + each.text + "': name them as in {\"one\": \"…\", \"two\": \"…\"}");
}
}  // namespace

std::vector<Function> read_functions(const Entries& entries, const Block& model) {
  std::vector<Function> functions;
  for (const auto& [name, plain] : entries) {
    if (plain.is_null()) continue;  // removes a function of a used file
    const JsonNode entry = plain.owned_by("function '" + name + "'");
    check_name(name, entry);
    entry.only({"about", "inputs", "do", "result"});
    functions.push_back({name, location_of(entry), read_inputs(entry.at("inputs"), true), read_computation(entry)});
    check_function(functions.back(), model, entry);
  }
  return functions;
}

}  // namespace xtape::model
