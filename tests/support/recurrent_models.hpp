/// Small variants of the installed recurrent models, and of the Transformer language model.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "source_root.hpp"
#include "xtape/model.hpp"

namespace xtape::test {

struct Variant {
  std::string definition;  ///< The name of a definition in `models`.
  std::vector<std::pair<std::string, std::string>> hyper;
};

/// Variants with logits(source, tokens): 13 source tokens, 11 target tokens.
inline const std::vector<Variant> translators = {
    {"gru_attention", {}},
    {"gru_attention", {{"directions", "2"}, {"deep_output", "true"}}},
    {"gru_attention", {{"bridge", "true"}, {"teacher_forcing", "0.5"}}},
    {"gru_attention", {{"directions", "2"}, {"deep_output", "true"}, {"teacher_forcing", "0.25"}}},
    {"lstm_attention", {}},
    {"lstm_attention",
     {{"order", "'i_g_f_o'"}, {"recurrent_bias", "false"}, {"bias", "false"}, {"decoder_layers", "1"}}},
    {"gru_attention", {{"attention", "'dot'"}}},
    {"gru_attention", {{"directions", "2"}, {"attention", "'general'"}}},
};

/// Variants with logits(tokens): 11 tokens.
inline const std::vector<Variant> language_models = {
    {"transformer_lm", {}},
    {"transformer_lm", {{"activation", "gelu"}, {"positions", "concatenated"}, {"bias", "false"}}},
    {"lstm_lm", {}},
    {"lstm_lm", {{"order", "'i_g_f_o'"}, {"recurrent_bias", "false"}, {"forget_bias", "0.0"}}},
};

inline std::vector<Variant> translators_and_language_models() {
  std::vector<Variant> all = translators;
  all.insert(all.end(), language_models.begin(), language_models.end());
  return all;
}

/// Loads the variant. Its biases and norms are moved away from their initial values, so that each of them affects the
/// result.
inline Model load_variant(const Variant& variant, Dtype dtype = Dtype::float64) {
  ModelOptions options;
  options.dtype = dtype;
  options.seed = 3;
  if (variant.definition == "gru_attention")
    options.hyper = {{"source_vocab_size", "13"}, {"target_vocab_size", "11"}, {"embedding_dim", "5"}, {"units", "6"}};
  else if (variant.definition == "lstm_attention")
    options.hyper = {{"source_vocab_size", "13"}, {"target_vocab_size", "11"}, {"width", "8"}, {"heads", "2"}};
  else if (variant.definition == "transformer_lm")
    options.hyper = {{"vocab_size", "11"}, {"d_model", "8"}, {"heads", "2"}, {"d_ff", "12"}, {"layers", "2"}};
  else
    options.hyper = {{"vocab_size", "11"}, {"width", "6"}};
  options.hyper.insert(options.hyper.end(), variant.hyper.begin(), variant.hyper.end());
  options.hyper.emplace_back("std", "0.7");
  Model model = Model::load(source_root() + "/models/" + variant.definition + ".json", options);
  for (const Store::Entry& entry : model.weights()) {
    Array weight(entry.value);
    if (weight.shape().size() != 1) continue;
    for (std::int64_t i = 0; i < weight.count(); ++i) {
      const double change = 0.4 * std::sin(static_cast<double>(5 * i + std::ssize(entry.name)));
      if (dtype == Dtype::float64)
        weight.as<double>()[i] += change;
      else
        weight.as<float>()[i] += static_cast<float>(change);
    }
  }
  return model;
}

}  // namespace xtape::test
