// Equivalent spellings, as users of PyTorch write them. Rules find each of them, for every dtype and any number of
// gradients. If a value inside is an output, nothing is fused there, and all values are right.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>

#include "expansion.hpp"
#include "fused.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace spellings {

using namespace xtape;

namespace {
constexpr double masked_out = std::numeric_limits<double>::infinity();

/// The vars of a spelling: its value, and a value inside it.
struct Spelled {
  Var y, inside;
};
struct Spelling {
  std::string name, op;
  std::vector<std::vector<std::size_t>> shapes;
  std::function<Spelled(const Vars&)> record;
  bool beforehand = false;  // the op computes its gradients together with its value
};

/// bool [queries, keys], true where a query may see a key.
Var seen_of(const Var& scores) {
  const Var ones_of = ones(scores.tape(), {scores.size(-2), scores.size(-1)}, scores.dtype());
  return tril(ones_of) != 0;
}

std::vector<Spelling> attentions() {
  const std::vector<std::vector<std::size_t>> heads{{2, 3, 5, 4}, {2, 3, 5, 4}, {2, 3, 5, 6}};
  const auto attention = [&](const std::string& name, const std::function<Spelled(const Vars&)>& record) {
    return Spelling{"attention: " + name, "attention", heads, record};
  };
  const auto swapped = [](const Var& x) { return transpose(x, {0, 1, 3, 2}); };
  return {
      attention("nanoGPT's: masked_fill(mask == 0)",
                [=](const Vars& v) {
                  Var att = matmul(v[0], swapped(v[1])) * (1.0 / 2.0);
                  att = masked_fill(att, tril(ones(v[0].tape(), {5, 5}, v[0].dtype())) == 0, -masked_out);
                  att = softmax(att);
                  return Spelled{matmul(att, v[2]), att};
                }),
      attention("divided by a root",
                [=](const Vars& v) {
                  const Var p = softmax(matmul(v[0], swapped(v[1])) / 3.7);
                  return Spelled{matmul(p, v[2]), p};
                }),
      attention("queries scaled beforehand",
                [=](const Vars& v) {
                  const Var p = softmax(einsum("bhqd,bhkd->bhqk", v[0] * 0.3, v[1]));
                  return Spelled{einsum("bhqk,bhkd->bhqd", p, v[2]), p};
                }),
      attention("keys scaled beforehand, no mask",
                [=](const Vars& v) {
                  const Var p = softmax(einsum("bhqd,bhkd->bhqk", v[0], v[1] / 3.0));
                  return Spelled{einsum("bhqk,bhkd->bqhd", p, v[2]), p};
                }),
      attention("where(seen, scores, -inf)",
                [=](const Vars& v) {
                  const Var scores = 0.5 * matmul(v[0], swapped(v[1]));
                  const Var p = softmax(where(seen_of(scores), scores, -masked_out));
                  return Spelled{matmul(p, v[2]), p};
                }),
      attention("scaled after the mask",
                [=](const Vars& v) {
                  const Var scores = matmul(v[0], swapped(v[1]));
                  const Var p = softmax(masked_fill(scores, ~seen_of(scores), -masked_out) / 2.0);
                  return Spelled{matmul(p, v[2]), p};
                }),
      attention("keys before queries, transposed back",
                [=](const Vars& v) {
                  const Var p = softmax(transpose(matmul(v[1], swapped(v[0])), {0, 1, 3, 2}) * 0.5);
                  return Spelled{transpose(matmul(p, v[2]), {0, 2, 1, 3}), p};
                }),
  };
}

std::vector<Spelling> gelus() {
  const auto gelu = [](const std::string& name, const std::function<Spelled(const Vars&)>& record) {
    return Spelling{"gelu: " + name, "gelu", {{3, 7}}, record};
  };
  const double root = std::sqrt(2 / M_PI);
  return {
      gelu("GPT-2's",
           [=](const Vars& v) {
             const Var t = tanh(root * (v[0] + 0.044715 * pow(v[0], 3.0)));
             return Spelled{0.5 * v[0] * (1.0 + t), t};
           }),
      gelu("factored",
           [=](const Vars& v) {
             const Var t = tanh(v[0] * root * (1.0 + 0.044715 * v[0] * v[0]));
             return Spelled{v[0] * 0.5 * (1.0 + t), t};
           }),
      gelu("multiplied by one half last",
           [=](const Vars& v) {
             const Var t = 1.0 + tanh((v[0] * v[0] * v[0] * 0.044715 + v[0]) * root);
             return Spelled{v[0] * t / 2.0, t};
           }),
      gelu("by erf",
           [=](const Vars& v) {
             const Var e = erf(v[0] / std::sqrt(2.0));
             return Spelled{v[0] * 0.5 * (1.0 + e), e};
           }),
      gelu("by erf, as a product with the distribution",
           [=](const Vars& v) {
             const Var below = 0.5 * (1.0 + erf(v[0] * M_SQRT1_2));
             return Spelled{v[0] * below, below};
           }),
  };
}

std::vector<Spelling> norms() {
  const std::vector<std::vector<std::size_t>> weighted{{2, 3, 6}, {6}}, biased{{2, 3, 6}, {6}, {6}};
  const auto layer = [&](const std::string& name, const std::function<Spelled(const Vars&)>& record) {
    return Spelling{"layer_norm: " + name, "layer_norm", biased, record};
  };
  const auto rms = [&](const std::string& name, const std::function<Spelled(const Vars&)>& record) {
    return Spelling{"rms_norm: " + name, "rms_norm", weighted, record};
  };
  return {
      layer("the annotated Transformer's, by var",
            [](const Vars& v) {
              const Var centred = v[0] - mean(v[0], {-1}, true);
              const Var spread = sqrt(variance(v[0], {-1}, true) + 1e-5);
              return Spelled{v[1] * centred / spread + v[2], spread};
            }),
      layer("by squares",
            [](const Vars& v) {
              const Var centred = v[0] - mean(v[0], {2}, true);
              const Var rstd = rsqrt(mean(centred * centred, {2}, true) + 1e-5);
              return Spelled{centred * rstd * v[1] + v[2], rstd};
            }),
      layer("the mean twice, with restored axes",
            [](const Vars& v) {
              const Var spread = mean(pow(v[0] - expand_dims(mean(v[0], {-1}), -1), 2.0), {-1}, true);
              return Spelled{v[2] + v[1] * ((v[0] - mean(v[0], {-1}, true)) / sqrt(1e-5 + spread)), spread};
            }),
      layer("of a residual sum",
            [](const Vars& v) {
              const Var x = v[0] + tanh(v[0]) * 0.5;
              const Var rstd = pow(variance(x, {-1}, true) + 1e-6, -0.5);
              return Spelled{(x - mean(x, {-1}, true)) * rstd * v[1] + v[2], rstd};
            }),
      rms("LLaMA's",
          [](const Vars& v) {
            const Var rstd = rsqrt(mean(pow(v[0], 2.0), {-1}, true) + 1e-6);
            return Spelled{v[1] * (v[0] * rstd), rstd};
          }),
      rms("a quotient",
          [](const Vars& v) {
            const Var rms = sqrt(mean(v[0] * v[0], {-1}, true) + 1e-6);
            return Spelled{v[0] / rms * v[1], rms};
          }),
      rms("a reciprocal, of a product",
          [](const Vars& v) {
            const Var x = v[0] * 1.5;
            const Var scale = 1.0 / sqrt(1e-6 + mean(square(x), {-1}, true));
            return Spelled{scale * x * v[1], scale};
          }),
  };
}

/// Projections to about the fewest logits for which the rule applies (rows_at_once).
std::vector<Spelling> projections() {
  const auto projection = [](const std::string& name, const std::vector<std::vector<std::size_t>>& shapes,
                             const std::function<Spelled(const Vars&)>& record) {
    return Spelling{"projection with its loss: " + name, "product_cross_entropy", shapes, record, true};
  };
  const auto targets = [](const Var& x, const Shape& shape) {
    const Var number = iota(x.tape(), {count_of(shape)});
    return reshape(mod(number * 7919, 5500), shape);
  };
  const auto mean_of = [](const std::pair<Var, Var>& loss, Dtype dtype) {
    return loss.first / cast(loss.second, dtype);
  };
  return {
      projection("nanoGPT's, flattened", {{2, 520, 3}, {5500, 3}},
                 [=](const Vars& v) {
                   const Var logits = matmul(v[0], transpose(v[1]));
                   return Spelled{
                       mean_of(cross_entropy_sum(reshape(logits, {-1, 5500}), targets(v[0], {1040})), v[0].dtype()),
                       logits};
                 }),
      projection("a linear layer with bias", {{2, 520, 3}, {3, 5500}, {5500}},
                 [=](const Vars& v) {
                   const Var logits = v[2] + matmul(v[0], v[1]);
                   return Spelled{mean_of(cross_entropy_sum(logits, targets(v[0], {2, 520})), v[0].dtype()), logits};
                 }),
      projection("flattened with bias", {{2, 520, 3}, {3, 5500}, {5500}},
                 [=](const Vars& v) {
                   const Var logits = einsum("btd,dv->btv", v[0], v[1]) + v[2];
                   return Spelled{
                       mean_of(cross_entropy_sum(reshape(logits, {1040, 5500}), reshape(targets(v[0], {2, 520}), {-1})),
                               v[0].dtype()),
                       logits};
                 }),
  };
}

template <class T>
Vars inputs_of(Tape& tape, const Spelling& spelling) {
  Vars inputs;
  for (std::size_t i = 0; i < spelling.shapes.size(); ++i) {
    const auto values = normal_array(spelling.shapes[i], static_cast<unsigned>(i + 1));
    const std::string name = "v" + std::to_string(i);
    if constexpr (std::is_same_v<T, float>)
      inputs.push_back(tape.parameter(name, single(values)));
    else
      inputs.push_back(tape.parameter(name, values));
  }
  return inputs;
}

template <class T>
void check(const Spelling& spelling) {
  CAPTURE(spelling.name);
  Tape tape;
  tape.set_default_dtype(dtype_of<T>());
  const Vars inputs = inputs_of<T>(tape, spelling);
  const Spelled spelled = spelling.record(inputs);
  const Vars first = grad(sum(sin(spelled.y)), inputs, {.materialize_grads = true});
  const Vars second = grad(sum(square(spelled.y)), inputs, {.materialize_grads = true});
  const double tolerance = std::is_same_v<T, float> ? 2e-4 : 1e-10;
  Vars outputs{spelled.y};
  if (!spelling.beforehand) CHECK(fused(spelling.op, tape, outputs, tolerance) == Count{1, 0});
  std::int64_t sweeps = 0;
  for (const Vars& gradients : {first, second}) {
    outputs.insert(outputs.end(), gradients.begin(), gradients.end());
    if (!spelling.beforehand) ++sweeps;
    CHECK(fused(spelling.op, tape, outputs, tolerance) == Count{1, sweeps});
  }
  outputs.push_back(spelled.inside);
  CHECK(fused(spelling.op, tape, outputs, tolerance) == Count{0, 0});
}
}  // namespace

TEST_CASE("fused elementwise ops of a residual are one step in every spelling") {
  const auto chain = [](const std::function<Var(const Var&, const Var&, const Var&)>& record) {
    Tape tape(Mode::train);
    const Var x = tape.parameter("x", normal_array({4, 6}, 1)), w = tape.parameter("w", normal_array({6, 6}, 2));
    const Player player(tape, {record(x, einsum("ti,io->to", x, w), tape.parameter("b", normal_array({6}, 3)))});
    return player.plan().steps.size();
  };
  CHECK(chain([](const Var& x, const Var& y, const Var& b) { return x + dropout(y + b, 0.1); }) == 2);
  CHECK(chain([](const Var& x, const Var& y, const Var& b) { return dropout(b + y, 0.1) + x; }) == 2);
  CHECK(chain([](const Var& x, const Var& y, const Var& b) { return x + 0.5 * dropout(gelu(y + b), 0.1); }) == 2);
}

TEST_CASE("all spellings of attention are fused") {
  for (const Spelling& spelling : attentions()) check<double>(spelling), check<float>(spelling);
}
TEST_CASE("all spellings of gelu are fused") {
  for (const Spelling& spelling : gelus()) check<double>(spelling), check<float>(spelling);
}
TEST_CASE("all spellings of layer_norm and rms_norm are fused") {
  for (const Spelling& spelling : norms()) check<double>(spelling), check<float>(spelling);
}
TEST_CASE("all spellings of a projection with its loss are fused") {
  for (const Spelling& spelling : projections()) check<double>(spelling), check<float>(spelling);
}

TEST_CASE("every op with a rule has spellings") {
  std::set<std::string> spelled;
  for (const auto& spellings : {attentions(), gelus(), norms(), projections()})
    for (const Spelling& spelling : spellings) spelled.insert(spelling.op);
  for (const FusionRule& rule : builtin_ops().rules())
    CHECK_MESSAGE(spelled.count(rule.op->name) == 1, "no spelling of rule '" << rule.name << "' is in this file");
}

}  // namespace spellings
