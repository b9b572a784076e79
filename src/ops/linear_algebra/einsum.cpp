// einsum: sums of products over labelled axes. It is recorded as products of two operands.
#include <algorithm>

#include "base/messages/wording.hpp"
#include "ops/linear_algebra/equation.hpp"
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
const Op& einsum_op();
const Op& einsum_add_op();

std::vector<Shape> shapes_of(const std::vector<ValueType>& types, std::size_t count) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < count; ++i) shapes.push_back(types[i].shape);
  return shapes;
}

/// Returns the type of a product of two operands, the only form of einsum on tapes. Throws ShapeError for other forms.
ValueType product_type(const OpCall& call) {
  const std::string& text = call.text("equation");
  if (call.dtype(0) == Dtype::boolean) throw DtypeError("cannot multiply bool arrays: cast them to numbers");
  const std::vector<Shape> shapes = shapes_of(call.inputs, 2);
  const Equation equation = parse_equation(text, shapes);
  const std::vector<std::int64_t> sizes = sizes_of_letters(equation, shapes, text);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const std::string& letters = equation.operands[i];
      const char letter = letters[axis];
      if (std::ranges::count(letters, letter) > 1 ||
          !(contains(equation.operands[1 - i], letter) || contains(equation.result, letter)) ||
          shapes[i][axis] != sizes[static_cast<unsigned char>(letter)])
        throw ShapeError("equation '" + text +
                         "' is not a plain product of two operands: record diagonals, sums and broadcasts with einsum");
    }
  if (text != equation.operands[0] + "," + equation.operands[1] + "->" + equation.result)
    throw ShapeError("equation '" + text + "' is not that of a recorded product, such as 'ab,bc->ac'");
  ValueType type{call.dtype(0), {}};
  for (char letter : equation.result) type.shape.push_back(sizes[static_cast<unsigned char>(letter)]);
  return type;
}

Var record_product(const Op& op, const Vars& inputs, const std::string& equation) {
  return record_call(inputs[0].tape(), op, inputs, {{"equation", equation}})[0];
}

/// Returns the gradients of the two operands. Each of them is the product of the cotangent and the other operand. Every
/// label of an operand is also in the other operand or in the result, because axes that only one operand has were
/// summed before.
Vars product_gradients(const GradientCall& call) {
  const std::string& text = call.text("equation");
  const Equation e = parse_equation(text, {call.inputs[0].shape(), call.inputs[1].shape()});
  Vars gradients(call.inputs.size());
  const Var cotangent = call.cotangent();
  if (call.needs[0])
    gradients[0] =
        record_product(einsum_op(), {cotangent, call.inputs[1]}, e.result + "," + e.operands[1] + "->" + e.operands[0]);
  if (call.needs[1])
    gradients[1] =
        record_product(einsum_op(), {call.inputs[0], cotangent}, e.operands[0] + "," + e.result + "->" + e.operands[1]);
  return gradients;
}

/// An operand while einsum is recorded: a var and the labels of its axes. After `simplified`, all labels are different.
struct LabelledVar {
  Var var;
  std::string letters;
};

/// Takes diagonals along repeated labels, and drops axes of size 1 that broadcast.
LabelledVar simplified(const Var& var, const std::string& letters, const std::vector<std::int64_t>& sizes) {
  LabelledVar factor{var, letters};
  for (std::size_t i = 0; i < factor.letters.size(); ++i) {
    const std::size_t other = factor.letters.find(factor.letters[i], i + 1);
    if (other == std::string::npos) continue;
    const char letter = factor.letters[i];
    factor.var = diagonal(factor.var, static_cast<std::int64_t>(i), static_cast<std::int64_t>(other));
    factor.letters.erase(other, 1);
    factor.letters.erase(i, 1);
    factor.letters += letter;  // the axis of the diagonal comes last
    i = static_cast<std::size_t>(-1);
  }
  Axes broadcast;
  std::string kept;
  for (std::size_t i = 0; i < factor.letters.size(); ++i) {
    const char letter = factor.letters[i];
    if (factor.var.shape()[i] != sizes[static_cast<unsigned char>(letter)])
      broadcast.push_back(static_cast<std::int64_t>(i));
    else
      kept += letter;
  }
  if (!broadcast.empty()) factor = {squeeze(factor.var, broadcast), kept};
  return factor;
}

/// Sums a factor over the axes whose labels are not in `needed`.
void sum_out(LabelledVar& factor, const std::string& needed) {
  Axes axes;
  std::string kept;
  for (std::size_t i = 0; i < factor.letters.size(); ++i)
    if (contains(needed, factor.letters[i]))
      kept += factor.letters[i];
    else
      axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return;
  const Dtype own = factor.var.dtype();
  if (own == Dtype::boolean) throw DtypeError("cannot sum bool arrays: cast them to numbers");
  const Var summed = sum(factor.var, axes);  // int64 if the factor is int32
  factor = {summed.dtype() == own ? summed : cast(summed, own), kept};
}

Var transposed_to(const LabelledVar& factor, const std::string& letters) {
  if (factor.letters == letters) return factor.var;
  Axes axes;
  for (char letter : letters) axes.push_back(static_cast<std::int64_t>(factor.letters.find(letter)));
  return transpose(factor.var, axes);
}

/// Returns the labels of the result and of all factors except `i` and `j`.
std::string needed_besides(const std::vector<LabelledVar>& factors, std::size_t i, std::size_t j,
                           const std::string& result) {
  std::string needed = result;
  for (std::size_t k = 0; k < factors.size(); ++k)
    if (k != i && k != j) needed += factors[k].letters;
  return needed;
}

/// Returns the two factors that are cheapest to multiply: the pair whose product takes the fewest multiply-adds. Among
/// equal pairs, returns the pair with the smallest product.
std::pair<std::size_t, std::size_t> cheapest_pair(const std::vector<LabelledVar>& factors, const std::string& result,
                                                  const std::vector<std::int64_t>& sizes) {
  std::pair<std::size_t, std::size_t> best{0, 1};
  std::pair<double, double> least{0, 0};
  for (std::size_t i = 0; i < factors.size(); ++i)
    for (std::size_t j = i + 1; j < factors.size(); ++j) {
      const std::string needed = needed_besides(factors, i, j, result);
      double work = 1, left = 1;
      std::string seen;
      for (char letter : factors[i].letters + factors[j].letters) {
        if (contains(seen, letter)) continue;
        seen += letter;
        const auto size = static_cast<double>(sizes[static_cast<unsigned char>(letter)]);
        work *= size;
        if (contains(needed, letter)) left *= size;
      }
      if (j == 1 || std::make_pair(work, left) < least) {
        least = {work, left};
        best = {i, j};
      }
    }
  return best;
}

Var multiplied(const LabelledVar& a, const LabelledVar& b, const std::string& letters) {
  return record_product(einsum_op(), {a.var, b.var}, a.letters + "," + b.letters + "->" + letters);
}

Vars record_einsum(Tape&, const Op&, const Vars& inputs, const Attributes& attributes) {
  const auto [text, names] = in_labels(attributes.get<std::string>("equation"));
  std::vector<Shape> shapes;
  for (const Var& input : inputs) shapes.push_back(input.shape());
  Equation equation;
  std::vector<std::int64_t> sizes;
  try {
    equation = parse_equation(text, shapes);
    sizes = sizes_of_letters(equation, shapes, text, true);
  } catch (const ShapeError& error) {
    if (names.empty()) throw;
    throw ShapeError(std::string(error.what()) + "; " + names);
  }
  std::vector<LabelledVar> factors;
  for (std::size_t i = 0; i < inputs.size(); ++i) factors.push_back(simplified(inputs[i], equation.operands[i], sizes));
  for (std::size_t i = 0; i < factors.size(); ++i) sum_out(factors[i], needed_besides(factors, i, i, equation.result));
  while (factors.size() > 2) {
    const auto [i, j] = cheapest_pair(factors, equation.result, sizes);
    const std::string needed = needed_besides(factors, i, j, equation.result);
    std::string kept;
    for (char letter : factors[i].letters + factors[j].letters)
      if (contains(needed, letter) && !contains(kept, letter)) kept += letter;
    const LabelledVar product{multiplied(factors[i], factors[j], kept), kept};
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(j));
    factors[i] = product;
  }
  if (factors.size() == 1) return {transposed_to(factors[0], equation.result)};
  return {multiplied(factors[0], factors[1], equation.result)};
}

/// The batch becomes one more axis of the mapped operands and of the result.
Vars batch_product(const BatchCall& call) {
  const auto axis = [&](std::size_t input) { return call.mapped[input] ? 0 : -1; };
  const auto& equation = call.text("equation");
  return {record_product(einsum_op(), call.inputs, with_axis(equation, axis(0), axis(1), 0))};
}

/// The implementation of Op::Algebra::scaled.
Var scaled_product(const Node& node, const Vars& inputs, std::size_t input, const Var& scale) {
  const std::string& text = node.attributes.get<std::string>("equation");
  const Equation equation = parse_equation(text, {inputs[0].shape(), inputs[1].shape()});
  const std::string& letters = equation.operands[input];
  const std::string& result = equation.result;
  std::string kept;  // the letters of the axes along which the scale varies, in the order of the result
  for (const char letter : result)
    if (const std::size_t at = letters.find(letter); at != std::string::npos && scale.shape()[at] != 1) kept += letter;
  Axes order, fixed;
  Shape shape = Shape::filled(result.size(), 1);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (scale.shape()[i] == 1)
      fixed.push_back(static_cast<std::int64_t>(i));
    else if (!contains(kept, letters[i]))
      return {};
    else
      shape[result.find(letters[i])] = scale.shape()[i];
  }
  LabelledVar factor{squeeze(scale, fixed), {}};
  for (const char letter : letters)
    if (contains(kept, letter)) factor.letters += letter;
  return record_product(einsum_op(), {inputs[0], inputs[1]}, text) * reshape(transposed_to(factor, kept), shape);
}

const AttributeSpec equation_attribute{
    "equation", AttributeType::text,
    "A letter for every axis of every operand, with commas between operands. The axes of the result follow after '->'. "
    "'...' covers any number of axes without letters. Without '->' the result has the axes of '...', then the letters "
    "that occur once, in alphabetical order. Axes may also be named by words with spaces between them: 'b query d, b "
    "key d -> b query key'.",
    std::nullopt};

double product_flops(const OpCall& call) {
  const std::vector<Shape> shapes{call.shape(0), call.shape(1)};
  const Equation equation = parse_equation(call.text("equation"), shapes);
  const std::vector<std::int64_t> sizes = sizes_of_letters(equation, shapes, call.text("equation"));
  double terms = 1;
  for (char letter = 'A'; letter <= 'z'; ++letter)
    if (contains(equation.operands[0], letter) || contains(equation.operands[1], letter))
      terms *= static_cast<double>(sizes[static_cast<unsigned char>(letter)]);
  return 2 * terms;
}

const Op& einsum_op() {
  static const Op entry{
      .name = "einsum",
      .doc = R"(Sum of products over labelled axes: y[result] is the product of the operands, x1[...] * x2[...] * ...,
           summed over all labels that the result lacks. A label that occurs twice in one operand takes its diagonal.
           Axes of size 1 broadcast. The result has the dtype of the operands; integers wrap, and bool is
           refused. Takes any number of operands and multiplies two at a time, the cheapest pair first. The products are
           matrix products, which read strided operands in place where possible.)",
      .inputs = {{"operands", Accept::value, Arity::many}},
      .attributes = {equation_attribute},
      .shape =
          +[](const OpCall& call) {
            if (call.inputs.size() != 2) throw ShapeError("a recorded product has two operands");
            return std::vector<ValueType>{product_type(call)};
          },
      .gradient = product_gradients,
      .batch = batch_product,
      .record = record_einsum,
      .lowering = {.kernel = kernel_by_name,
                   .layouts = {.any_in = true, .any_out = true},
                   .dtypes = {.widens = {0, 1}, .blocks = +[](const OpCall&) { return true; }},
                   .cost = {product_flops}},
      .algebra = {.accumulate =
                      [](const Node& node, const Vars& inputs, const Var& addend) {
                        if (addend.type() != node.outputs[0]) return Var();
                        return record_product(einsum_add_op(), {inputs[0], inputs[1], addend},
                                              node.attributes.get<std::string>("equation"));
                      },
                  .scaled = scaled_product}};
  return entry;
}

const Op& einsum_add_op() {
  static const Op entry{
      .name = "einsum_add",
      .doc = R"(addend + einsum(equation, a, b). The product is added in place if nothing reads the addend later. Every
           label of an operand must also be in the other operand or in the result, and no label may occur twice in an
           operand.)",
      .inputs = {{"a", Accept::value}, {"b", Accept::value}, {"addend", Accept::value}},
      .attributes = {equation_attribute},
      .shape =
          +[](const OpCall& call) {
            const ValueType type = product_type(call);
            if (call.inputs[2] != type)
              throw ShapeError("the addend is " + to_string(call.inputs[2]) + ", the product " + to_string(type) +
                               ": their types must be equal");
            return std::vector<ValueType>{type};
          },
      .gradient =
          +[](const GradientCall& call) {
            Vars gradients = product_gradients(call);
            gradients[2] = call.cotangent();
            return gradients;
          },
      .expand =
          +[](const ExpandCall& call) {
            return Vars{add(call.inputs[2], einsum(call.text("equation"), Vars{call.inputs[0], call.inputs[1]}))};
          },
      .lowering = {.kernel = kernel_by_name,
                   .overwrites = {2},
                   .layouts = {.any_in = true, .any_out = true},
                   .dtypes = {.widens = {0, 1}, .blocks = +[](const OpCall&) { return true; }},
                   .cost = {product_flops}}};
  return entry;
}
}  // namespace

Var einsum(const std::string& equation, const Vars& operands, Caller caller) {
  return apply(einsum_op(), {operands.begin(), operands.end()}, {{"equation", equation}}, caller)[0];
}

void list_einsum(OpTable& table) {
  table.add(einsum_op());
  table.add(einsum_add_op());
}

}  // namespace xtape
