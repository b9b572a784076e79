// custom_gradient: values whose gradient is a body recorded by the program.
#include "xtape/custom_gradient.hpp"

#include <algorithm>

#include "ops/recording/enclosed.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// The attributes of the node. The inputs of the node are the values, the inputs of the function, and the other vars
/// that the rule reads. The body has the same inputs, and a cotangent for each value that is a float. The cotangents
/// come before the other vars.
struct CustomForm {
  CustomForm(std::size_t of_values, std::size_t of_inputs)
      : values(static_cast<std::int64_t>(of_values)), inputs(static_cast<std::int64_t>(of_inputs)) {}
  explicit CustomForm(const Attributes& attributes)
      : values(attributes.get<std::int64_t>("values")),
        inputs(attributes.get<std::int64_t>("inputs")),
        gradients_of(attributes.get<std::vector<std::int64_t>>("gradients_of")) {}
  Attributes attributes() const { return {{"values", values}, {"inputs", inputs}, {"gradients_of", gradients_of}}; }
  std::int64_t values, inputs;
  // for each result of the body: the input of the node to which the gradient belongs
  std::vector<std::int64_t> gradients_of;
};

/// Returns `given` with one more element for each value that is a float, at the place of the body's cotangents.
template <class T, class Cotangent>
std::vector<T> with_cotangents(const std::vector<T>& given, const CustomForm& form, const Cotangent& cotangent) {
  std::vector<T> all(given.begin(), given.begin() + form.values + form.inputs);
  for (std::size_t k = 0; k < static_cast<std::size_t>(form.values); ++k) cotangent(all, k);
  all.insert(all.end(), given.begin() + form.values + form.inputs, given.end());
  return all;
}

std::vector<ValueType> custom_types(const OpCall& call) {
  if (call.body == nullptr) throw Error("needs a body: record it with xtape::custom_gradient(function, rule, inputs)");
  const CustomForm form(call.attributes);
  const auto count = std::ssize(call.inputs);
  if (form.values < 0 || form.inputs < 0 || form.values > count || form.inputs > count - form.values)
    throw ShapeError("has fewer inputs than its attributes say");
  const auto expected = with_cotangents(call.inputs, form, [&](std::vector<ValueType>& types, std::size_t k) {
    if (is_floating(call.inputs[k].dtype)) types.push_back(call.inputs[k]);
  });
  std::vector<ValueType> given;
  for (const ValueId& id : call.body->inputs()) given.push_back(call.body->type(id));
  if (given != expected) throw ShapeError("the inputs of its body must have the types of its inputs and cotangents");
  const std::vector<ValueId>& results = call.body->results();
  bool fits = results.size() == form.gradients_of.size();
  for (std::size_t i = 0; fits && i < results.size(); ++i) {
    const std::int64_t input = form.gradients_of[i];
    fits = input >= 0 && input < count && call.body->type(results[i]) == call.inputs[input];
  }
  if (!fits) throw ShapeError("the results of its body must have the types of the inputs that they are gradients of");
  return {call.inputs.begin(), call.inputs.begin() + form.values};
}

Vars custom_rule(const GradientCall& call) {
  const CustomForm form(call.attributes);
  Vars inputs = call.inputs;
  // The rule reads the outputs and not the values that they copy, so that gradients of the gradient flow through the
  // outputs.
  std::copy(call.outputs.begin(), call.outputs.end(), inputs.begin());
  inputs = with_cotangents(inputs, form, [&](Vars& vars, std::size_t k) {
    if (is_floating(call.outputs[k].dtype())) vars.push_back(call.cotangent(k));
  });
  const Vars found = inline_body(inputs[0].tape(), *call.node.body, inputs);
  Vars gradients(call.inputs.size());
  for (std::size_t i = 0; i < found.size(); ++i) gradients[form.gradients_of[i]] = found[i];
  return gradients;
}

/// All values, cotangents and gradients are mapped.
Vars batch_custom(const BatchCall& call) {
  const CustomForm form(call.attributes);
  Vars inputs = call.inputs;
  std::vector<bool> mapped = call.mapped;
  for (std::size_t i = 0; i < static_cast<std::size_t>(form.values + form.inputs); ++i) {
    inputs[i] = call.whole(i);
    mapped[i] = true;
  }
  const auto of_body = with_cotangents(mapped, form, [&](std::vector<bool>& marks, std::size_t k) {
    if (is_floating(call.inputs[k].dtype())) marks.push_back(true);
  });
  const auto body = std::make_shared<Tape>(call.body(*call.node.body, of_body));
  return record_call(call.tape, call.op, inputs, form.attributes(), body);
}
}  // namespace

const Op& custom_gradient_op() {
  static const Op entry{
      .name = "custom_gradient",
      .doc = R"(Its first inputs, the values. Their gradient is a body, which reads the inputs and the cotangents of the
           values.)",
      .inputs = {{"xs", Accept::any, Arity::many}},
      .outputs = {"ys"},
      .attributes = {{"values", AttributeType::integer, "The number of values.", std::nullopt},
                     {"inputs", AttributeType::integer, "The number of inputs of the function.", std::nullopt},
                     {"gradients_of", AttributeType::integers, "The inputs that have a gradient.", std::nullopt}},
      .shape = custom_types,
      .gradient = custom_rule,
      .batch = batch_custom,
      .expand =
          +[](const ExpandCall& call) {
            return Vars(call.inputs.begin(), call.inputs.begin() + CustomForm(call.attributes).values);
          },
      .derivative = {.differs = true}};
  return entry;
}

namespace {
void check_gradients(const Vars& gradients, const Vars& inputs) {
  if (gradients.size() != inputs.size())
    throw Error("custom_gradient: the rule must return one var for each of the " + std::to_string(inputs.size()) +
                " inputs, it returned " + std::to_string(gradients.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (gradients[i].empty()) continue;
    if (!is_floating(inputs[i].dtype()))
      throw Error("custom_gradient: input " + std::to_string(i) + " is " + to_string(inputs[i].type()) +
                  ", which has no gradient: the rule must return an empty var for it");
    if (gradients[i].tape() != inputs[i].tape())
      throw HandleError("custom_gradient: the rule returned a var of another tape");
    if (gradients[i].type() != inputs[i].type())
      throw ShapeError("custom_gradient: the gradient of input " + std::to_string(i) + " must be " +
                       to_string(inputs[i].type()) + " like the input, the rule returned " +
                       to_string(gradients[i].type()));
  }
}

/// Returns the results of the function, each after a stop_gradient, so that no sweep enters the function.
Vars values_of(Tape tape, const std::function<Vars(const Vars&)>& function, const Vars& inputs) {
  const auto call = [&] {
    const auto out_of_call = tape.out_of_call();
    return function(inputs);
  };
  Vars values = call();
  if (values.empty()) throw Error("custom_gradient: the function gives no result");
  for (Var& value : values) {
    if (value.tape() != tape) throw HandleError("custom_gradient: the function returned a var of another tape");
    value = stop_gradient(value);
  }
  return values;
}

Vars record_custom(Tape tape, const std::function<Vars(const Vars&)>& function, const GradientRule& rule,
                   const Vars& inputs) {
  for (const Var& input : inputs)
    if (input.tape() != tape) throw HandleError("custom_gradient: its inputs belong to different tapes");
  Vars operands = values_of(tape, function, inputs);
  CustomForm form(operands.size(), inputs.size());
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  const std::vector<ValueType> types =
      with_cotangents(types_of(operands), form, [](std::vector<ValueType>& all, std::size_t k) {
        if (is_floating(all[k].dtype)) all.push_back(all[k]);
      });
  const Enclosed recorded = enclosed(tape, types, [&](const Vars& given) {
    const auto first = given.begin();
    const Vars outputs(first, first + form.values), again(first + form.values, first + form.values + form.inputs);
    Vars cotangents;
    auto next = first + form.values + form.inputs;
    for (const Var& output : outputs) cotangents.push_back(is_floating(output.dtype()) ? *next++ : Var());
    const Vars gradients = rule(again, outputs, cotangents);
    check_gradients(gradients, again);
    Vars present;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].empty()) continue;
      present.push_back(gradients[i]);
      form.gradients_of.push_back(form.values + static_cast<std::int64_t>(i));
    }
    return present;
  });
  operands.insert(operands.end(), recorded.captured.begin(), recorded.captured.end());
  return record_call(tape, custom_gradient_op(), operands, form.attributes(), recorded.body);
}
}  // namespace

Vars custom_gradient(const std::function<Vars(const Vars&)>& function, const GradientRule& rule, const Vars& inputs,
                     Caller caller) {
  return at_place(caller, [&] {
    if (!function) throw Error("custom_gradient: the function is empty");
    if (!rule) throw Error("custom_gradient: the rule is empty");
    if (inputs.empty()) throw Error("custom_gradient: needs at least one input");
    const Tape tape = inputs[0].tape();
    return all_or_nothing(tape, &custom_gradient_op(), caller,
                          [&] { return record_custom(tape, function, rule, inputs); });
  });
}

}  // namespace xtape
