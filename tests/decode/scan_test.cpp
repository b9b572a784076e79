// A model with recurrences, read piece by piece, is what it is as a whole.
#include <doctest/doctest.h>

#include "small_models.hpp"
#include "xtape/predict.hpp"

using namespace xtape;
using small::Rows;

namespace {
/// logits(source, tokens): an encoder in both directions, whose last state is what the decoder begins with. 0 pads.
const std::string definition = R"json({
  "xtape": 2,
  "name": "recurrent",
  "hyper": {"vocab_size": 11, "width": 6},
  "blocks": {
    "table": {
      "weights": {"weight": {"shape": ["vocab_size", "width"], "init": "normal", "std": 0.7}},
      "inputs": ["i"],
      "result": "take(weight, i, axis=0)"
    },
    "cell": {
      "weights": {
        "in": {"shape": ["width", "width"], "init": "normal", "std": 0.6},
        "across": {"shape": ["width", "width"], "init": "normal", "std": 0.6}
      },
      "inputs": ["x", "h", "c"],
      "do": [
        "z = matmul(x, in) + matmul(h, across)",
        "c = sigmoid(z) * c + (1 - sigmoid(z)) * tanh(x)",
        "h = tanh(c + z)"
      ],
      "result": "h + x, h, c"
    }
  },
  "model": {
    "modules": {
      "word": {"block": "table"},
      "here": {"block": "table"},
      "forward": {"block": "cell"},
      "backward": {"block": "cell"},
      "decoder": {"block": "cell", "repeat": 2},
      "out": {"block": "table"}
    },
    "functions": {
      "logits": {
        "inputs": {"source": "int [b, s]", "tokens": "int [b, t]"},
        "do": [
          "e = word(source)",
          "none_yet = zeros(shape=(b, width), dtype='float')",
          "a, h, c = scan(forward, e, init=(none_yet, none_yet), valid=source != 0)",
          "d, hd, cd = scan(backward, e, init=(none_yet, none_yet), valid=source != 0, reverse=true)",
          "x, s, m = scan(decoder[0], here(tokens), init=(h + hd, c + cd))",
          "x, s, m = scan(decoder[1], x + sum(a * d, axis=1, keepdims=true), init=(h, cd))"
        ],
        "result": "einsum('btd,vd->btv', x, out.weight)"
      }
    }
  }
})json";

const Rows sources = {{3, 4, 5, 0}, {7, 1, 0, 0}, {2, 9, 8, 6}};
const Rows tokens = {{1, 5, 2, 8, 3, 3, 9}, {1, 4, 4, 0, 10, 7, 2}, {1, 2, 3, 4, 5, 6, 7}};

std::vector<std::int64_t> first_of(const std::vector<std::int64_t>& row, std::size_t count) {
  return {row.begin(), row.begin() + static_cast<std::ptrdiff_t>(count)};
}

Predictor begun(const Model& model, const Rows& of) {
  PredictorOptions options;
  options.capacity = 3;  // grows on the way
  Predictor predictor(model, "logits", options);
  predictor.begin(static_cast<std::int64_t>(of.size()), {{"source", small::array_of(of)}});
  return predictor;
}
}  // namespace

TEST_CASE("states of scans go on from piece to piece") {
  Model model = small::made(definition);
  Predictor predictor = begun(model, sources);
  std::size_t read = 0;
  for (const std::size_t piece : {2, 1, 1, 3}) {
    Rows next;
    for (const auto& row : tokens)
      next.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(read),
                        row.begin() + static_cast<std::ptrdiff_t>(read + piece));
    const ArrayView result = predictor.step(small::array_of(next));
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t i = 0; i < piece; ++i)
        CHECK(small::difference(result, static_cast<std::int64_t>(row), static_cast<std::int64_t>(i),
                                small::last_logits(model, first_of(tokens[row], read + i + 1), sources[row])) < 1e-12);
    read += piece;
  }
}

TEST_CASE("states of scans: rows of different lengths, padded on the right, and rows that change places") {
  Model model = small::made(definition);
  Predictor predictor = begun(model, sources);
  const std::vector<std::int64_t> lengths = {4, 1, 2};
  Rows prompts;
  for (const auto& row : tokens) prompts.push_back(first_of(row, 4));
  predictor.step(small::array_of(prompts), lengths);
  predictor.select({2, 2, 0});
  const ArrayView result = predictor.step(small::array_of({{9}, {5}, {6}}));
  const std::vector<std::size_t> from = {2, 2, 0};
  const std::vector<std::int64_t> said = {9, 5, 6};
  for (std::size_t row = 0; row < 3; ++row) {
    std::vector<std::int64_t> whole = first_of(tokens[from[row]], static_cast<std::size_t>(lengths[from[row]]));
    whole.push_back(said[row]);
    CHECK(small::difference(result, static_cast<std::int64_t>(row), 0,
                            small::last_logits(model, whole, sources[from[row]])) < 1e-12);
  }
}

TEST_CASE("a scan in reverse over what comes piece by piece is refused") {
  std::string reversed = definition;
  const std::string init = "init=(h, cd))";
  reversed.replace(reversed.find(init), init.size(), "init=(h, cd), reverse=true)");
  Model model = small::made(reversed);
  CHECK_THROWS_AS(begun(model, sources).step(small::array_of({{1}, {1}, {1}})), DefinitionError);
}
