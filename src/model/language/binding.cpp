// Assigns the arguments of a call to the inputs and attributes of an op.
#include <algorithm>

#include "model/language/interpreter.hpp"

namespace xtape::model {

namespace {
bool holds_vars(const Value& value) {
  Vars vars;
  collect_vars(value, vars);
  return !vars.empty();
}

class OpBinder {
 public:
  explicit OpBinder(const Op& op) : op_(op), inputs_(op.inputs.size()) {}

  OpCall run(const Arguments& arguments) {
    for (const auto& each : arguments.positional) positional(each);
    for (const auto& each : arguments.named) named(each);
    if (!sizes_.empty()) call_.attributes.set(sizes_name_, sizes_);
    gather_operands(arguments);
    return std::move(call_);
  }

 private:
  /// Arrays and literals fill inputs in order, then attributes in the op's order. Strings always fill attributes.
  void positional(const Arguments::Positional& argument) {
    const Value& value = argument.value;
    if (value.is_callable())
      throw BindingError{argument.column, describe(value) + " is not an array: call it" +
                                              (value.as<ModuleReference>() ? ", or name one of its weights"
                                                                           : ", or write a text in quotes")};
    const bool text = value.as<std::string>() != nullptr;
    if (text && names_axes(op_, *value.as<std::string>())) {
      axes(*value.as<std::string>(), argument.column);
      return;
    }
    if (next_input_ < op_.inputs.size() && op_.inputs[next_input_].arity == Arity::many &&
        inputs_[next_input_].empty() && value.as<Tuple>() != nullptr && value.as<Tuple>()->empty())
      throw BindingError{argument.column, "op '" + op_.name + "' needs at least one array, got ()"};
    if (!text && next_input_ < op_.inputs.size() && takes(op_.inputs[next_input_], value)) {
      fill(next_input_, value, argument.column);
      if (op_.inputs[next_input_].arity != Arity::many || value.as<Tuple>() != nullptr) ++next_input_;
      return;
    }
    while (!text && !value.as<Var>() && next_input_ < op_.inputs.size() && op_.inputs[next_input_].arity != Arity::one)
      ++next_input_;  // a positional attribute ends the inputs: the remaining optional inputs are left out
    for (; next_attribute_ < op_.attributes.size(); ++next_attribute_) {
      const AttributeSpec& spec = op_.attributes[next_attribute_];
      if (call_.attributes.find(spec.name) != nullptr || (text && !takes_text(spec)) ||
          spec.type == AttributeType::named_sizes)
        continue;
      set(spec, value, argument.column);
      return;
    }
    throw BindingError{argument.column,
                       "op '" + op_.name + "' cannot take " + describe(value) + " here: it takes " + signature()};
  }

  /// Sets the attribute "axis" of a reduction from a pattern.
  void axes(const std::string& pattern, std::size_t column) {
    if (inputs_[0].empty() || inputs_[0][0].is_literal())
      throw BindingError{column, "the names of axes follow their array: op '" + op_.name + "' takes " + signature()};
    try {
      named({"axis", column, reduction_axes(pattern, inputs_[0][0].var())});
    } catch (const Error& error) {
      throw BindingError{column, error.what()};
    }
  }

  static bool takes(const InputSpec& spec, const Value& value) {
    switch (spec.arity) {
      case Arity::one:
        return value.is_none() || operand_of(value).has_value();
      case Arity::optional:
        return value.is_none() || value.as<Var>() != nullptr;
      default:
        return value.as<Var>() != nullptr || holds_vars(value);
    }
  }

  void fill(std::size_t input, const Value& value, std::size_t column) {
    const InputSpec& spec = op_.inputs[input];
    if (value.is_none()) {
      if (spec.arity == Arity::one)
        throw BindingError{column, "op '" + op_.name + "' needs its input '" + spec.name + "', got none"};
      return;
    }
    const auto add = [&](const Value& each) {
      const std::optional<Operand> operand = operand_of(each);
      if (!operand) throw BindingError{column, "'" + spec.name + "' takes arrays, not " + describe(each)};
      inputs_[input].push_back(*operand);
    };
    if (const auto* tuple = value.as<Tuple>())
      for (const Value& each : *tuple) add(each);
    else
      add(value);
  }

  void named(const Arguments::Named& argument) {
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      if (op_.inputs[i].name != argument.name) continue;
      if (!inputs_[i].empty()) throw BindingError{argument.column, "'" + argument.name + "' is given twice"};
      fill(i, argument.value, argument.column);
      return;
    }
    for (const AttributeSpec& spec : op_.attributes) {
      if (spec.name == argument.name) {
        if (call_.attributes.find(spec.name) != nullptr)
          throw BindingError{argument.column, "'" + argument.name + "' is given twice"};
        set(spec, argument.value, argument.column);
        return;
      }
      if (spec.type == AttributeType::named_sizes) sizes_name_ = spec.name;
    }
    if (const std::string wrong = wrong_keyword(op_, argument.name); !wrong.empty())
      throw BindingError{argument.column, wrong};
    const auto* size = argument.value.as<std::int64_t>();
    if (size == nullptr)
      throw BindingError{argument.column,
                         "the size '" + argument.name + "' must be an integer, not " + describe(argument.value)};
    sizes_.add(argument.name, *size);
  }

  void set(const AttributeSpec& spec, const Value& value, std::size_t column) {
    const auto refuse = [&](const std::string& wanted) {
      throw BindingError{column, "attribute '" + spec.name + "' of op '" + op_.name + "' takes " + wanted + ", not " +
                                     describe(value)};
    };
    if (const auto* flag = value.as<bool>()) {
      call_.attributes.set(spec.name, *flag);
    } else if (const auto* integer = value.as<std::int64_t>()) {
      call_.attributes.set(spec.name, *integer);
    } else if (const auto* number = value.as<double>()) {
      call_.attributes.set(spec.name, *number);
    } else if (const auto* text = value.as<std::string>()) {
      if (const std::string wrong = wrong_text(spec, *text); !wrong.empty()) throw BindingError{column, wrong};
      call_.attributes.set(spec.name, *text);
    } else if (const auto* tuple = value.as<Tuple>()) {
      std::vector<std::int64_t> integers;
      for (const Value& each : *tuple) {
        const auto* element = each.as<std::int64_t>();
        if (element == nullptr) refuse("integers");
        integers.push_back(*element);
      }
      call_.attributes.set(spec.name, std::move(integers));
    } else {
      refuse(name_of(spec.type));
    }
  }

  void gather_operands(const Arguments& arguments) {
    const std::size_t column = arguments.positional.empty() ? 0 : arguments.positional[0].column;
    std::string missing;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const InputSpec& spec = op_.inputs[i];
      if (inputs_[i].empty()) {
        if (spec.arity == Arity::one)
          throw BindingError{column,
                             "op '" + op_.name + "' needs its input '" + spec.name + "': it takes " + signature()};
        missing = spec.name;
        continue;
      }
      if (!missing.empty())
        throw BindingError{column, "op '" + op_.name + "' cannot take '" + spec.name + "' without '" + missing + "'"};
      call_.operands.insert(call_.operands.end(), inputs_[i].begin(), inputs_[i].end());
    }
  }

  std::string signature() const {
    std::string list;
    for (const InputSpec& spec : op_.inputs)
      list += (list.empty() ? "" : ", ") + spec.name +
              (spec.arity == Arity::one    ? ""
               : spec.arity == Arity::many ? "…"
                                           : "?");
    for (const AttributeSpec& spec : op_.attributes) list += (list.empty() ? "" : ", ") + spec.name + "=";
    return "(" + list + ")";
  }

  const Op& op_;
  std::vector<std::vector<Operand>> inputs_;
  std::size_t next_input_ = 0, next_attribute_ = 0;
  NamedSizes sizes_;
  std::string sizes_name_;
  OpCall call_;
};
}  // namespace

OpCall bind_op(const Op& op, const Arguments& arguments) {
  return OpBinder(op).run(arguments);
}

}  // namespace xtape::model
