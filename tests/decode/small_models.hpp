/// Models that are recorded in a blink: one that reads tokens, and one that reads a source, too.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace small {

inline const std::string blocks = R"json({
    "table": {
      "hyper": {"rows": null, "std": 0.7},
      "weights": {"weight": {"shape": ["rows", "width"], "init": "normal", "std": "std"}},
      "inputs": ["i"],
      "result": "take(weight, i, axis=0)"
    },
    "attention": {
      "weights": {
        "query": {"shape": ["width", "width"], "init": "normal", "std": 0.5},
        "key": {"shape": ["width", "width"], "init": "normal", "std": 0.5},
        "value": {"shape": ["width", "width"], "init": "normal", "std": 0.5}
      },
      "inputs": ["x", "seen", "hidden"],
      "do": [
        "q = rearrange(matmul(x, query), 'b t (h e) -> b t h e', h=2)",
        "k = cache(rearrange(matmul(seen, key), 'b t (h e) -> b t h e', h=2))",
        "v = cache(rearrange(matmul(seen, value), 'b t (h e) -> b h t e', h=2), axis=2)",
        "scores = einsum('bqhe,bkhe->bhqk', q, k) / sqrt(width / 2)",
        "heads = einsum('bhqk,bhke->bqhe', softmax(masked_fill(scores, hidden, -inf)), v)"
      ],
      "result": "x + rearrange(heads, 'b t h e -> b t (h e)')"
    }
  })json";

/// logits(tokens): two layers that look back.
inline const std::string decoder = R"json({
  "xtape": 2,
  "name": "decoder",
  "hyper": {"vocab_size": 13, "width": 8, "places": 64},
  "blocks": )json" + blocks + R"json(,
  "model": {
    "modules": {
      "here": {"block": "table", "rows": "vocab_size"},
      "place": {"block": "table", "rows": "places"},
      "layers": {"block": "attention", "repeat": 2},
      "out": {"block": "table", "rows": "vocab_size"}
    },
    "functions": {
      "logits": {
        "inputs": {"tokens": "int [b, t]"},
        "do": [
          "x = here(tokens) + place(positions(tokens))",
          "x = layers(x, x, causal_mask(tokens))"
        ],
        "result": "einsum('btd,vd->btv', x, out.weight)"
      }
    }
  }
})json";

/// logits(source, tokens), where 0 pads sources.
inline const std::string translator = R"json({
  "xtape": 2,
  "name": "translator",
  "hyper": {"vocab_size": 7, "width": 8, "places": 64, "sharpness": 1.0},
  "blocks": )json" + blocks + R"json(,
  "model": {
    "modules": {
      "word": {"block": "table", "rows": "vocab_size"},
      "here": {"block": "table", "rows": "vocab_size"},
      "place": {"block": "table", "rows": "places", "std": 0.3},
      "encoder": {"block": "attention"},
      "looks_back": {"block": "attention"},
      "looks_over": {"block": "attention"},
      "out": {"block": "table", "rows": "vocab_size"}
    },
    "functions": {
      "logits": {
        "inputs": {"source": "int [b, s]", "tokens": "int [b, t]"},
        "do": [
          "padding = (source == 0)[:, none, none]",
          "e = word(source) + place(positions(source))",
          "memory = encoder(e, e, padding)",
          "x = here(tokens) + place(positions(tokens))",
          "x = looks_back(x, x, causal_mask(tokens))",
          "x = looks_over(x, memory, padding)"
        ],
        "result": "einsum('btd,vd->btv', sharpness * x, out.weight)"
      }
    }
  }
})json";

using Settings = std::vector<std::pair<std::string, std::string>>;

inline xtape::Model made(const std::string& definition, const Settings& hyper = {},
                         xtape::Dtype dtype = xtape::Dtype::float64, std::uint64_t seed = 3) {
  xtape::ModelOptions options;
  options.hyper = hyper;
  options.dtype = dtype;
  options.seed = seed;
  xtape::Model model = xtape::Model::parse(definition, options, "small.json");
  model.set_player_options(256, {});  // wholes of many lengths are played again and again
  return model;
}

using Rows = std::vector<std::vector<std::int64_t>>;  ///< Of one length.

inline xtape::Array array_of(const Rows& rows) {
  const auto columns = static_cast<std::int64_t>(rows.at(0).size());
  xtape::Array array(xtape::Dtype::int64, {static_cast<std::int64_t>(rows.size()), columns});
  std::int64_t* to = array.as<std::int64_t>();
  for (const auto& row : rows)
    for (const std::int64_t token : row) *to++ = token;
  return array;
}

/// The logits after each of one row's tokens, played as a whole in mode eval.
inline std::vector<std::vector<double>> all_logits(xtape::Model& model, const std::vector<std::int64_t>& tokens,
                                                   const std::vector<std::int64_t>& source = {}) {
  xtape::NamedSizes sizes = {{"b", 1}, {"t", static_cast<std::int64_t>(tokens.size())}};
  if (!source.empty()) sizes.add("s", static_cast<std::int64_t>(source.size()));
  const auto function = model.player("logits", xtape::Mode::eval, sizes);
  const xtape::Array given = array_of({tokens});
  const xtape::Array read = array_of({source});
  std::vector<xtape::Feed> feeds = {{function->inputs.at("tokens"), given}};
  if (!source.empty()) feeds.emplace_back(function->inputs.at("source"), read);
  function->player.play(feeds);
  const xtape::ArrayView view = function->player.view(function->results[0].value);
  const std::int64_t classes = view.shape()[2];
  std::vector<std::vector<double>> logits(tokens.size());
  for (std::int64_t i = 0; i < xtape::count_of(view.shape()); ++i)
    logits[static_cast<std::size_t>(i / classes)].push_back(
        view.dtype() == xtape::Dtype::float64 ? view.as<double>()[i] : view.as<float>()[i]);
  return logits;
}

inline std::vector<double> last_logits(xtape::Model& model, const std::vector<std::int64_t>& tokens,
                                       const std::vector<std::int64_t>& source = {}) {
  return all_logits(model, tokens, source).back();
}

/// The greatest difference between `logits` and place (row, column) of a step's result.
inline double difference(const xtape::ArrayView& result, std::int64_t row, std::int64_t column,
                         const std::vector<double>& logits) {
  const std::int64_t first = (row * result.shape()[1] + column) * result.shape()[2];
  double most = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    const double value = result.dtype() == xtape::Dtype::float64 ? result.as<double>()[at] : result.as<float>()[at];
    most = std::max(most, std::abs(value - logits[i]));
  }
  return most;
}

}  // namespace small
