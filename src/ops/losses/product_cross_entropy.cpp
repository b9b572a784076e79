// product_cross_entropy: a projection to logits, their cross-entropy and its gradients in one kernel. A rule replaces
// the separate ops by this op.
#include "kernels/products/product_cross_entropy.hpp"

#include <algorithm>

#include "ops/linear_algebra/equation.hpp"
#include "ops/losses/losses.hpp"

namespace xtape {

namespace {
/// The product of rows and a weight.
struct Projection {
  Equation equation;
  Shape logits;               ///< The shape of the product.
  std::int64_t terms = 0;     ///< The size of the axis that is summed.
  bool classes_first = true;  ///< True if the weight is [classes, terms], false if it is [terms, classes].
};

/// Throws ShapeError if the equation does not have this form: it multiplies the last axis of x with one axis of the
/// weight, and the other axis of the weight is last in the result.
Projection projection_of(const std::string& text, const Shape& x, const Shape& weight) {
  Projection projection{parse_equation(text, {x, weight}), {}, 0, true};
  const std::string& of_x = projection.equation.operands[0];
  const std::string& of_weight = projection.equation.operands[1];
  const std::string& of_logits = projection.equation.result;
  const bool has_axes = !of_x.empty() && !of_logits.empty();
  const std::string terms = has_axes ? of_x.substr(of_x.size() - 1) : "";
  const std::string classes = has_axes ? of_logits.substr(of_logits.size() - 1) : "";
  std::string letters = of_x + classes;
  std::ranges::sort(letters);
  const bool all_differ = std::adjacent_find(letters.begin(), letters.end()) == letters.end();
  if (!has_axes || !all_differ || of_x.substr(0, of_x.size() - 1) != of_logits.substr(0, of_logits.size() - 1) ||
      (of_weight != classes + terms && of_weight != terms + classes))
    throw ShapeError("equation '" + text + "' for x of shape " + to_string(x) + " and a weight of shape " +
                     to_string(weight) +
                     " must multiply the last axis of x with one of the two axes of the weight, and have the other "
                     "one, the classes, last in the result, as 'btd,vd->btv' or '...d,dv->...v'");
  sizes_of_letters(projection.equation, {x, weight}, text);
  projection.classes_first = of_weight == classes + terms;
  projection.terms = x.back();
  projection.logits = without_last(x);
  projection.logits.push_back(weight[projection.classes_first ? 0 : 1]);
  return projection;
}

Projection projection_of(const OpCall& call) {
  return projection_of(call.text("equation"), call.shape(0), call.shape(1));
}

std::vector<AttributeSpec> projected_loss_attributes() {
  std::vector<AttributeSpec> attributes = loss_attributes();
  attributes.insert(attributes.begin(),
                    {"equation", AttributeType::text,
                     "The einsum equation of the logits. It sums the last axis of x with one axis of the weight. The "
                     "other axis of the weight, the classes, is the last axis of the logits.",
                     std::nullopt});
  return attributes;
}

/// Returns only the attributes of cross_entropy.
Attributes of_the_loss(const Attributes& attributes) {
  Attributes own;
  for (const AttributeSpec& spec : loss_attributes()) own.set(spec.name, *attributes.find(spec.name));
  return own;
}

std::vector<ValueType> product_cross_entropy_shape(const OpCall& call) {
  const Projection projection = projection_of(call);
  checked_bytes(call.dtype(0), projection.logits);
  check_loss(call, projection.logits, 2);
  std::vector<ValueType> outputs = {{call.dtype(0), {}}, {Dtype::int64, {}}, call.inputs[0], call.inputs[1]};
  if (call.inputs.size() > 3) {
    require_shape(call, 3, {projection.logits.back()}, "one number for each class");
    outputs.push_back(call.inputs[3]);
  }
  return outputs;
}

Kernel product_cross_entropy_kernel(const KernelCall& call) {
  Attributes attributes = call.attributes;
  attributes.set("classes_first", projection_of(call).classes_first);
  return kernel_of(call, attributes);
}

Vars expand_product_cross_entropy(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const Var& weight = call.inputs[1];
  const Var& targets = call.inputs[2];
  const bool biased = call.inputs.size() > 3;
  const std::string& text = call.text("equation");
  const Attributes loss = of_the_loss(call.attributes);
  const Var product = einsum(text, Vars{x, weight});
  const Var logits = biased ? product + call.inputs[3] : product;
  const Vars found = record_call(call.tape, cross_entropy_op(), {logits, targets}, loss);  // sum, count, logsumexp
  const Var dlogits = xtape::apply(cross_entropy_grad_op(), {logits, targets, found[2], 1.0}, loss)[0];
  const Equation e = projection_of(text, x.shape(), weight.shape()).equation;
  Vars outputs = {found[0], found[1],
                  einsum(e.result + "," + e.operands[1] + "->" + e.operands[0], Vars{dlogits, weight}),
                  einsum(e.operands[0] + "," + e.result + "->" + e.operands[1], Vars{x, dlogits})};
  if (biased) outputs.push_back(sum_to(dlogits, call.inputs[3].shape()));
  return outputs;
}

Vars product_cross_entropy_gradient(const GradientCall& call) {
  const bool second = std::any_of(call.cotangents.begin() + 2, call.cotangents.end(),
                                  [](const Var& cotangent) { return !cotangent.empty(); });
  // The expansion handles second derivatives, and calls that need only the gradient of x or only the gradient of the
  // weight.
  if (second || !call.needs[0] || !call.needs[1]) return {};
  const Var dsum = call.cotangent();
  Vars gradients = {call.outputs[2] * dsum, call.outputs[3] * dsum, Var()};
  if (call.inputs.size() > 3) gradients.push_back(call.outputs[4] * dsum);
  return gradients;
}

/// Returns whether the logits are large enough for the op to be worthwhile. They must have at least two blocks of rows,
/// so that most of their memory is saved. Products of blocks of hundreds of rows are as fast as products of all rows.
/// Reading the logits from the cache saves about as much time as scaling the gradients takes. With fewer rows and very
/// many classes, the weight would be loaded too often.
bool pays(const Shape& logits) {
  const std::int64_t classes = logits.back();
  return classes > 0 && count_of(logits) / classes >= 2 * rows_at_once(classes);
}

std::string refuses(const OpCall& call) {
  const Shape logits = projection_of(call).logits;
  return pays(logits) ? "" : "logits of shape " + to_string(logits) + " have too few rows for it to be faster";
}

const Op& product_cross_entropy_op() {
  static const Op entry{
      .name = "product_cross_entropy",
      .doc = R"(cross_entropy(einsum(equation, x, weight) + bias, targets), together with the gradients dx, dweight and
           dbias of its sum, in one kernel. The kernel computes the logits of some rows at a time and keeps none of
           them. The bias is optional. Programs record the separate ops. A rule replaces them by this op if their
           gradients are used and there are many logits.)",
      .inputs = {{"x", Accept::floating},
                 {"weight", Accept::floating},
                 {"targets", Accept::integer},
                 {"bias", Accept::floating, Arity::optional}},
      .outputs = {"sum", "count", "dx", "dweight", "dbias"},
      .attributes = projected_loss_attributes(),
      .shape = product_cross_entropy_shape,
      .gradient = product_cross_entropy_gradient,
      .expand = expand_product_cross_entropy,
      .lowering = {.kernel = product_cross_entropy_kernel,
                   .cost = {+[](const OpCall& call) {  // logits, dx, dweight
                     const Projection projection = projection_of(call);
                     return 6 * static_cast<double>(count_of(projection.logits)) *
                            static_cast<double>(projection.terms);
                   }}},
      .derivative = {.kept = 3}};
  return entry;
}
}  // namespace

void list_product_cross_entropy(OpTable& table) {
  table.add(product_cross_entropy_op());
  const ValueType x{Dtype::float64, {2, 3}}, weight{Dtype::float64, {5, 3}}, targets{Dtype::int64, {2}},
      bias{Dtype::float64, {5}};
  for (const bool biased : {true, false})
    table.add({.name = std::string("projection and cross-entropy") + (biased ? ", with bias" : ""),
               .op = &product_cross_entropy_op(),
               .inputs = biased ? std::vector{x, weight, targets, bias} : std::vector{x, weight, targets},
               .attributes = {{"equation", std::string("rt,ct->rc")},
                              {"ignore", std::int64_t{-7919}},
                              {"label_smoothing", 0.371},
                              {"smoothing_excludes", std::int64_t{3}}},
               .refuses = refuses,
               .gradients_beforehand = true});
}

}  // namespace xtape
