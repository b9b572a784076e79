#include <cmath>
#include <sstream>

#include "print.hpp"

namespace xtape::fuzz {

namespace {
std::string listed(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return "{" + text + "}";
}

template <class List>
std::string integers(const List& list) {
  std::vector<std::string> items;
  for (const std::int64_t item : list) items.push_back(std::to_string(item));
  return listed(items);
}

std::string dtype(Dtype value) {
  return std::string("Dtype::") + (value == Dtype::boolean ? "boolean" : name_of(value));
}

std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "HUGE_VAL" : "-HUGE_VAL";
  std::ostringstream out;
  out.precision(17);
  out << value;
  const std::string text = out.str();
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

struct AttributeText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return "std::int64_t{" + std::to_string(value) + "}"; }
  std::string operator()(double value) const { return number(value); }
  std::string operator()(const std::string& value) const { return "std::string(\"" + value + "\")"; }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return "std::vector<std::int64_t>" + integers(value);
  }
  std::string operator()(Dtype value) const { return dtype(value); }
  std::string operator()(const NamedSizes& value) const {
    std::vector<std::string> items;
    for (const auto& [name, size] : value) items.push_back("{\"" + name + "\", " + std::to_string(size) + "}");
    return "NamedSizes" + listed(items);
  }
};

std::string name(int step) {
  return "v" + std::to_string(step);
}

std::string value(Ref ref) {
  return name(ref.step) + "[" + std::to_string(ref.output) + "]";
}

std::string text_of(const Term& term) {
  if (const auto* ref = std::get_if<Ref>(&term)) return value(*ref);
  if (const auto* whole = std::get_if<std::int64_t>(&term)) return std::to_string(*whole);
  return number(std::get<double>(term));
}

/// The operands [first, last) as a list of vars.
std::string vars(const std::vector<Term>& terms, std::size_t first, std::size_t last) {
  std::vector<std::string> items;
  for (std::size_t i = first; i < last; ++i) items.push_back(text_of(terms[i]));
  return "Vars" + listed(items);
}
std::string vars(const std::vector<Ref>& refs, std::size_t first, std::size_t last) {
  return vars(std::vector<Term>(refs.begin(), refs.end()), first, last);
}

class Printer {
 public:
  void steps(const std::vector<Step>& list, const std::string& indent) {
    for (const Step& step : list) {
      out_ << indent << "const Vars " << name(step.id) << " = ";
      call(step, indent);
      out_ << ";\n";
    }
  }
  std::ostringstream out_;

 private:
  void call(const Step& step, const std::string& indent) {
    const std::size_t count = step.operands.size();
    const auto size = [&](const char* attribute) {
      return static_cast<std::size_t>(step.attributes.get<std::int64_t>(attribute));
    };
    if (step.is_source() && step.op != "tokens") {
      const Numbers& numbers = step.numbers;
      out_ << "{s." << step.op << "({" << dtype(step.type.dtype) << ", " << integers(step.type.shape) << "}, {"
           << numbers.low << ", " << numbers.high << ", " << numbers.seed << "u, " << numbers.levels << "})}";
    } else if (step.op == "tokens") {
      out_ << "{s.tokens(" << integers(step.type.shape) << ", " << size("capacity") << ", {" << step.numbers.low << ", "
           << step.numbers.high << ", " << step.numbers.seed << "u})}";
    } else if (step.op == "grad") {
      const std::size_t outputs = size("outputs"), inputs = outputs + size("inputs");
      out_ << "grad(" << vars(step.operands, 0, outputs) << ", " << vars(step.operands, outputs, inputs) << ", "
           << vars(step.operands, inputs, count) << ", {.materialize_grads = true})";
    } else if (step.op == "checkpoint") {
      out_ << "checkpoint([&](const Vars& in) {\n";
      body(step.body[0], step.body[0].arguments.size(), indent + "  ");
      out_ << indent << "  return " << vars(step.body[0].results, 0, step.body[0].results.size()) << ";\n"
           << indent << "}, " << vars(step.operands, 0, count) << ")";
    } else if (step.op == "scan") {
      const Block& block = step.body[0];
      const bool valid = step.attributes.get<bool>("valid");
      const std::size_t sequences = size("sequences"), last = count - (valid ? 1 : 0);
      const std::size_t outputs = block.results.size() - (last - sequences);
      out_ << "joined(scan([&](const Vars& in, const Vars& states) {\n";
      body(block, sequences, indent + "  ");
      out_ << indent << "  return std::pair(" << vars(block.results, 0, outputs) << ", "
           << vars(block.results, outputs, block.results.size()) << ");\n"
           << indent << "}, " << vars(step.operands, 0, sequences) << ", " << vars(step.operands, sequences, last)
           << ", {" << step.attributes.get<std::int64_t>("axis") << ", "
           << (step.attributes.get<bool>("reverse") ? "true" : "false") << ", "
           << (valid ? text_of(step.operands[last]) : "{}") << "}))";
    } else {
      std::vector<std::string> operands, attributes;
      for (const Term& term : step.operands) operands.push_back(text_of(term));
      for (const auto& [key, attribute] : step.attributes.items())
        attributes.push_back("{\"" + key + "\", " + std::visit(AttributeText(), attribute) + "}");
      out_ << "s.call(\"" << step.op << "\", " << listed(operands);
      if (!attributes.empty()) out_ << ", " << listed(attributes);
      out_ << ")";
    }
  }

  /// Prints the body's arguments, of which the first `first` come from `in` and the others from `states`, and its
  /// steps.
  void body(const Block& block, std::size_t first, const std::string& indent) {
    for (std::size_t i = 0; i < block.arguments.size(); ++i)
      out_ << indent << "const Vars " << name(block.arguments[i]) << " = {" << (i < first ? "in[" : "states[")
           << (i < first ? i : i - first) << "]};\n";
    steps(block.steps, indent);
  }
};
}  // namespace

std::string as_cpp(const Program& program, const Heading& heading) {
  Printer printer;
  printer.out_ << "TEST_CASE(\"tapes: " << heading.seed << (heading.check.empty() ? "" : ": ") << heading.check
               << "\") {\n  agree({Mode::" << name_of(program.mode) << ", [](Subject& s) {\n";
  printer.steps(program.steps, "    ");
  for (const Ref ref : program.outputs) printer.out_ << "    s.give(" << value(ref) << ");\n";
  for (const auto& [input, ref] : program.carries)
    printer.out_ << "    s.carry(" << value({input, 0}) << ", " << value(ref) << ");\n";
  if (program.mode == Mode::predict) printer.out_ << "    s.carry_states();\n";
  printer.out_ << "  }});\n}\n";
  return printer.out_.str();
}

}  // namespace xtape::fuzz
