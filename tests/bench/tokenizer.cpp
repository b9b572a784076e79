// The speed of GPT-2's tokenizer on one core.
// Each file is encoded as a whole and line by line, first with an empty cache of words.
//
// usage: tokenizer FOLDER FILE…   FOLDER has vocab.json and merges.txt
#include <chrono>
#include <cstdio>

#include "xtape/error.hpp"
#include "xtape/text.hpp"

namespace {

using namespace xtape;

/// Prints the speed of `work`, which encodes `bytes` bytes and returns the number of tokens.
template <class Work>
void measure(const char* name, std::size_t bytes, const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t tokens = work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("  %-22s %7.1f MB/s  %zu tokens\n", name, static_cast<double>(bytes) / seconds.count() / 1e6, tokens);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: tokenizer FOLDER FILE…\n");
    return 2;
  }
  try {
    for (int i = 2; i < count; ++i) {
      const auto tokenizer = load_tokenizer(arguments[1]);
      const std::vector<std::string> lines = read_lines(arguments[i]);
      std::string text;
      for (const std::string& line : lines) text += line + "\n";
      std::printf("%s: %.1f MB\n", arguments[i], static_cast<double>(text.size()) / 1e6);
      Tokens tokens;
      measure("the first time", text.size(), [&] { return (tokens = tokenizer->encode(text)).size(); });
      measure("again", text.size(), [&] { return tokenizer->encode(text).size(); });
      measure("line by line", text.size(), [&] {
        std::size_t made = 0;
        for (const std::string& line : lines) made += tokenizer->encode(line).size();
        return made;
      });
      measure("decoded", text.size(), [&] {
        if (tokenizer->decode(tokens) != text) throw Error("decoding gives another text");
        return tokens.size();
      });
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
