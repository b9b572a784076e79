// Writes a tape as text and Graphviz, and the reference of the ops.
#include <sstream>

#include "tape/node_text.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

std::string reference(const Tape& tape, ValueId id) {
  const Node& node = tape.node(id.node);
  return "#" + std::to_string(id.node) + (node.outputs.size() > 1 ? "." + std::to_string(id.output) : "");
}

namespace {
std::string types_of(const Node& node) {
  std::string text;
  for (const ValueType& type : node.outputs) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}
}  // namespace

std::string line_of(const Tape& tape, std::size_t index) {
  const Node& node = tape.node(index);
  std::string text = "#" + std::to_string(index) + " " + node.op->name;
  if (!node.name.empty()) text += " '" + node.name + "'";
  std::string operands;
  const auto add = [&](const std::string& operand) { operands += (operands.empty() ? "" : ", ") + operand; };
  for (const ValueId& input : node.inputs) add(reference(tape, input));
  for (const auto& item : node.attributes.items()) add(item.first + "=" + to_string(item.second));
  text += "(" + operands + ") -> " + types_of(node);
  if (node.fused) text += "  fused";
  const std::string site = to_string(node.site);
  return site.empty() ? text : text + "  at " + site;
}

namespace {
void print(std::ostream& out, const Tape& tape, const std::string& indent) {
  for (std::size_t i = 0; i < tape.size(); ++i) {
    out << indent << line_of(tape, i) << "\n";
    if (tape.node(i).body) print(out, *tape.node(i).body, indent + "    ");
  }
  if (!tape.results().empty()) {
    out << indent << "gives";
    for (const ValueId& id : tape.results()) out << " " << reference(tape, id);
    out << "\n";
  }
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
/// Returns the doc of an op as one line. In the source code, the doc has several lines.
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
  const std::size_t results = op.outputs.size() - op.derivative.kept;
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
