// Attention and the layers of the Transformer.
#include <cmath>
#include <limits>

#include "nn/layers.hpp"

namespace xtape::nn {

namespace {
Var either(const Var& a, const Var& b) {
  return a.empty() ? b : b.empty() ? a : a | b;
}

Var scaled_dot_product(const Var& q, const Var& k, const Var& v, const Var& mask, double dropout_rate) {
  Var scores = einsum("b query h d_k, b key h d_k -> b h query key", q, k) /
               std::sqrt(static_cast<double>(q.size(-1)));  // [b, h, query, key]
  if (!mask.empty()) scores = masked_fill(scores, mask, -std::numeric_limits<double>::infinity());
  return einsum("b h query key, b key h d_v -> b query h d_v", dropout(softmax(scores), dropout_rate), v);
}
}  // namespace

Var multi_head_attention(const Parameters& p, const Argument& q, const Var& k, const Var& v, std::int64_t heads,
                         const AttentionOptions& options) {
  const Caller& caller = q.caller();
  return as_layer(p, caller, [&] {
    const std::int64_t width = q.size(-1);
    if (q.rank() != 3) throw ShapeError("attention takes [b, t, width], got " + to_string(q.type()));
    if (heads < 1 || width % heads != 0)
      throw ShapeError("the heads must divide the width, " + std::to_string(width) + ", got " + std::to_string(heads));
    const auto in_heads = [&](const char* name, const Var& x) {
      const Var y = linear(p / name, {x, caller}, width, options.with_bias);
      return rearrange(y, "b t (h d_k) -> b t h d_k", {{"h", heads}});
    };
    const Var of_q = in_heads("query", q);
    Var of_k = in_heads("key", k), of_v = in_heads("value", v);
    if (options.cached) {
      of_k = cache(of_k, 1);
      of_v = cache(of_v, 1);
    }
    const Var mask = either(options.mask, options.causal ? causal_mask(q, 1) : Var());
    const Var y = scaled_dot_product(of_q, of_k, of_v, mask, options.dropout_rate);
    return linear(p / "output", {rearrange(y, "b t h d_v -> b t (h d_v)"), caller}, width, options.with_bias);
  });
}

Var multi_head_attention(const Parameters& p, const Argument& x, std::int64_t heads, const AttentionOptions& options) {
  return multi_head_attention(p, x, x, x, heads, options);
}

Var sinusoidal_positions(const Argument& tokens, std::int64_t width, std::int64_t axis) {
  return as_call(tokens.tape(), nullptr, tokens.caller(), [&] {
    if (width < 2 || width % 2 != 0)
      throw ShapeError("sinusoidal positions need an even width, got " + std::to_string(width));
    constexpr double log_10000 = 9.210340371976184;
    const Dtype dtype = tokens.tape().default_dtype();
    const Var i = iota(tokens.tape(), {width / 2}, 0, dtype);
    const Var angle =
        expand_dims(cast(positions(tokens, axis), dtype), -1) * exp(i * (-2 * log_10000 / static_cast<double>(width)));
    return rearrange(stack({sin(angle), cos(angle)}, -1), "... i n -> ... (i n)");
  });
}

namespace {
/// LayerNorm(x + Sublayer(x)) or, with norm_first, x + Sublayer(LayerNorm(x)) (Xiong et al., 2020).
Var residual(const Parameters& p, const Argument& x, const TransformerOptions& options,
             const std::function<Var(const Parameters&, const Argument&)>& sublayer) {
  const auto norm = [&](const Var& y) { return layer_norm(p / "norm", {y, x.caller()}, options.epsilon); };
  const Var y = sublayer(p / "sublayer", {options.norm_first ? norm(x) : Var(x), x.caller()});
  return as_layer(p, x.caller(), [&] {
    const Var sum = x + dropout(y, options.dropout_rate);
    return options.norm_first ? sum : norm(sum);
  });
}

Var feed_forward_of(const Parameters& p, const Argument& x, const TransformerOptions& options) {
  return residual(p / "feed_forward", x, options, [&](const Parameters& sublayer, const Argument& y) {
    return feed_forward(sublayer, y, options.d_ff, options.activation_dropout_rate);
  });
}
}  // namespace

Var transformer_encoder_layer(const Parameters& p, const Argument& x, const Var& mask,
                              const TransformerOptions& options) {
  AttentionOptions attention;
  attention.mask = mask;
  attention.dropout_rate = options.attention_dropout_rate;
  const Var y = residual(p / "self_attention", x, options, [&](const Parameters& sublayer, const Argument& z) {
    return multi_head_attention(sublayer / "attention", z, options.heads, attention);
  });
  return feed_forward_of(p, {y, x.caller()}, options);
}

Var transformer_decoder_layer(const Parameters& p, const Argument& x, const Var& memory, const Var& memory_mask,
                              const TransformerOptions& options) {
  AttentionOptions self, cross;
  self.causal = self.cached = true;
  self.dropout_rate = cross.dropout_rate = options.attention_dropout_rate;
  cross.mask = memory_mask;
  const Var y = residual(p / "self_attention", x, options, [&](const Parameters& sublayer, const Argument& z) {
    return multi_head_attention(sublayer / "attention", z, options.heads, self);
  });
  const Argument attended(y, x.caller());
  const Var z = residual(p / "cross_attention", attended, options, [&](const Parameters& sublayer, const Argument& q) {
    return multi_head_attention(sublayer, q, memory, memory, options.heads, cross);
  });
  return feed_forward_of(p, {z, x.caller()}, options);
}

}  // namespace xtape::nn
