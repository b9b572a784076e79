// Writes a tape as text, JSON and Graphviz, and the reference of the ops.
#include <nlohmann/json.hpp>
#include <sstream>

#include "xtape/op.hpp"

namespace xtape {

namespace {
std::string reference(const Tape& tape, ValueId id) {
  const Node& node = tape.node(static_cast<std::size_t>(id.node));
  return "#" + std::to_string(id.node) + (node.outputs.size() > 1 ? "." + std::to_string(id.output) : "");
}

std::string types_of(const Node& node) {
  std::string text;
  for (const ValueType& type : node.outputs) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

void print(std::ostream& out, const Tape& tape, const std::string& indent) {
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    out << indent << "#" << i << " " << node.op->name;
    if (!node.name.empty()) out << " '" << node.name << "'";
    out << "(";
    bool first = true;
    for (const ValueId& input : node.inputs) out << (std::exchange(first, false) ? "" : ", ") << reference(tape, input);
    for (const auto& item : node.attributes.items())
      out << (std::exchange(first, false) ? "" : ", ") << item.first << "=" << to_string(item.second);
    out << ") -> " << types_of(node);
    if (node.fused) out << "  fused";
    const std::string site = to_string(node.site);
    if (!site.empty()) out << "  at " << site;
    out << "\n";
    if (node.body) print(out, *node.body, indent + "    ");
  }
  if (!tape.results().empty()) {
    out << indent << "gives";
    for (const ValueId& id : tape.results()) out << " " << reference(tape, id);
    out << "\n";
  }
}

nlohmann::ordered_json json_of(const Attribute& value) {
  if (const auto* sizes = std::get_if<NamedSizes>(&value)) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (const auto& [name, size] : *sizes) object[name] = size;
    return object;
  }
  if (const auto* dtype = std::get_if<Dtype>(&value)) return name_of(*dtype);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  const double number = std::get<double>(value);
  if (number - number != 0) return to_string(value);  // JSON has no infinity and no NaN
  return number;
}

nlohmann::ordered_json json_of(const Tape& tape) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    nlohmann::ordered_json entry = {{"index", i}, {"op", node.op->name}};
    if (!node.name.empty()) entry["name"] = node.name;
    for (const auto& item : node.attributes.items()) entry["attributes"][item.first] = json_of(item.second);
    entry["inputs"] = nlohmann::ordered_json::array();
    for (const ValueId& input : node.inputs) entry["inputs"].push_back({input.node, input.output});
    for (const ValueType& type : node.outputs)
      entry["outputs"].push_back(
          {{"dtype", name_of(type.dtype)}, {"shape", std::vector<std::int64_t>(type.shape.begin(), type.shape.end())}});
    if (node.fused) entry["fused"] = true;
    const std::string site = to_string(node.site);
    if (!site.empty()) entry["site"] = site;
    if (node.body) entry["body"] = json_of(*node.body);
    nodes.push_back(std::move(entry));
  }
  nlohmann::ordered_json result = {{"mode", name_of(tape.mode())}, {"nodes", std::move(nodes)}};
  for (const ValueId& id : tape.results()) result["results"].push_back({id.node, id.output});
  return result;
}

std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return "\"" + result + "\"";
}
}  // namespace

std::ostream& operator<<(std::ostream& out, const Tape& tape) {
  print(out, tape, "");
  return out;
}

void Tape::to_json(std::ostream& out) const {
  // Names come from the caller and may contain bytes that are not UTF-8, which are replaced.
  out << json_of(*this).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

void Tape::to_dot(std::ostream& out) const {
  out << "digraph tape {\n  node [shape=box, fontname=\"Helvetica\", fontsize=10];\n";
  for (std::size_t i = 0; i < size(); ++i) {
    const Node& node = this->node(i);
    out << "  n" << i << " [label="
        << quoted("#" + std::to_string(i) + " " + node.op->name + (node.name.empty() ? "" : " " + node.name) + "\n" +
                  types_of(node))
        << (node.op->is_source() ? ", style=rounded" : "") << (node.fused ? ", color=firebrick" : "") << "];\n";
    for (const ValueId& input : node.inputs) out << "  n" << input.node << " -> n" << i << ";\n";
  }
  out << "}\n";
}

namespace {
/// The doc of an op, written over several source lines, as one line.
std::string on_one_line(const std::string& doc) {
  std::istringstream words(doc);
  std::string text;
  for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
  return text;
}

void write_op(const Op& op, std::ostream& out) {
  static const char* const accepts[] = {"", " (float)", " (integer)", " (bool)", " (any)"};
  out << "\n## " << op.name << "\n\n`" << op.name << "(";
  bool first = true;
  for (const InputSpec& input : op.inputs)
    out << (std::exchange(first, false) ? "" : ", ") << input.name << (input.arity == Arity::many ? "…" : "")
        << (input.arity == Arity::optional ? "?" : "");
  for (const AttributeSpec& attribute : op.attributes)
    out << (std::exchange(first, false) ? "" : ", ") << attribute.name
        << (attribute.initial ? "=" + to_string(*attribute.initial) : "");
  out << ")` gives ";
  const std::size_t results = op.results == 0 ? op.outputs.size() : op.results;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (i == results) out << "; for the gradient also ";
    out << (i == 0 || i == results ? "" : ", ") << "`" << op.outputs[i] << "`";
  }
  out << ".\n\n" << on_one_line(op.doc) << "\n\n";
  for (const InputSpec& input : op.inputs)
    if (input.accept != Accept::value)
      out << "- `" << input.name << "`" << accepts[static_cast<int>(input.accept)] << "\n";
  for (const AttributeSpec& attribute : op.attributes)
    out << "- `" << attribute.name << "`: " << name_of(attribute.type) << ". " << attribute.doc << "\n";
  std::string traits;
  const auto add = [&](bool has, const char* trait) {
    if (has) traits += (traits.empty() ? "" : "; ") + std::string(trait);
  };
  add(op.is_view(), "a view");
  add(static_cast<bool>(op.lowering.tile), "elementwise");
  add(op.random, "random");
  add(static_cast<bool>(op.expand), "has an expansion into simpler ops");
  add(!op.differentiable, "not differentiable");
  if (!traits.empty()) out << "- Traits: " << traits << ".\n";
}
}  // namespace

void write_reference(const OpTable& table, std::ostream& out) {
  out << "# The ops\n\nMade from the op table by `xtape ops`. Inputs come first, then attributes with their defaults. "
         "An input\nwith `?` is optional; one with `…` takes any number of values.\n";
  for (const auto& row : table.ops()) write_op(*row.second, out);
}

}  // namespace xtape
