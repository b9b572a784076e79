// GPT-2's tokenizer against the tokens of Hugging Face's tokenizers and of tiktoken in gpt2_tokenizer.json.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "needs.hpp"
#include "source_root.hpp"
#include "xtape/text.hpp"

using namespace xtape;

namespace {

void check_tokens(const std::string& folder, const char* kind) {
  static const auto fixture =
      nlohmann::json::parse(read_text(source_root() + "/tests/golden/data/gpt2_tokenizer.json"));
  const std::string vocabulary = folder + "/vocab.json";
  const std::string merges = folder + "/merges.txt";
  const Gpt2Tokenizer plain(vocabulary, merges);
  const Gpt2Tokenizer with_end(vocabulary, merges, {true});
  REQUIRE(fixture.at(kind).size() > 130);
  std::size_t ends = 0;
  for (const auto& entry : fixture.at(kind)) {
    const std::string text = entry.at("text");
    CAPTURE(text);
    const Tokens expected = entry.at("tokens");
    CHECK(plain.encode(text) == expected);
    CHECK(plain.encode(text) == expected);  // of words that it has seen
    CHECK(plain.decode(expected) == text);
    CHECK(with_end.encode(text) == entry.value("with_end", expected));
    ends += entry.count("with_end");
  }
  CHECK(ends == 3);
}

/// GPT-2's vocab.json and merges.txt, which do not stand in the project. XTAPE_DATA says where data is.
std::string published_folder() {
  const char* data = std::getenv("XTAPE_DATA");
  return (data != nullptr ? std::string(data) : source_root() + "/../shared/data") + "/gpt2-bpe";
}
Needs needs_published() {
  return {std::filesystem::exists(published_folder()), "GPT-2's vocab.json and merges.txt in " + published_folder()};
}

}  // namespace

TEST_CASE("GPT-2's tokenizer: a small vocabulary") {
  check_tokens(source_root() + "/tests/golden/data/gpt2_small", "small");
}

TEST_CASE("GPT-2's tokenizer: the published vocabulary" * needs_published()) {
  check_tokens(published_folder(), "published");
}
