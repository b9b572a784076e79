// Spellings that mean the same, as lines of definitions: rules find each, whatever its dtype.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "fused.hpp"
#include "xtape/grad.hpp"
#include "xtape/model.hpp"
#include "xtape/ops.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
struct Spelling {
  const char* op;
  std::vector<std::pair<std::string, std::vector<std::size_t>>> inputs;
  std::vector<const char*> lines;  // the last one gives y
};

std::string quoted(const std::string& text) {
  return '"' + text + '"';
}

Model model_of(const Spelling& spelling, Dtype dtype) {
  std::string inputs, lines;
  for (const auto& [name, shape] : spelling.inputs) {
    std::string sizes;
    for (const std::size_t size : shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    inputs += (inputs.empty() ? "" : ", ") + quoted(name) + ": " + quoted("float [" + sizes + "]");
  }
  for (const char* line : spelling.lines) lines += (lines.empty() ? "" : ", ") + quoted(line);
  ModelOptions options;
  options.dtype = dtype;
  return Model::parse(R"({"xtape": 2, "name": "spelled", "model": {"functions": {"f": {"inputs": {)" + inputs +
                          R"(}, "do": [)" + lines + R"(], "result": {"y": "y"}}}}})",
                      options);
}

template <class T>
void check(const Spelling& spelling) {
  CAPTURE(std::string(spelling.lines.back()));
  const Model model = model_of(spelling, dtype_of<T>());
  Tape tape(Mode::train);
  NamedVars given;
  Vars inputs;
  for (const auto& [name, shape] : spelling.inputs) {
    const xt::xarray<T> values = normal_array(shape, static_cast<unsigned>(inputs.size() + 1));
    inputs.push_back(given.add(name, tape.parameter(name, values)));
  }
  const Var y = model.record(tape, "f", given)[0].value;
  Vars outputs{y};
  for (const Var& gradient : grad(sum(sin(y)), inputs, {.materialize_grads = true})) outputs.push_back(gradient);
  const bool beforehand = spelling.op == std::string("product_cross_entropy");  // one op gives value and gradients
  CHECK(fused(spelling.op, tape, outputs, std::is_same_v<T, float> ? 2e-4 : 1e-10) == Count{1, beforehand ? 0 : 1});
}

const std::vector<std::pair<std::string, std::vector<std::size_t>>> heads = {
    {"q", {2, 3, 5, 4}}, {"k", {2, 3, 5, 4}}, {"v", {2, 3, 5, 4}}};
const std::vector<std::pair<std::string, std::vector<std::size_t>>> rows = {{"x", {2, 3, 6}}, {"w", {6}}, {"b", {6}}};
const std::vector<std::pair<std::string, std::vector<std::size_t>>> weighted = {{"x", {2, 3, 6}}, {"w", {6}}};
const std::vector<std::pair<std::string, std::vector<std::size_t>>> alone = {{"x", {3, 7}}};
const std::vector<std::pair<std::string, std::vector<std::size_t>>> projected = {{"x", {1040, 3}}, {"w", {5500, 3}}};

const std::vector<Spelling> spellings = {
    {"attention", heads, {"p = softmax(matmul(q, transpose(k, axes=(0, 1, 3, 2))) / sqrt(4.0))", "y = matmul(p, v)"}},
    {"attention",
     heads,
     {"scores = einsum('bhqd,bhkd->bhqk', q, k) * 0.5", "hidden = tril(ones(shape=(5, 5))) == 0",
      "y = einsum('bhqk,bhkd->bqhd', softmax(masked_fill(scores, hidden, -inf)), v)"}},
    {"attention",
     heads,
     {"seen = tril(ones(shape=(5, 5))) != 0", "scores = matmul(q * 0.3, transpose(k, axes=(0, 1, 3, 2)))",
      "y = matmul(softmax(where(seen, scores, -inf)), v)"}},
    {"attention",
     heads,
     {"seen = tril(ones(shape=(5, 5))) != 0", "scores = matmul(q, transpose(k, axes=(0, 1, 3, 2)))",
      "y = matmul(dropout(softmax(masked_fill(scores, logical_not(seen), -inf) / 2), 0.1), v)"}},
    {"attention",
     heads,
     {"p = softmax(transpose(matmul(k, transpose(q, axes=(0, 1, 3, 2))), axes=(0, 1, 3, 2)) / 2)",
      "y = transpose(matmul(p, v), axes=(0, 2, 1, 3))"}},
    {"attention", heads, {"p = softmax(einsum('bhqd,bhkd->bhqk', q, k / 3))", "y = einsum('bhqk,bhkd->bhqd', p, v)"}},
    {"gelu", alone, {"y = 0.5 * x * (1 + tanh(sqrt(2 / 3.141592653589793) * (x + 0.044715 * x ** 3)))"}},
    {"gelu", alone, {"y = 0.5 * x * (1 + tanh(x * 0.7978845608028654 * (1 + 0.044715 * x * x)))"}},
    {"gelu", alone, {"y = x * (1 + tanh((x * x * x * 0.044715 + x) * 0.7978845608028654)) / 2"}},
    {"gelu", alone, {"y = x * 0.5 * (1 + erf(x / sqrt(2.0)))"}},
    {"gelu", alone, {"below = 0.5 * (1 + erf(x * 0.7071067811865476))", "y = x * below"}},
    {"layer_norm",
     rows,
     {"centred = x - mean(x, axis=(-1,), keepdims=true)", "spread = sqrt(var(x, axis=(-1,), keepdims=true) + 1e-5)",
      "y = w * centred / spread + b"}},
    {"layer_norm",
     rows,
     {"centred = x - mean(x, axis=(2,), keepdims=true)",
      "y = centred * rsqrt(mean(centred * centred, axis=(2,), keepdims=true) + 1e-5) * w + b"}},
    {"layer_norm",
     rows,
     {"centred = x - mean(x, axis=(-1,), keepdims=true)",
      "y = b + w * (centred / sqrt(1e-5 + mean(centred ** 2, axis=(-1,), keepdims=true)))"}},
    {"layer_norm",
     rows,
     {"s = x + 0.5 * tanh(x)", "rstd = (var(s, axis=(-1,), keepdims=true) + 1e-6) ** -0.5",
      "y = (s - mean(s, axis=(-1,), keepdims=true)) * rstd * w + b"}},
    {"rms_norm", weighted, {"y = w * (x * rsqrt(mean(x ** 2, axis=(-1,), keepdims=true) + 1e-6))"}},
    {"rms_norm", weighted, {"y = x / sqrt(mean(x * x, axis=(-1,), keepdims=true) + 1e-6) * w"}},
    {"rms_norm",
     weighted,
     {"scale = 1 / sqrt(1e-6 + mean(square(x), axis=(-1,), keepdims=true))", "y = scale * x * w"}},
    {"product_cross_entropy",
     projected,
     {"total, count = cross_entropy(einsum('td,vd->tv', x, w), mod(iota(shape=(1040,)) * 7919, 5500))",
      "y = total / cast(count, 'float')"}},
    {"product_cross_entropy",
     projected,
     {"total, count = cross_entropy(matmul(x, transpose(w)), mod(iota(shape=(1040,)) * 7919, 5500))",
      "y = (1 / cast(count, 'float')) * total"}},
};
}  // namespace

TEST_CASE("rules find 20 spellings in lines of definitions") {
  REQUIRE(spellings.size() == 20);
  for (const Spelling& spelling : spellings) check<double>(spelling), check<float>(spelling);
}
