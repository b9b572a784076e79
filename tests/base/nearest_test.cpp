#include <doctest/doctest.h>

#include "base/messages/wording.hpp"

using namespace xtape;

TEST_CASE("a misspelt name has a suggestion where a third of it is wrong at most") {
  const std::vector<std::string> models = {"gpt2", "gru_attention", "llama", "lstm_lm", "t5", "transformer"};
  CHECK(nearest("gp2", models) == "gpt2");
  CHECK(nearest("gpt-2", models) == "gpt2");
  CHECK(nearest("lama", models) == "llama");
  CHECK(nearest("lalma", models) == "llama");
  CHECK(nearest("t", models) == "t5");
  CHECK(nearest("5t", models) == "t5");
  CHECK(nearest("trasnfromer", models) == "transformer");
  CHECK(nearest("gru_atention", models) == "gru_attention");
}

TEST_CASE("another word has none") {
  const std::vector<std::string> models = {"gpt2", "llama", "t5", "transformer"};
  for (const char* name : {"", "x", "ab", "bert", "lamp_post", "opt", "conformist"})
    CHECK(nearest(name, models).empty());
  CHECK(nearest("z", {"a", "b"}).empty());
  CHECK(nearest("xy", {"ab"}).empty());
  CHECK(nearest(std::string(201, 'a'), {std::string(201, 'a')}).empty());
}

TEST_CASE("the beginning of a name means it, and the shortest of those that begin so") {
  const std::vector<std::string> recipes = {"shakespeare_transformer", "shakespeare_char", "sorting"};
  CHECK(nearest("sort", recipes) == "sorting");
  CHECK(nearest("shakespeare", recipes) == "shakespeare_char");
  CHECK(nearest("so", recipes).empty());
  CHECK(nearest("add", {"adder", "and"}) == "and");
}

TEST_CASE("of names that are equally near the first is meant") {
  CHECK(nearest("cat", {"bat", "hat"}) == "bat");
  CHECK(nearest("n_heda", {"n_head", "n_hedb"}) == "n_head");
}
