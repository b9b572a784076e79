// The models with recurrences, and the Transformer that is a language model: predicting, searching and generating
// against the model played as a whole.
#include <set>

#include "hypotheses.hpp"
#include "recurrent_models.hpp"
#include "small_models.hpp"
#include "whole.hpp"
#include "xtape/predict.hpp"

using namespace xtape;
using test::language_models;
using test::translators;
using test::Variant;

namespace {
const std::vector<Tokens> source_rows = {{3, 12, 5, 9}, {6, 11}, {12, 3, 3, 10, 7, 7, 8}, {4, 4, 11}};

Model loaded(const Variant& variant) {
  Model model = test::load_variant(variant);
  model.set_player_options(64, {});
  return model;
}

SearchOptions options_for(std::int64_t beam) {
  SearchOptions options;
  options.beam_size = options.n_best = beam;
  options.length_penalty = LengthPenalty::wu;
  options.max_length = 8;
  options.ends = {5};
  return options;
}
}  // namespace

TEST_CASE("sequence models: in pieces as they are as a whole, whatever pads the sources") {
  for (const Variant& variant : test::translators_and_language_models()) {
    CAPTURE(variant.definition);
    Model model = loaded(variant);
    const bool translates = model.signature("logits").inputs.size() == 2;
    small::Rows padded, targets;
    for (std::size_t row = 0; row < source_rows.size(); ++row) {
      padded.emplace_back(source_rows[row].begin(), source_rows[row].end());
      padded.back().resize(8, 0);
      targets.emplace_back();
      for (std::size_t i = 0; i < 7; ++i) targets[row].push_back(static_cast<std::int64_t>(i * i + 7 * row) % 11);
    }
    PredictorOptions options;
    options.capacity = 2;  // grows twice
    Predictor predictor(model, "logits", options);
    const Array source = small::array_of(padded);
    predictor.begin(std::ssize(source_rows), translates ? NamedArrays{{"source", source}} : NamedArrays{});
    std::vector<std::vector<std::vector<double>>> whole;
    for (std::size_t row = 0; row < source_rows.size(); ++row)
      whole.push_back(
          small::all_logits(model, targets[row],
                            translates ? std::vector<std::int64_t>(source_rows[row].begin(), source_rows[row].end())
                                       : std::vector<std::int64_t>()));
    std::size_t read = 0;
    for (const std::size_t piece : {3, 1, 1, 2}) {
      small::Rows next;
      for (const auto& target : targets) {
        const auto begin = target.begin() + static_cast<std::ptrdiff_t>(read);
        next.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(piece));
      }
      const ArrayView result = predictor.step(small::array_of(next));
      for (std::size_t row = 0; row < source_rows.size(); ++row)
        for (std::size_t i = 0; i < piece; ++i)
          CHECK(small::difference(result, static_cast<std::int64_t>(row), static_cast<std::int64_t>(i),
                                  whole[row][read + i]) < 1e-12);
      read += piece;
    }
  }
}

TEST_CASE("sequence models: translations, cached or not, together or alone, scored as the model scores them") {
  std::set<Tokens> targets;
  for (const Variant& variant : translators)
    for (const std::int64_t beam : {1, 3}) {
      CAPTURE(variant.definition);
      CAPTURE(beam);
      Model model = loaded(variant);
      const SearchOptions options = options_for(beam);
      const auto found = search(model, source_rows, options);
      small::check_equal(whole::search(model, source_rows, options), found, 1e-11);
      SearchOptions alone = options;
      alone.batch_size = 1;
      small::check_equal(search(model, source_rows, alone), found, 1e-11);
      for (std::size_t i = 0; i < source_rows.size(); ++i)
        for (const Hypothesis& each : found[i]) {
          CHECK(std::abs(each.log_probability - small::scored(model, source_rows[i], each, options)) < 1e-11);
          targets.insert(each.tokens);
        }
    }
  CHECK(targets.size() > 20);  // the models and the sources matter
}

TEST_CASE("sequence models: generated text, cached or not, the most likely token or drawn") {
  for (const Variant& variant : language_models)
    for (const double temperature : {0., 1.}) {
      CAPTURE(variant.definition);
      Model model = loaded(variant);
      GenerateOptions options;
      options.tokens = 20;
      options.context = 16;
      options.sampling.temperature = temperature;
      const Tokens cached = generate(model, {3, 1, 4}, options);
      REQUIRE(cached.size() == 20);
      CHECK(whole::generate(model, {3, 1, 4}, options) == cached);
    }
}
