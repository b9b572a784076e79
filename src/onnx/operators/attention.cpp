// Attention and rotary position embeddings.
#include <cmath>
#include <limits>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"

namespace xtape::onnx {

namespace {
/// Returns x [b, t, heads * d] as [b, heads, t, d]. An x of four axes stays unchanged.
Var in_heads(NodeCall& node, const Var& x, const std::string& heads_name) {
  if (x.rank() == 4) return x;
  const std::int64_t heads = node.integer(heads_name);
  if (x.rank() != 3 || heads < 1 || x.size(2) % heads != 0)
    node.fail("an input has the shape " + to_string(x.shape()) + ", which does not split into " +
              std::to_string(heads) + " heads");
  return transpose(reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}

/// Repeats keys or values [b, kv, t, d] for the query heads that share them: [b, heads, t, d].
Var for_heads(NodeCall& node, const Var& x, std::int64_t heads) {
  const std::int64_t own = x.size(1);
  if (own == heads) return x;
  if (own < 1 || heads % own != 0)
    node.fail(std::to_string(own) + " heads of keys and values cannot serve " + std::to_string(heads) + " of queries");
  const Var repeated = broadcast_to(expand_dims(x, 2), {x.size(0), own, heads / own, x.size(2), x.size(3)});
  return reshape(repeated, {x.size(0), heads, x.size(2), x.size(3)});
}

/// Applies the mask to the scores. A mask of bools is true where a query may attend. A mask of floats is added. Keys
/// beyond the end of the mask are masked out.
Var masked(NodeCall& node, const Var& scores, const Var& mask) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::int64_t missing = mask.rank() == 0 ? 0 : scores.size(-1) - mask.size(-1);
  if (missing < 0) node.fail("the mask has the shape " + to_string(mask.shape()) + ", for more keys than there are");
  std::vector<std::int64_t> before(mask.rank(), 0), after(mask.rank(), 0);
  const bool pads = missing > 0 && mask.size(-1) != 1;  // a size of 1 stands for all keys
  if (pads) after.back() = missing;
  if (mask.dtype() == Dtype::boolean)
    return masked_fill(scores, logical_not(pads ? pad(mask, before, after) : mask), -infinity);
  return scores + (pads ? pad(mask, before, after, -infinity) : mask);
}

/// softmax(q k' * scale + mask) v. Keys and values of earlier calls come first.
Vars attention(NodeCall& node) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::size_t rank = node.at(0).rank();
  const Var q = in_heads(node, node.at(0), "q_num_heads");
  Var k = in_heads(node, node.at(1), "kv_num_heads"), v = in_heads(node, node.at(2), "kv_num_heads");
  if (rank == 4) node.ignore("q_num_heads"), node.ignore("kv_num_heads");
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) node.fail("queries, keys and values must have as many axes");
  if (node.has(4) != node.has(5)) node.fail("there are earlier keys or values only, not both");
  std::int64_t past = 0;
  if (node.has(4)) {
    past = node.at(4).size(2);
    k = concat({node.at(4), k}, 2);
    v = concat({node.at(5), v}, 2);
  }
  const double scale = node.has("scale") ? node.real("scale") : 1 / std::sqrt(static_cast<double>(q.size(3)));
  const std::int64_t heads = q.size(1), mode = node.integer("qk_matmul_output_mode", 0);
  Vars stages;  // the scores after each step; one of them may be an output
  Var scores = matmul(q * scale, transpose(for_heads(node, k, heads), {0, 1, 3, 2}));  // [b, heads, t, keys]
  stages.push_back(scores);
  if (const double cap = node.real("softcap", 0); cap > 0) scores = tanh(scores / cap) * cap;
  stages.push_back(scores);
  if (node.has(3)) scores = masked(node, scores, node.at(3));
  if (node.flag("is_causal", false)) {
    const Var ones = full(node.tape(), {q.size(2), k.size(2)}, 1, Dtype::boolean);
    scores = masked_fill(scores, triu(ones, past + 1), -infinity);
  }
  stages.push_back(scores);
  const Dtype inside = scores.dtype();
  if (node.has("softmax_precision"))
    scores = cast(scores, dtype_in(node.integer("softmax_precision"), node.setting(), "softmax_precision"));
  const Var weights = cast(softmax(scores, -1), inside);
  Var y = matmul(weights, for_heads(node, v, heads));  // [b, heads, t, d]
  if (rank == 3) y = reshape(transpose(y, {0, 2, 1, 3}), {y.size(0), y.size(2), y.size(1) * y.size(3)});
  stages.push_back(weights);
  if (mode < 0 || mode > 3) node.fail("qk_matmul_output_mode is " + std::to_string(mode) + ", not 0 to 3");
  return {y, k, v, stages[static_cast<std::size_t>(mode)]};
}

/// Returns the angles of positions as [b, 1, t, d]. They are the rows [b, t] of a table [positions, d], or are given as
/// [b, t, d].
Var angles(NodeCall& node, std::size_t input) {
  const Var& given = node.at(input);
  return expand_dims(node.has(3) ? take(given, node.at(3), 0) : given, 1);
}

/// Rotates pairs of features of every head. A pair has one feature from each half of the head or, if interleaved, two
/// neighbouring features.
Vars rotated(NodeCall& node) {
  const Var& given = node.at(0);
  const Var x = in_heads(node, given, "num_heads");  // [b, heads, t, d]
  if (given.rank() == 4) node.ignore("num_heads");
  const std::int64_t wanted = node.integer("rotary_embedding_dim", 0), d = wanted == 0 ? x.size(3) : wanted;
  if (d < 0 || d > x.size(3) || d % 2 != 0)
    node.fail("rotary_embedding_dim is " + std::to_string(d) + ", not an even number up to " +
              std::to_string(x.size(3)));
  const bool neighbours = node.flag("interleaved", false);
  const Var turned = slice(x, {0, 0, 0, 0}, {open_end, open_end, open_end, d});
  const Shape pairs =
      neighbours ? Shape{x.size(0), x.size(1), x.size(2), d / 2, 2} : Shape{x.size(0), x.size(1), x.size(2), 2, d / 2};
  const std::int64_t axis = neighbours ? 4 : 3;
  const Vars parts = unstack(reshape(turned, pairs), axis);
  const Var cosine = angles(node, 1), sine = angles(node, 2);
  const Var real = cosine * parts[0] - sine * parts[1], imaginary = sine * parts[0] + cosine * parts[1];
  Var y = reshape(stack({real, imaginary}, axis), turned.shape());
  if (d < x.size(3)) y = concat({y, slice(x, {0, 0, 0, d}, {open_end, open_end, open_end, open_end})}, 3);
  return {given.rank() == 4 ? y : reshape(transpose(y, {0, 2, 1, 3}), given.shape())};
}
}  // namespace

const Operators& attention_operators() {
  static const Operators operators = {{"Attention", attention}, {"RotaryEmbedding", rotated}};
  return operators;
}

}  // namespace xtape::onnx
