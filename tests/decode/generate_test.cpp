#include <doctest/doctest.h>

#include "small_models.hpp"
#include "xtape/decode.hpp"
#include "xtape/train.hpp"

using namespace xtape;

TEST_CASE("generation is the same with caches and without, whatever the context") {
  Model model = small::made(small::decoder);
  GenerateOptions options;
  options.tokens = 40;  // passes several lengths
  options.sampling.seed = 2;
  const Tokens prompt = {3, 1, 4};
  for (const std::int64_t context : {1, 2, 7, 20, 64}) {
    CAPTURE(context);
    options.context = context;
    options.cached = true;
    const Tokens cached = generate(model, prompt, options);
    REQUIRE(cached.size() == 40);
    options.cached = false;
    CHECK(generate(model, prompt, options) == cached);
  }
  options.cached = true;
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
  options.cached = false;
  CHECK(generate(model, prompt, options) == cached);
  options.context = 150;
  const Tokens cut = generate(model, prompt, options);
  options.cached = true;
  CHECK(generate(model, prompt, options) == cut);
  CHECK(generate(model, Tokens(prompt.end() - 150, prompt.end()), options) == cut);
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
  options.cached = false;
  CHECK_THROWS_AS(generate(predictor, {3}, options), Error);
}

TEST_CASE("generation ends at the end token and where the caller says") {
  Model model = small::made(small::decoder);
  GenerateOptions options;
  options.tokens = 30;
  const Tokens whole = generate(model, {3}, options);
  options.end_token = whole[4];
  const Tokens ended = generate(model, {3}, options);
  CHECK(ended.back() == whole[4]);
  CHECK(ended.size() <= 5);
  options.end_token = -1;
  int count = 0;
  options.each = [&](std::int32_t) { return ++count == 7; };
  CHECK(generate(model, {3}, options).size() == 7);
  CHECK_THROWS_AS(generate(model, {}, options), Error);
}

TEST_CASE("exact matches are what greedy generation, one question at a time, gives") {
  const AdderOptions data = {.rows = 16, .digits = 1, .held_out = 20};
  const CharacterTokenizer tokenizer(AdderBatches::text(data));
  const AdderBatches batches(tokenizer, data);
  Model model = small::made(small::decoder);
  GenerateOptions options;
  options.sampling.temperature = 0;
  std::vector<Question> asked = batches.questions();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    options.tokens = static_cast<std::int64_t>(asked[i].answer.size());
    const Tokens said = generate(model, asked[i].prompt, options);
    if (i % 3 == 0)
      asked[i].answer = said;  // a third are right, whatever the model says
    else if (said == asked[i].answer)
      asked[i].answer.back() = (said.back() + 1) % 13;
  }
  for (const std::int64_t rows : {1, 6, 16, 64}) CHECK(exact_matches(model, asked, rows) == 7);
}
