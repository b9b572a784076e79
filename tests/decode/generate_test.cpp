#include <doctest/doctest.h>

#include "allocations.hpp"
#include "needs.hpp"
#include "same_bits.hpp"
#include "small_models.hpp"
#include "whole.hpp"
#include "xtape/decode.hpp"
#include "xtape/train.hpp"

using namespace xtape;

namespace {
std::string with(std::string text, const std::string& old, const std::string& fresh) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), fresh);
}
}  // namespace

TEST_CASE("generation is the same with caches and without, whatever the context") {
  Model model = small::made(small::decoder);
  GenerateOptions options;
  options.tokens = 40;  // passes several lengths
  options.sampling.seed = 2;
  const Tokens prompt = {3, 1, 4};
  for (const std::int64_t context : {1, 2, 7, 20, 64}) {
    CAPTURE(context);
    options.context = context;
    const Tokens cached = generate(model, prompt, options);
    REQUIRE(cached.size() == 40);
    CHECK(whole::generate(model, prompt, options) == cached);
  }
  const Tokens whole = generate(model, prompt, options);
  options.tokens = 25;
  const Tokens part = generate(model, prompt, options);
  CHECK(std::equal(part.begin(), part.end(), whole.begin()));
  options.sampling.seed = 3;
  CHECK(generate(model, prompt, options) != part);
}

TEST_CASE("a prompt longer than a piece, or than the context, is read in pieces") {
  Model model = small::made(small::decoder, {{"places", "400"}});
  GenerateOptions options;
  options.tokens = 5;
  options.context = 400;
  Tokens prompt;
  for (std::int32_t i = 0; i < 300; ++i) prompt.push_back((i * i + 2) % 13);
  const Tokens cached = generate(model, prompt, options);
  CHECK(whole::generate(model, prompt, options) == cached);
  options.context = 150;
  const Tokens cut = generate(model, prompt, options);
  CHECK(whole::generate(model, prompt, options) == cut);
  CHECK(generate(model, Tokens(prompt.end() - 150, prompt.end()), options) == cut);
}

TEST_CASE("what a predictor reads without a result is what a step reads, bit for bit") {
  const std::string no_states = with(with(small::decoder, "layers(x, x, causal_mask(tokens))", "2 * x"),
                                     R"("layers": {"block": "attention", "repeat": 2},)", "");
  for (const std::string& definition : {small::decoder, no_states}) {
    const Model model = small::made(definition, {}, Dtype::float32);
    Predictor reads(model), steps(model);
    reads.begin(2);
    steps.begin(2);
    for (const small::Rows& piece : {small::Rows{{3, 1, 4, 1, 5}, {2, 7, 1, 0, 0}}, small::Rows{{9, 2}, {8, 1}}}) {
      const bool padded = piece[0].size() == 5;
      const std::vector<std::int64_t> counts = padded ? std::vector<std::int64_t>{5, 3} : std::vector<std::int64_t>{};
      reads.read(small::array_of(piece), counts);
      steps.step(small::array_of(piece), counts);
      CHECK(reads.past() == steps.past());
    }
    CHECK(same_bits(reads.step(small::array_of({{6}, {5}})), steps.step(small::array_of({{6}, {5}}))));
    CHECK_THROWS_AS(reads.read(small::array_of({{6}})), ShapeError);
    CHECK_THROWS_WITH_AS(reads.read(small::array_of({{6}, {5}}), {1, 2}), "row 1 cannot read 2 of 1 tokens", Error);
  }
}

TEST_CASE("pieces of a prompt in which no row ends compute no logits") {
  // only the logits need `few`, which has no row for token 12
  const std::string definition = with(with(small::decoder, "'btd,vd->btv', x,", "'btd,vd->btv', x + few(tokens),"),
                                      R"("here": {)", R"("few": {"block": "table", "rows": "12"}, "here": {)");
  Model model = small::made(definition, {{"places", "400"}});
  GenerateOptions options;
  options.tokens = 1;
  options.context = 400;
  Tokens prompt(300, 1);
  prompt[255] = 12;
  CHECK(generate_batch(model, {prompt, Tokens(299, 2)}, options).size() == 2);
  CHECK(generate(model, prompt, options).size() == 1);
  CHECK_THROWS_AS(generate_batch(model, {prompt, Tokens(200, 2)}, options), Error);
  prompt[256] = 12;
  CHECK_THROWS_AS(generate(model, prompt, options), Error);
}

TEST_CASE("a predictor's players serve the next generation") {
  Model model = small::made(small::decoder);
  Predictor predictor(model);
  GenerateOptions options;
  options.tokens = 30;
  options.context = 20;
  const Tokens first = generate(predictor, {3, 1, 4}, options);
  CHECK(first == generate(model, {3, 1, 4}, options));
  const std::int64_t planned = predictor.planned();
  CHECK(planned <= 3);
  CHECK(generate(predictor, {3, 1, 4}, options) == first);
  CHECK(predictor.planned() == planned);
}

TEST_CASE("a generated token allocates nothing, neither greedy nor drawn" * needs_no_sanitizer()) {
  Model model = small::made(small::decoder, {{"width", "64"}, {"vocab_size", "40"}});
  for (const Sampling& sampling :
       std::vector<Sampling>{{.temperature = 0}, {.temperature = 1}, {.top_k = 3}, {.top_p = 0.8}}) {
    GenerateOptions options;
    options.tokens = 25;
    options.context = 32;
    options.sampling = sampling;
    std::int64_t at_first = 0, at_last = 0;
    int told = 0;
    options.each = [&](std::int32_t) {
      ++told;
      if (told == 5) at_first = allocations();
      if (told == 25) at_last = allocations();
      return false;
    };
    generate(model, {3, 1, 4}, options);
    CHECK(told == 25);
    CHECK(at_last == at_first);
  }
}

TEST_CASE("generation ends at each of the end tokens and where the caller says") {
  Model model = small::made(small::decoder);
  GenerateOptions options;
  options.tokens = 30;
  const Tokens whole = generate(model, {3}, options);
  const auto first_of = [&](const Tokens& ends) {
    return std::find_first_of(whole.begin(), whole.end(), ends.begin(), ends.end()) - whole.begin();
  };
  for (const Tokens& ends : {Tokens{whole[4]}, Tokens{99, whole[4]}, Tokens{whole[4], whole[2], whole[6]}}) {
    options.end_tokens = ends;
    const Tokens ended = generate(model, {3}, options);
    CHECK(ended == Tokens(whole.begin(), whole.begin() + first_of(ends) + 1));
    CHECK(ended.size() <= 5);
  }
  options.end_tokens = {};
  int count = 0;
  options.each = [&](std::int32_t) { return ++count == 7; };
  CHECK(generate(model, {3}, options).size() == 7);
  CHECK_THROWS_AS(generate(model, {}, options), Error);
}

TEST_CASE("prompts of different lengths in one batch are continued as each is by itself") {
  Model model = small::made(small::decoder, {{"places", "200"}});
  std::vector<Tokens> prompts = {{3, 1, 4}, {5}, {9, 2, 6, 5, 3, 5, 8, 9, 7}, {1, 2}, {12, 0}};
  prompts.emplace_back();
  for (std::int32_t i = 0; i < 150; ++i) prompts.back().push_back((i * i + 2) % 13);
  for (const std::int64_t context : {20, 200})
    for (const std::int64_t batch_size : {1, 3, 8})
      for (const std::int64_t samples : {1, 3}) {
        CAPTURE(context);
        CAPTURE(batch_size);
        CAPTURE(samples);
        GenerateOptions options;
        options.tokens = 30;
        options.context = context;
        options.sampling.seed = 4;
        options.end_tokens = {7, 11};  // some rows end early
        options.samples = samples;
        options.batch_size = batch_size;
        const std::vector<Tokens> together = generate_batch(model, prompts, options);
        REQUIRE(together.size() == prompts.size() * static_cast<std::size_t>(samples));
        for (std::size_t i = 0; i < prompts.size(); ++i) {
          CAPTURE(i);
          CHECK(together[i * static_cast<std::size_t>(samples)] == generate(model, prompts[i], options));
          if (samples > 1) CHECK(together[i * 3] != together[i * 3 + 1]);
        }
        if (samples == 1 || batch_size != 3) continue;
        for (std::size_t row = 0; row < together.size(); ++row)
          CHECK(whole::generate(model, prompts[row / 3], options, row % 3) == together[row]);
      }
}

TEST_CASE("every token of a batch is told with its row, which the caller may end") {
  Model model = small::made(small::decoder);
  GenerateOptions options;
  options.tokens = 12;
  std::vector<Tokens> told(4);
  const auto each = [&](std::int64_t row, std::int32_t token) {
    auto& tokens = told[static_cast<std::size_t>(row)];
    tokens.push_back(token);
    return static_cast<std::int64_t>(tokens.size()) == 3 * (row + 1);
  };
  const std::vector<Tokens> made = generate_batch(model, {{1}, {2, 3}, {4}, {5, 6, 7}}, options, each);
  CHECK(made == told);
  for (std::size_t i = 0; i < 4; ++i) CHECK(made[i].size() == 3 * (i + 1));
  CHECK(generate_batch(model, {}, options).empty());
  CHECK_THROWS_AS(generate_batch(model, {{1}, {}}, options), Error);
  options.tokens = 0;
  CHECK(generate_batch(model, {{1}}, options) == std::vector<Tokens>{{}});
  options.samples = 0;
  CHECK_THROWS_AS(generate_batch(model, {{1}}, options), Error);
}
