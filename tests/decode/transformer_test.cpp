// models/transformer.json, small: searching and predicting against the model played as a whole.
#include <algorithm>
#include <cmath>
#include <set>

#include "hypotheses.hpp"
#include "small_models.hpp"
#include "source_root.hpp"
#include "whole.hpp"
#include "xtape/predict.hpp"

using namespace xtape;
using small::Settings;

namespace {
const std::vector<Settings> variants = {
    {},  // post_norm, sinusoidal positions, shared embeddings, tied output
    {{"norm_first", "true"}, {"shared_embeddings", "false"}, {"tied_output", "false"}, {"target_vocab_size", "29"}},
    {{"attention", "single_head"}, {"positions", "concatenated"}, {"tied_output", "false"}, {"output_bias", "true"}},
    {{"positions", "learned"}, {"max_positions", "24"}, {"norm_first", "true"}, {"tied_output", "false"}},
    {{"skip_first_self_attention", "true"}, {"shared_embeddings", "false"}, {"tied_output", "false"}},
};

Model transformer(const Settings& variant, Dtype dtype) {
  ModelOptions options;
  options.dtype = dtype;
  options.seed = 5;
  options.hyper = {{"d_model", "16"},       {"d_ff", "24"},          {"heads", "2"},
                   {"encoder_layers", "2"}, {"decoder_layers", "2"}, {"source_vocab_size", "23"}};
  options.hyper.insert(options.hyper.end(), variant.begin(), variant.end());
  Model model = Model::load(source_root() + "/models/transformer.json", options);
  // Biases and norms away from their start, so that each of them shows; matrices larger, so that sources matter.
  for (const Store::Entry& entry : model.weights()) {
    Array weight(entry.value);
    const bool is_vector = weight.shape().size() == 1;
    for (std::int64_t i = 0; i < weight.count(); ++i) {
      const double change = is_vector ? 0.4 * std::sin(static_cast<double>(5 * i + std::ssize(entry.name))) : 0;
      const double scale = is_vector ? 1 : 2;
      if (dtype == Dtype::float64)
        weight.as<double>()[i] = scale * weight.as<double>()[i] + change;
      else
        weight.as<float>()[i] = static_cast<float>(scale * weight.as<float>()[i] + change);
    }
  }
  model.set_player_options(64, {});
  return model;
}

/// Cached and whole differ by rounding alone.
double rounding(Dtype dtype) {
  return dtype == Dtype::float64 ? 1e-12 : 3e-5;
}

const std::vector<Tokens> sentences = {{3, 14, 5, 22, 9}, {6, 17}, {12, 3, 3, 20, 7, 7, 8}, {19, 4, 11, 5, 16, 4}};

/// Calls `check` with every variant in both widths.
template <class Check>
void for_each_model(const Check& check) {
  for (std::size_t i = 0; i < variants.size(); ++i)
    for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
      CAPTURE(i);
      CAPTURE(std::string(name_of(dtype)));
      Model model = transformer(variants[i], dtype);
      check(model, rounding(dtype));
    }
}

SearchOptions search_options(std::int64_t beam) {
  SearchOptions options;
  options.beam_size = options.n_best = beam;
  options.length_penalty = LengthPenalty::wu;
  options.max_length = 10;
  options.ends = {20};  // a token that these models like
  return options;
}
}  // namespace

TEST_CASE("a Transformer token by token is the Transformer as a whole, whatever pads its sources") {
  for_each_model([](Model& model, double tolerance) {
    small::Rows padded;
    small::Rows targets;
    for (std::size_t row = 0; row < sentences.size(); ++row) {
      padded.emplace_back(sentences[row].begin(), sentences[row].end());
      padded.back().resize(7, 0);
      targets.emplace_back();
      for (std::size_t i = 0; i < 9; ++i) targets[row].push_back(1 + static_cast<std::int64_t>(i * i + 7 * row) % 22);
    }
    PredictorOptions options;
    options.capacity = 4;  // grows twice
    Predictor predictor(model, "logits", options);
    predictor.begin(static_cast<std::int64_t>(sentences.size()), {{"source", small::array_of(padded)}});
    std::vector<std::vector<std::vector<double>>> whole;
    for (std::size_t row = 0; row < sentences.size(); ++row)
      whole.push_back(small::all_logits(model, targets[row], {sentences[row].begin(), sentences[row].end()}));
    for (std::size_t i = 0; i < 9; ++i) {
      small::Rows next;
      for (const auto& target : targets) next.push_back({target[i]});
      const ArrayView result = predictor.step(small::array_of(next));
      for (std::size_t row = 0; row < sentences.size(); ++row)
        CHECK(small::difference(result, static_cast<std::int64_t>(row), 0, whole[row][i]) < tolerance);
    }
  });
}

TEST_CASE("a Transformer's translations: cached or not, together or alone, scored as the model scores them") {
  for_each_model([](Model& model, double tolerance) {
    const SearchOptions options = search_options(3);
    const auto found = search(model, sentences, options);
    small::check_equal(whole::search(model, sentences, options), found, 10 * tolerance);
    SearchOptions alone = options;
    alone.batch_size = 1;
    small::check_equal(search(model, sentences, alone), found, 10 * tolerance);
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      REQUIRE(found[i].size() == 3);
      for (std::size_t k = 0; k < 3; ++k) {
        const Hypothesis& each = found[i][k];
        CHECK(std::abs(each.log_probability - small::scored(model, sentences[i], each, options)) < 10 * tolerance);
        const auto length = static_cast<double>(each.tokens.size()) + (each.finished ? 1 : 0);
        CHECK(each.score == doctest::Approx(each.log_probability / std::pow((5 + length) / 6, options.alpha)));
        if (k == 0) continue;
        const Hypothesis& above = found[i][k - 1];
        CHECK(above.tokens != each.tokens);
        CHECK((above.finished && !each.finished) + (above.finished == each.finished && above.score >= each.score) == 1);
      }
    }
  });
}

TEST_CASE("a Transformer's beam of one is the most likely token after another") {
  std::set<Tokens> targets;
  int ends = 0;
  for_each_model([&](Model& model, double) {
    const SearchOptions options = search_options(1);
    const auto found = search(model, sentences, options);
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      // Played with places to come, which no place looks at.
      std::vector<std::int64_t> tokens(10, options.pad);
      tokens[0] = options.start;
      Tokens target;
      bool finished = false;
      for (std::size_t place = 0; place < 10 && !finished; ++place) {
        auto next = small::all_logits(model, tokens, {sentences[i].begin(), sentences[i].end()})[place];
        next[static_cast<std::size_t>(options.pad)] = next[static_cast<std::size_t>(options.start)] = -1e300;
        const auto best = static_cast<std::int32_t>(std::max_element(next.begin(), next.end()) - next.begin());
        finished = best == options.ends[0];
        if (!finished) target.push_back(best);
        if (place + 1 < 10) tokens[place + 1] = best;
      }
      CHECK(found[i][0].tokens == target);
      CHECK(found[i][0].finished == finished);
      targets.insert(target);
      ends += finished ? 1 : 0;
    }
  });
  CHECK(targets.size() > 8);  // the models and the sources matter
  CHECK(ends > 2);
}

TEST_CASE("a Transformer's batches of known sizes are not planned for") {
  Model model = transformer(variants[0], Dtype::float32);
  Predictor predictor(model);
  const SearchOptions options = search_options(3);
  const auto first = search(predictor, sentences, options);
  const std::int64_t planned = predictor.planned();
  small::check_equal(search(predictor, sentences, options), first, 1e-300);
  CHECK(predictor.planned() == planned);
}

TEST_CASE("a beam search with caches in Q8_0 finds what it finds with caches of floats") {
  Model model = transformer({{"d_model", "64"}}, Dtype::float32);
  SearchOptions options;
  options.beam_size = 3;
  options.n_best = 2;
  options.max_length = 12;
  const auto wanted = search(model, sentences, options);
  PlayerOptions playing = model.player_options();
  playing.caches = Dtype::q8_0;
  model.set_player_options(64, playing);
  const auto found = search(model, sentences, options);
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    CHECK(found[i][0].tokens == wanted[i][0].tokens);
    CHECK(found[i][0].log_probability != wanted[i][0].log_probability);
    CHECK(std::abs(found[i][0].log_probability / wanted[i][0].log_probability - 1) < 0.05);
  }
}
