#include "data/tokenizers/pipeline.hpp"
#include "data/tokenizers/published.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
enum class Behavior : std::uint8_t { isolated, removed, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const std::string& name) {
  if (name == "Isolated") return Behavior::isolated;
  if (name == "Removed") return Behavior::removed;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  throw Error("the behavior \"" + name + "\" is not supported; supported: Isolated, Removed, MergedWithPrevious, " +
              "MergedWithNext, Contiguous");
}

/// Splits words by a pattern. The behavior determines what happens to the matches.
class PatternSplit : public PreTokenizer {
 public:
  PatternSplit(WordPattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void apply(const Word& word, const TakesWord& take) const override {
    const auto give = [&](std::size_t begin, std::size_t end) {
      if (begin < end) take({word.text.substr(begin, end - begin), word.first && begin == 0});
    };
    // The word that may still grow, and whether the last span was a match (`before`).
    std::size_t begin = 0, end = 0;
    bool before = false;
    pattern_.cut(word.text, [&](const Span& span) {
      const bool matched = span.matched != invert_;
      bool joined = false;  // whether the span joins the previous word
      switch (behavior_) {
        case Behavior::isolated:
          break;
        case Behavior::removed:
          if (!matched) give(span.begin, span.end);
          return;
        case Behavior::contiguous:
          joined = matched == before;
          break;
        case Behavior::merged_with_previous:
          joined = matched && !before;
          break;
        case Behavior::merged_with_next:
          joined = !matched && before;
          break;
      }
      before = matched;
      if (!joined) {
        give(begin, end);
        begin = span.begin;
      }
      end = span.end;
    });
    give(begin, end);
  }

 private:
  WordPattern pattern_;
  Behavior behavior_;
  bool invert_;
};

/// Replaces spaces by another text, and inserts this text at the beginning.
class Respelling : public PreTokenizer {
 public:
  Respelling(std::string space, const std::string& scheme)
      : space_(std::move(space)), prepends_(scheme != "never"), to_all_(scheme == "always") {}

  void apply(const Word& word, const TakesWord& take) const override {
    std::string text;
    text.reserve(word.text.size() + space_.size());
    for (const char byte : word.text)
      if (byte == ' ')
        text += space_;
      else
        text += byte;
    if (prepends_ && (to_all_ || word.first) && !text.starts_with(space_)) text.insert(0, space_);
    take({text, word.first});
  }

 private:
  std::string space_;
  bool prepends_, to_all_;
};
}  // namespace

PreTokenizers::PreTokenizers(const JsonNode& node) {
  for (const JsonNode& part : parts_of(node, "pretokenizers")) {
    if (by_bytes_) part.fail("a pre-tokenizer after \"ByteLevel\" is not supported");
    at_node(part, [&] { add(part); });
  }
}

PreTokenizers PreTokenizers::gpt2(bool prefix_space) {
  PreTokenizers steps;
  if (prefix_space) steps.steps_.push_back(std::make_shared<Respelling>(" ", "always"));
  steps.split(WordPattern::gpt2());
  steps.by_bytes_ = true;
  return steps;
}

void PreTokenizers::split(WordPattern pattern, const std::string& behavior, bool invert) {
  steps_.push_back(std::make_shared<PatternSplit>(std::move(pattern), behavior_of(behavior), invert));
}

void PreTokenizers::add(const JsonNode& node) {
  static const WordPattern spaces(R"(\s)");
  static const WordPattern punctuation(R"([!-\/:-@\x5B-`{-~\p{P}])");
  static const WordPattern numbers(R"(\p{N})");
  static const WordPattern words(
      R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\s]+)");
  const std::string& type = node.at("type").text();
  if (type == "ByteLevel") {
    by_bytes_ = true;
    if (flag_of(node, "add_prefix_space", true)) steps_.push_back(std::make_shared<Respelling>(" ", "always"));
    if (flag_of(node, "use_regex", true)) split(WordPattern::gpt2());
  } else if (type == "Split") {
    split(read_pattern(node.at("pattern")), node.at("behavior").text(), flag_of(node, "invert", false));
  } else if (type == "Digits") {
    split(numbers, flag_of(node, "individual_digits", false) ? "Isolated" : "Contiguous");
  } else if (type == "Punctuation") {
    split(punctuation, text_of(node, "behavior", "Isolated"));
  } else if (type == "Whitespace") {
    split(words, "Removed", true);
  } else if (type == "WhitespaceSplit") {
    split(spaces, "Removed");
  } else if (type == "BertPreTokenizer") {
    split(spaces, "Removed");
    split(punctuation);
  } else if (type == "CharDelimiterSplit") {
    split(WordPattern::literal(node.at("delimiter").text()), "Removed");
  } else if (type == "Metaspace") {
    const std::string scheme = prepend_scheme(node), space = space_of(node);
    if (scheme != "always" && scheme != "first" && scheme != "never")
      node.at("prepend_scheme").fail("\"prepend_scheme\" must be always, first or never, not \"" + scheme + "\"");
    steps_.push_back(std::make_shared<Respelling>(space, scheme));
    if (flag_of(node, "split", true)) split(WordPattern::literal(space), "MergedWithNext");
  } else {
    refuse_type(node, "the pre-tokenizer",
                "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split, "
                "Whitespace, WhitespaceSplit");
  }
}

void PreTokenizers::from(std::size_t step, const Word& word, const TakesWord& take) const {
  if (step == steps_.size()) return take(word);
  if (step + 1 == steps_.size()) return steps_[step]->apply(word, take);
  steps_[step]->apply(word, [&](const Word& each) { from(step + 1, each, take); });
}

}  // namespace xtape
