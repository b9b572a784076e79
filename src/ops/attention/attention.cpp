// attention and its gradient. One kernel computes the scaled dot products, mask, softmax, dropout and the weighted sum
// of values. A rule replaces the separate ops by this op.
#include "kernels/attention/attention.hpp"

#include <bit>
#include <limits>

#include "ops/linear_algebra/equation.hpp"
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
/// Returns the shape of the scores. Throws ShapeError if the inputs do not fit the equations.
Shape scores_shape(const OpCall& call, const AttentionLabels& letters) {
  const std::string text = call.text("scores") + "' and '" + call.text("outputs");
  const auto sizes = sizes_of_letters({{letters.q, letters.k, letters.v}, letters.y, ""},
                                      {call.shape(0), call.shape(1), call.shape(2)}, text);
  Shape shape;
  for (char letter : letters.scores) shape.push_back(sizes[static_cast<unsigned char>(letter)]);
  return shape;
}

Shape output_shape(const OpCall& call, const AttentionLabels& letters) {
  Shape shape;
  for (char letter : letters.y) {
    const bool value = letter == letters.value_width;
    shape.push_back(value ? call.shape(2)[letters.v.find(letter)] : call.shape(0)[letters.q.find(letter)]);
  }
  return shape;
}

/// Returns the index of the mask among the inputs.
std::size_t mask_place(const OpCall& call) {
  return call.op.inputs.size() - 1;
}
bool is_masked(const OpCall& call) {
  return call.inputs.size() == call.op.inputs.size();
}
const Shape* mask_of(const OpCall& call) {
  return is_masked(call) ? &call.shape(mask_place(call)) : nullptr;
}

void check(const OpCall& call, const AttentionLabels& letters) {
  for (const auto& [input, names] : {std::pair{0u, &letters.q}, {1u, &letters.k}, {2u, &letters.v}})
    if (call.shape(input).size() != names->size())
      throw ShapeError("'" + call.op.inputs[input].name + "' of shape " + to_string(call.shape(input)) +
                       " must have the axes '" + *names + "'");
  const Shape scores = scores_shape(call, letters);
  checked_bytes(call.dtype(0), scores);  // scores are never stored, but their indices determine the random numbers
  if (const Shape* mask = mask_of(call); mask != nullptr && broadcast_shapes({scores, *mask}) != scores)
    throw ShapeError("a mask of shape " + to_string(*mask) + " does not broadcast to " + to_string(scores) +
                     ", the shape of the scores");
  const double rate = call.number("rate");
  if (!(rate >= 0 && rate <= 1)) throw Error("rate must be in [0, 1], got " + to_string(Attribute{rate}));
}

/// Returns the number of operations of all heads: `widths` products of size queries x keys x width, and `value_widths`
/// products of size queries x keys x value_width.
double flops_of(const OpCall& call, double widths, double value_widths) {
  const AttentionLabels letters = labels_of_attention(call.attributes);
  const auto scores = static_cast<double>(count_of(scores_shape(call, letters)));
  return 2 * scores *
         (widths * static_cast<double>(call.shape(0)[letters.q.find(letters.width)]) +
          value_widths * static_cast<double>(call.shape(2)[letters.v.find(letters.value_width)]));
}

std::vector<AttributeSpec> attributes() {
  return {{"scores", AttributeType::text,
           "The einsum equation of the scores from q and k. The axis of the keys is last.", std::nullopt},
          {"outputs", AttributeType::text, "The einsum equation of y from the weights and v.", std::nullopt},
          {"scale", AttributeType::number, "The factor by which the scores are multiplied.", 1.0},
          {"rate", AttributeType::number, "The probability that a weight is dropped.", 0.0},
          {"draws", AttributeType::integer, "The site key of the dropout, which determines its random numbers.",
           std::int64_t{0}}};
}

const InputSpec mask_input{"mask", Accept::mask, Arity::optional};

/// Applies dropout to `x` with the random numbers of the site key in the attributes. Returns `x` itself if the rate is
/// 0. Like the kernel, it drops elements in every mode of the tape.
Var drop(const ExpandCall& call, const Var& x) {
  const double rate = call.number("rate");
  if (rate == 0) return x;
  Site site = call.node.site;
  site.key = std::bit_cast<std::uint64_t>(call.integer("draws"));
  Tape tape = call.tape;  // another handle of the same tape
  const auto in_site = tape.in_site(site);
  return record_call(tape, builtin_ops().at("dropout"), {x}, {{"rate", rate}})[0];
}

/// Returns the softmax of the scaled and masked scores.
Var weights(const ExpandCall& call) {
  const double scale = call.number("scale");
  Var scores = einsum(call.text("scores"), Vars{call.inputs[0], call.inputs[1]});
  if (scale != 1) scores = scores * scale;
  if (call.inputs.size() == call.op.inputs.size())
    scores = masked_fill(scores, call.inputs.back(), -std::numeric_limits<double>::infinity());
  return softmax(scores);
}

/// The batch becomes one more label of all arrays except the mask, which broadcasts.
Vars batch_heads(const BatchCall& call) {
  const std::size_t arrays = call.op.inputs.size() - 1;  // all inputs except the mask
  Vars inputs = call.all_whole();
  inputs.resize(arrays);
  Attributes attributes = call.attributes;
  for (const char* name : {"scores", "outputs"})
    attributes.set(name, with_axis(attributes.get<std::string>(name), 0, 0, 0));
  if (call.inputs.size() > arrays) {
    Var mask = call.inputs[arrays];
    if (call.mapped[arrays]) {
      Shape shape = mask.shape();
      while (shape.size() < labels_of_attention(attributes).scores.size()) shape.insert(1, 1);
      mask = reshape(mask, shape);
    }
    inputs.push_back(mask);
  }
  return record_call(call.tape, call.op, inputs, attributes);
}

const Op& attention_grad_op() {
  static const Op entry{
      .name = "attention_grad",
      .doc = R"(The gradients of attention with respect to q, k and v, given q, k, v and the cotangent dy of the output.
           The weights are computed again, block by block.)",
      .inputs = {{"q", Accept::floating},
                 {"k", Accept::floating},
                 {"v", Accept::floating},
                 {"dy", Accept::floating},
                 mask_input},
      .outputs = {"dq", "dk", "dv"},
      .attributes = attributes(),
      .shape =
          +[](const OpCall& call) {
            const AttentionLabels letters = labels_of_attention(call.attributes);
            check(call, letters);
            require_shape(call, 3, output_shape(call, letters), "that of the output");
            return std::vector<ValueType>{call.inputs[0], call.inputs[1], call.inputs[2]};
          },
      .batch = batch_heads,
      .expand =
          +[](const ExpandCall& call) {
            const AttentionLabels of = labels_of_attention(call.attributes);
            const Var& dy = call.inputs[3];
            const Var p = weights(call);
            const Var dp = drop(call, einsum(of.y + "," + of.v + "->" + of.scores, Vars{dy, call.inputs[2]}));
            const Var ds = p * (dp - sum(dp * p, {-1}, true)) * call.number("scale");
            return Vars{einsum(of.scores + "," + of.k + "->" + of.q, Vars{ds, call.inputs[1]}),
                        einsum(of.scores + "," + of.q + "->" + of.k, Vars{ds, call.inputs[0]}),
                        einsum(of.scores + "," + of.y + "->" + of.v, Vars{drop(call, p), dy})};
          },
      .random = true,
      .lowering = {.kernel = kernel_by_name,
                   .layouts = {.any_in = true, .any_out = true},
                   .dtypes = {.widens = {0, 1, 2, 3}},
                   .cost = {
                       +[](const OpCall& call) { return flops_of(call, 3, 2); }}}};  // scores, dq, dk; dweights, dv
  return entry;
}

const Op& attention_op() {
  static const Op entry{
      .name = "attention",
      .doc =
          R"(y = dropout(softmax(masked_fill(scale * q k', mask, -inf))) v for every head. The equations `scores` and
           `outputs` define the two products. The op works block by block: it never stores the array of all scores, and
           it skips keys that are masked for all queries of a block. A query whose keys are all masked gives zeros. The
           mask is optional; it is true where a key is hidden, and it broadcasts to the scores. Programs record the
           separate ops. A rule replaces them by this op.)",
      .inputs = {{"q", Accept::floating}, {"k", Accept::floating}, {"v", Accept::floating}, mask_input},
      .attributes = attributes(),
      .shape =
          +[](const OpCall& call) {
            const AttentionLabels letters = labels_of_attention(call.attributes);
            check(call, letters);
            return std::vector<ValueType>{{call.dtype(0), output_shape(call, letters)}};
          },
      .gradient =
          +[](const GradientCall& call) {
            Vars operands = call.inputs;
            operands.insert(operands.begin() + 3, call.cotangent());
            Vars gradients = record_call(call.inputs[0].tape(), attention_grad_op(), operands, call.attributes);
            gradients.resize(call.inputs.size());
            return gradients;
          },
      .batch = batch_heads,
      .expand =
          +[](const ExpandCall& call) {
            const Var y = drop(call, weights(call));
            return Vars{einsum(call.text("outputs"), Vars{y, call.inputs[2]})};
          },
      .random = true,
      .lowering = {.kernel = kernel_by_name,
                   .layouts = {.any_in = true, .any_out = true},
                   .dtypes = {.widens = {0, 1, 2}, .blocks = +[](const OpCall&) { return true; }},
                   .cost = {+[](const OpCall& call) { return flops_of(call, 1, 1); }}}};
  return entry;
}
}  // namespace

void list_attention(OpTable& table) {
  table.add(attention_op());
  table.add(attention_grad_op());
  for (const bool masked : {true, false})
    for (const double rate : {0.283, 0.0}) {
      std::vector<ValueType> sample{
          {Dtype::float64, {2, 3, 4, 5}}, {Dtype::float64, {2, 6, 4, 5}}, {Dtype::float64, {2, 6, 4, 7}}};
      if (masked) sample.push_back({Dtype::boolean, {3, 6}});
      table.add({.name = std::string("attention") + (masked ? ", masked" : "") + (rate != 0 ? ", with dropout" : ""),
                 .op = &attention_op(),
                 .inputs = sample,
                 .attributes = {{"scores", std::string("bqhe,bkhe->bhqk")},
                                {"outputs", std::string("bhqk,bkhd->bqhd")},
                                {"scale", 0.371},
                                {"rate", rate},
                                {"draws", std::int64_t{rate != 0 ? 7919 : 0}}},
                 .refuses = +[](const OpCall& call) {
                   const double scale = call.number("scale");
                   return scale > 0 || !is_masked(call)
                              ? ""
                              : "scaling by " + to_string(Literal(scale)) + " after the mask would not keep -inf there";
                 }});
    }
}

}  // namespace xtape
