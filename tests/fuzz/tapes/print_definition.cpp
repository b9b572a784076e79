#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "print.hpp"
#include "record.hpp"

namespace xtape::fuzz {

namespace {
using Json = nlohmann::ordered_json;

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

/// The parentheses of a tuple: "(2,)".
std::string tuple(const std::vector<std::string>& items) {
  return "(" + joined(items) + (items.size() == 1 ? ",)" : ")");
}

std::string number_text(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::ostringstream out;
  out.precision(17);
  out << value;
  const std::string text = out.str();
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// The language has several forms of one value. `style` chooses one, so that other steps are written in other forms.
struct DefinitionText {
  int style;
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const {
    const std::string text = std::to_string(value);
    return style % 4 == 3 && value >= 0 && value < 100 ? "len(range(" + text + "))" : text;
  }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return "'" + value + "'"; }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    std::vector<std::string> items;
    for (const std::int64_t item : value) items.push_back((*this)(item));
    return style % 4 == 1 ? "[i for i in " + tuple(items) + "]" : tuple(items);
  }
  std::string operator()(Dtype value) const { return std::string("'") + name_of(value) + "'"; }
  std::string operator()(const NamedSizes&) const { return ""; }  // each size is a separate argument
};

/// A function by its name, or as an element of a list.
std::string function_text(const Step& step, const std::string& name) {
  return step.id % 4 == 2 ? "[" + name + "][0]" : name;
}

/// Collects the refs that a block reads and does not compute itself.
void read_outside(const Block& block, std::set<int>& made, std::set<Ref>& outside) {
  made.insert(block.arguments.begin(), block.arguments.end());
  const auto read = [&](Ref ref) {
    if (made.count(ref.step) == 0) outside.insert(ref);
  };
  for (const Step& step : block.steps) {
    for (const Term& term : step.operands)
      if (const auto* ref = std::get_if<Ref>(&term)) read(*ref);
    for (const Block& inner : step.body) read_outside(inner, made, outside);
    made.insert(step.id);
  }
  for (const Ref ref : block.results) read(ref);
}

class Writer {
 public:
  explicit Writer(const Program& program) {
    Subject subject(program.mode, Floats::as_written);
    types_ = record(program, subject);
    collect_sources(program.steps);
    Json function;
    for (const auto& [id, type] : sources_) {
      std::vector<std::string> sizes;
      for (const std::int64_t size : type.shape) sizes.push_back(std::to_string(size));
      function["inputs"][name(Ref{id})] = std::string(name_of(type.dtype)) + " [" + joined(sizes) + "]";
      definition_.inputs.push_back(id);
    }
    Json parts = Json::object();
    function["do"] = lines(program.steps, parts);
    for (const Step& step : program.steps)
      for (int k = 0; types_.count({step.id, k}) != 0; ++k)
        if (!step.is_source() && unsayable_.count(step.id) == 0) definition_.results.push_back({step.id, k});
    function["result"] = Json::object();
    for (const Ref ref : definition_.results) function["result"]["of_" + name(ref)] = name(ref);
    Json text = {{"xtape", 2}, {"name", "tape"}};
    if (!blocks_.empty()) text["blocks"] = blocks_;
    if (!parts.empty()) text["model"]["modules"] = parts;
    text["model"]["functions"]["f"] = function;
    definition_.text = text.dump(1) + "\n";
  }
  Definition take() { return std::move(definition_); }

 private:
  void collect_sources(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.is_source()) sources_[step.id] = step.type;
      for (const Block& block : step.body) collect_sources(block.steps);
    }
  }

  std::string name(Ref ref) const {
    const std::string step = "v" + std::to_string(ref.step);
    return types_.count({ref.step, 1}) == 0 ? step : step + "_" + std::to_string(ref.output);
  }

  std::string text_of(const Term& term) const {
    if (const auto* ref = std::get_if<Ref>(&term)) return name(*ref);
    if (const auto* whole = std::get_if<std::int64_t>(&term)) return std::to_string(*whole);
    return number_text(std::get<double>(term));
  }

  std::vector<std::string> texts(const Step& step, std::size_t first, std::size_t last) const {
    std::vector<std::string> items;
    for (std::size_t i = first; i < last; ++i) items.push_back(text_of(step.operands[i]));
    return items;
  }

  /// Adds a block for a body, and a module of that block to `parts`. Returns the names of the values that it reads from
  /// outside.
  std::vector<std::string> add_block(const Step& step, Json& parts) {
    const Block& block = step.body[0];
    std::set<int> made;
    std::set<Ref> outside;
    read_outside(block, made, outside);
    for (const auto& [id, type] : sources_)  // sources inside the body are inputs of the function
      if (made.count(id) != 0) outside.insert({id});
    std::vector<std::string> read, results;
    for (const Ref ref : outside) read.push_back(name(ref));
    Json own_parts = Json::object(), written;
    for (const int argument : block.arguments) written["inputs"].push_back(name(Ref{argument}));
    for (const std::string& each : read) written["inputs"].push_back(each);
    written["do"] = lines(block.steps, own_parts);
    if (!own_parts.empty()) written["modules"] = own_parts;
    for (const Ref ref : block.results) results.push_back(name(ref));
    written["result"] = joined(results);
    const std::string id = std::to_string(step.id);
    blocks_["b" + id] = written;
    parts["p" + id] = {{"block", "b" + id}};
    if (step.op == "checkpoint") parts["p" + id]["checkpoint"] = true;
    return read;
  }

  std::string call(const Step& step, Json& parts) {
    const std::size_t count = step.operands.size();
    const std::string part = "p" + std::to_string(step.id);
    if (step.op == "checkpoint") {
      std::vector<std::string> items = texts(step, 0, count);
      for (const std::string& each : add_block(step, parts)) items.push_back(each);
      return function_text(step, part) + "(" + joined(items) + ")";
    }
    if (step.op == "scan") {
      const auto sequences = static_cast<std::size_t>(step.attributes.get<std::int64_t>("sequences"));
      const bool valid = step.attributes.get<bool>("valid");
      const std::size_t last = count - (valid ? 1 : 0);
      const std::vector<std::string> alike = add_block(step, parts);
      std::string text = "scan(" + function_text(step, part) + ", " + joined(texts(step, 0, sequences));
      if (last > sequences) text += ", init=" + tuple(texts(step, sequences, last));
      if (!alike.empty()) text += ", non_sequences=" + tuple(alike);
      text += ", axis=" + std::to_string(step.attributes.get<std::int64_t>("axis"));
      if (step.attributes.get<bool>("reverse")) text += ", reverse=true";
      if (valid) text += ", valid=" + text_of(step.operands[last]);
      return text + ")";
    }
    std::vector<std::string> items = texts(step, 0, count);
    for (const AttributeSpec& spec : ops().at(step.op).attributes) {
      // A dtype attribute is always written: without it, the definition would use the model's float dtype.
      const Attribute* value = step.attributes.find(spec.name);
      if (value == nullptr && spec.type == AttributeType::dtype) value = &*spec.initial;
      if (value == nullptr) continue;
      if (const auto* sizes = std::get_if<NamedSizes>(value))
        for (const auto& [size_name, size] : *sizes) items.push_back(size_name + "=" + std::to_string(size));
      else
        items.push_back(spec.name + "=" + std::visit(DefinitionText{step.id}, *value));
    }
    return function_text(step, step.op) + "(" + joined(items) + ")";
  }

  Json lines(const std::vector<Step>& steps, Json& parts) {
    Json list = Json::array();
    for (const Step& step : steps) {
      if (step.is_source()) continue;
      bool said = step.op != "grad";
      for (const Term& term : step.operands)
        if (const auto* ref = std::get_if<Ref>(&term)) said &= unsayable_.count(ref->step) == 0;
      std::set<int> made;
      std::set<Ref> outside;
      for (const Block& block : step.body) read_outside(block, made, outside);
      for (const Ref ref : outside) said &= unsayable_.count(ref.step) == 0;
      if (!said) {
        unsayable_.insert(step.id);
        continue;
      }
      std::vector<std::string> names;
      for (int k = 0; types_.count({step.id, k}) != 0; ++k) names.push_back(name({step.id, k}));
      list.push_back(joined(names) + " = " + call(step, parts));
    }
    return list;
  }

  Definition definition_;
  std::map<Ref, ValueType> types_;
  std::map<int, ValueType> sources_;
  std::set<int> unsayable_;  ///< Steps that compute gradients or depend on them.
  Json blocks_ = Json::object();
};
}  // namespace

Definition definition_of(const Program& program) {
  return Writer(program).take();
}
std::string as_definition(const Program& program) {
  return definition_of(program).text;
}

}  // namespace xtape::fuzz
