// Misuse of predictors, sampling, generation and search.
#include "misuse.hpp"

using namespace xtape;

namespace misuse::decoding {
namespace {
const std::string translating = R"json({
  "xtape": 2, "name": "pairs",
  "model": {
    "weights": {"w": {"shape": [7, 7], "init": "normal"}},
    "functions": {
      "logits": {"inputs": {"source": "int [b, s]", "tokens": "int [b, t]"},
                 "result": "take(w, tokens, axis=0) + sum(take(w, source, axis=0), axis=1, keepdims=true)"}
    }
  }
})json";

struct World {
  Model model = Model::parse(small_model), pairs = Model::parse(translating);
  CharacterTokenizer tokenizer{std::string("abcdefg")};
  Array tokens{Dtype::int64, {2, 3}}, three{Dtype::float32, {3}};
  ArrayView null_tokens{nullptr, Dtype::int64, Layout::dense({2, 3})};

  Predictor begun() const {
    Predictor predictor(model);
    predictor.begin(2);
    return predictor;
  }
};

std::vector<Row> rows_of_decoding(World& w) {
  const auto moved = [&w] {
    auto predictor = std::make_shared<Predictor>(w.begun());
    const Predictor taken(std::move(*predictor));
    return predictor;
  };
  const auto stream = [&w] {
    auto made = std::make_shared<TextStream>(w.tokenizer, 0);
    const TextStream taken(std::move(*made));
    return made;
  };
  const auto generated = [&w](const std::function<void(GenerateOptions&)>& change, Tokens prompt = {1}) {
    return [&w, change, prompt] {
      GenerateOptions options;
      options.tokens = 2;
      change(options);
      generate(w.model, prompt, options);
    };
  };
  const auto searched = [&w](const std::function<void(SearchOptions&)>& change,
                             std::vector<Tokens> sources = {{1, 2}}) {
    return [&w, change, sources] {
      SearchOptions options;
      options.max_length = 3;
      change(options);
      search(w.pairs, sources, options);
    };
  };
  const auto constructed = [&w](const PredictorOptions& options) {
    return [&w, options] { Predictor(w.model, "logits", options).begin(1); };
  };
  return {
      {"Predictor::Predictor", "unknown", "no function 'f'", [&w] { Predictor(w.model, "f"); }},
      {"Predictor::Predictor", "nothing stepped", "no input 'x'", constructed(with(&PredictorOptions::stepped, "x"))},
      {"Predictor::Predictor", "no capacity", "the capacity of caches must be at least 1",
       constructed(with(&PredictorOptions::capacity, 0))},
      {"Predictor::Predictor", "no players", "at least one player", constructed(with(&PredictorOptions::players, 0))},
      {"Predictor::Predictor", "a negative limit", "the limit of positions",
       constructed(with(&PredictorOptions::limit, -1))},
      {"Predictor::begin", "moved", gone, [=] { moved()->begin(1); }},
      {"Predictor::begin", "no rows", "at least one row", [&w] { w.begun().begin(0); }},
      {"Predictor::begin", "too many rows", "at most", [&w] { w.begun().begin(INT64_MAX); }},
      {"Predictor::begin", "too many repeats", "at most", [&w] { w.begun().begin(INT64_MAX / 2, {}, 4); }},
      {"Predictor::begin", "fixed inputs", "1 arrays",
       [&w] {
         w.begun().begin(1, {{"source", w.tokens}});
       }},
      {"Predictor::begin", "null", "a view without memory",
       [&w] {
         Predictor(w.pairs).begin(2, {{"source", w.null_tokens}});
       }},
      {"Predictor::begin", "other rows", "",
       [&w] {
         CHECK_THROWS_AS(Predictor(w.pairs).begin(5, {{"source", w.tokens}}), Error);
       }},
      {"Predictor::reserve", "moved", gone, [=] { moved()->reserve(1); }},
      {"Predictor::reserve", "before a batch", "call begin first", [&w] { Predictor(w.model).reserve(1); }},
      {"Predictor::reserve", "too many", "", [&w] { CHECK_THROWS_AS(w.begun().reserve(INT64_MAX), Error); }},
      {"Predictor::reserve", "negative", "", [&w] { w.begun().reserve(-5); }},
      {"Predictor::step", "moved", gone, [=, &w] { moved()->step(w.tokens); }},
      {"Predictor::step", "before a batch", "call begin first", [&w] { Predictor(w.model).step(w.tokens); }},
      {"Predictor::step", "another type", "must be int64 [2, t]", [&w] { w.begun().step(w.three); }},
      {"Predictor::step", "null", "a view without memory", [&w] { w.begun().step(w.null_tokens); }},
      {"Predictor::step", "empty", "must be int64 [2, t]", [&w] { w.begun().step(ArrayView()); }},
      {"Predictor::step", "wrong counts", "counts must have one number", [&w] { w.begun().step(w.tokens, {1}); }},
      {"Predictor::step", "counts out of range", "cannot read 4 of 3 tokens",
       [&w] {
         w.begun().step(w.tokens, {1, 4});
       }},
      {"Predictor::read", "moved", gone, [=, &w] { moved()->read(w.tokens); }},
      {"Predictor::read", "before a batch", "call begin first", [&w] { Predictor(w.model).read(w.tokens); }},
      {"Predictor::read", "another type", "must be int64 [2, t]", [&w] { w.begun().read(w.three); }},
      {"Predictor::read", "null", "a view without memory", [&w] { w.begun().read(w.null_tokens); }},
      {"Predictor::read", "empty", "must be int64 [2, t]", [&w] { w.begun().read(ArrayView()); }},
      {"Predictor::read", "wrong counts", "counts must have one number", [&w] { w.begun().read(w.tokens, {1}); }},
      {"Predictor::read", "counts out of range", "cannot read 4 of 3 tokens",
       [&w] {
         w.begun().read(w.tokens, {1, 4});
       }},
      {"Predictor::select", "moved", gone, [=] { moved()->select({0}); }},
      {"Predictor::select", "no rows", "at least one row", [&w] { w.begun().select({}); }},
      {"Predictor::select", "out of range", "row 2 cannot be selected",
       [&w] {
         w.begun().select({0, 2});
       }},
      {"Predictor::select", "negative", "row -1 cannot be selected", [&w] { w.begun().select({-1}); }},
      {"Predictor::rows", "moved", gone, [=] { static_cast<void>(moved()->rows()); }},
      {"Predictor::past", "moved", gone, [=] { static_cast<void>(moved()->past()); }},
      {"Predictor::capacity", "moved", gone, [=] { static_cast<void>(moved()->capacity()); }},
      {"Predictor::planned", "moved", gone, [=] { static_cast<void>(moved()->planned()); }},
      {"Predictor::threads", "moved", gone, [=] { static_cast<void>(moved()->threads()); }},
      {"sample", "no logits", "no logit is finite", [] { sample({}, {}, 0); }},
      {"sample", "NaN", "NaN or infinity",
       [] {
         sample({0, NAN}, {}, 0);
       }},
      {"sample", "a negative temperature", "the temperature must be",
       [] {
         sample({0, 1}, {.temperature = -1}, 0);
       }},
      {"sample", "no share", "top_p must be",
       [] {
         sample({0, 1}, {.top_p = NAN}, 0);
       }},
      {"published_sampling", "no such folder", "", [] { CHECK(published_sampling("/nowhere").top_k == 0); }},
      {"sampling_probabilities", "no logits", "no logit is finite", [] { sampling_probabilities({}, {}); }},
      {"sampling_probabilities", "a negative top_k", "top_k must be",
       [] { sampling_probabilities({1}, {.top_k = -1}); }},
      {"generate", "no prompt", "a prompt without tokens", generated([](auto&) {}, {})},
      {"generate", "out of the vocabulary", "take: index 9", generated([](auto&) {}, {9})},
      {"generate", "no context", "the context must be", generated([](GenerateOptions& o) { o.context = 0; })},
      {"generate", "a huge context", "", generated([](GenerateOptions& o) { o.context = INT64_MAX; })},
      {"generate", "a negative number of tokens", "", generated([](GenerateOptions& o) { o.tokens = -1; })},
      {"generate", "no batch", "a batch has at least one row", generated([](GenerateOptions& o) { o.batch_size = 0; })},
      {"generate", "moved", gone, [=] { generate(*moved(), {1}, with(&GenerateOptions::tokens, 1)); }},
      {"generate", "no logits", "must give [rows, tokens",
       [&w] {
         Predictor p(w.model, "flat");
         generate(p, {1}, {});
       }},
      {"generate_batch", "no prompts", "", [&w] { CHECK(generate_batch(w.model, {}, {}).empty()); }},
      {"generate_batch", "no samples", "at least one continuation",
       [&w] { generate_batch(w.model, {{1}}, with(&GenerateOptions::samples, 0)); }},
      {"generate_batch", "too many samples", "at most",
       [&w] { generate_batch(w.model, {{1}}, with(&GenerateOptions::samples, INT64_MAX)); }},
      {"TextStream::TextStream", "an empty stop", "must not be empty", [&w] { TextStream(w.tokenizer, 0, {""}); }},
      {"TextStream::TextStream", "out of the vocabulary", "outside the vocabulary",
       [&w] { TextStream(w.tokenizer, -1); }},
      {"TextStream::add", "out of the vocabulary", "outside the vocabulary",
       [&w] { TextStream(w.tokenizer, 0).add(7); }},
      {"TextStream::add", "moved", gone, [=] { stream()->add(0); }},
      {"TextStream::finish", "moved", gone, [=] { stream()->finish(); }},
      {"TextStream::stopped", "moved", gone, [=] { static_cast<void>(stream()->stopped()); }},
      {"length_penalty_named", "unknown", "wu", [] { length_penalty_named("no"); }},
      {"penalty_of", "negative", "", [] { penalty_of(LengthPenalty::wu, 0.6, -1); }},
      {"search", "no sources", "", searched([](auto&) {}, {})},
      {"search", "an empty source", "has no tokens", searched([](auto&) {}, {{}})},
      {"search", "no beam", "beam_size must be at least 1", searched([](SearchOptions& o) { o.beam_size = 0; })},
      {"search", "a huge beam", "at most", searched([](SearchOptions& o) { o.beam_size = INT64_MAX; })},
      {"search", "a huge length", "", searched([](SearchOptions& o) {
         o.max_length = INT64_MAX;
         o.length_extra = 2;
       })},
      {"search", "no length", "max_length must be", searched([](SearchOptions& o) { o.max_length = -1; })},
      {"search", "too many results", "n_best must be at most", searched([](SearchOptions& o) { o.n_best = 2; })},
      {"search", "no alpha", "alpha must be finite", searched([](SearchOptions& o) { o.alpha = NAN; })},
      {"search", "no factor", "length_factor must be", searched([](SearchOptions& o) { o.length_factor = NAN; })},
      {"search", "a huge factor", "", searched([](SearchOptions& o) { o.length_factor = 1e300; })},
      {"search", "a start out of the vocabulary", "take: index 99", searched([](SearchOptions& o) { o.start = 99; })},
      {"search", "an end out of the vocabulary", "", searched([](SearchOptions& o) {
         o.ends = {99, -1};
       })},
      {"search", "a negative pad", "take: index -9", searched([](SearchOptions& o) { o.pad = -9; })},
      {"search", "no source", "", [&w] { CHECK_THROWS_AS(search(w.model, {{1}}, {}), Error); }},
      {"Searcher::search", "moved", gone,
       [&w] {
         Searcher s(w.pairs);
         const Searcher t(std::move(s));
         s.search({{1}}, {});
       }},
  };
}
}  // namespace

TEST_CASE("misuse of generation is an Error, or works as the table says") {
  check_rows<World>(rows_of_decoding);
}

TEST_CASE("the table has every function of generation that can be misused") {
  check_complete<World>(rows_of_decoding, {"predict.hpp", "decode.hpp"}, {"name_of"}, 20);
}
}  // namespace misuse::decoding
