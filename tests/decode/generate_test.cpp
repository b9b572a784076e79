#include <doctest/doctest.h>

#include "../train/tiny.hpp"
#include "xtape/decode.hpp"

using namespace xtape;

namespace {
Model tiny_model() {
  return Model::parse(tiny::definition, {.hyper = {}, .seed = 5}, "tiny.json");
}
}  // namespace

TEST_CASE("generation does not depend on how prompts are padded") {
  Model model = tiny_model();
  GenerateOptions options;
  options.tokens = 40;  // passes several lengths
  options.sampling.seed = 2;
  const Tokens prompt = {3, 1, 4};
  const Tokens whole = generate(model, prompt, options);
  REQUIRE(whole.size() == 40);
  options.context = 2;  // the model looks at two tokens anyhow
  CHECK(generate(model, prompt, options) == whole);
  options.context = 1024;
  options.tokens = 25;
  const Tokens part = generate(model, prompt, options);
  CHECK(std::equal(part.begin(), part.end(), whole.begin()));
  options.sampling.seed = 3;
  CHECK(generate(model, prompt, options) != part);
}

TEST_CASE("generation ends at the end token and where the caller says") {
  Model model = tiny_model();
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
  Model model = tiny_model();
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
