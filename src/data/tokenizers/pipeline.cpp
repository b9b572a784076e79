#include "data/tokenizers/pipeline.hpp"

#include <algorithm>

#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_models.hpp"
#include "xtape/error.hpp"

namespace xtape {

Pipeline::Pipeline(const JsonNode& json) {
  if (!is_unset(json, "normalizer")) normalizers_ = read_normalizers(json.at("normalizer"));
  if (!is_unset(json, "pre_tokenizer")) words_ = PreTokenizers(json.at("pre_tokenizer"));
  model_ = read_model(json.at("model"), words_.by_bytes());
  if (!is_unset(json, "decoder")) {
    decoders_ = read_decoders(json.at("decoder"));
  } else if (words_.by_bytes()) {
    decoders_ = {byte_decoder()};
  } else {
    between_ = " ";
  }
  if (!is_unset(json, "added_tokens"))
    for (const JsonNode& each : json.at("added_tokens").elements())
      at_node(each, [&] { add(read_added_token(each, read_token(each.at("id")))); });
  find_added();
  if (!is_unset(json, "post_processor"))
    templates_ = read_templates(json.at("post_processor"), [&](const std::string& text) { return token_of(text); });
}

Pipeline::Pipeline(std::unique_ptr<WordModel> model, bool prefix_space)
    : words_(PreTokenizers::gpt2(prefix_space)), model_(std::move(model)), decoders_{byte_decoder()} {}

Pipeline Pipeline::with(const std::vector<AddedToken>& tokens) const {
  Pipeline more = *this;
  for (const AddedToken& token : tokens) more.add(token);
  more.find_added();
  return more;
}

void Pipeline::add(const AddedToken& token) {
  check_added(token, token_of(token.content), piece(token.token));
  added_.insert_or_assign(token.token, token);
  added_tokens_.insert_or_assign(token.content, token.token);
}

void Pipeline::find_added() {
  in_text_ = in_normal_ = AddedTokens();
  for (const auto& each : added_) {
    const AddedToken& token = each.second;
    bool first = true;
    if (!token.normalized)
      in_text_.add(token.content, token);
    else if (const std::string text = normal(token.content, first); !text.empty())
      in_normal_.add(text, token);
  }
}

std::string Pipeline::normal(std::string text, bool& first) const {
  for (const Normalizer& normalizer : normalizers_) text = normalizer(text, first);
  return text;
}

Tokens Pipeline::encode(const std::string& text) const {
  if (!words_.by_bytes() || !normalizers_.empty()) check_utf8(text);
  // If another thread is using the shared cache, this call uses its own instead of waiting.
  const std::unique_lock<std::mutex> lock(seen_.mutex, std::try_to_lock);
  WordCache own;
  WordCache& cache = lock ? seen_.words : own;
  Tokens tokens;
  in_text_.cut(text, [&](std::string_view part, std::int32_t token) {
    if (token >= 0) return tokens.push_back(token);
    bool first = part.data() == text.data();
    std::string normalized;
    if (!normalizers_.empty()) part = normalized = normal(std::string(part), first);
    in_normal_.cut(part, [&](std::string_view words, std::int32_t found) {
      if (found >= 0) return tokens.push_back(found);
      append(tokens, words, first && words.data() == part.data(), cache);
    });
  });
  return tokens;
}

void Pipeline::append(Tokens& tokens, std::string_view text, bool first, WordCache& cache) const {
  words_.words({text, first}, [&](const Word& word) {
    if (const Tokens* known = cache.find(word.text); known != nullptr) {
      tokens.insert(tokens.end(), known->begin(), known->end());
      return;
    }
    const Tokens made = model_->tokens_of_word(word.text);
    tokens.insert(tokens.end(), made.begin(), made.end());
    cache.add(word.text, made);
  });
}

const std::string& Pipeline::piece(std::int32_t token) const {
  static const std::string none;
  if (const auto found = added_.find(token); found != added_.end()) return found->second.content;
  const std::vector<std::string>& pieces = model_->vocabulary().pieces();
  return static_cast<std::size_t>(token) < pieces.size() ? pieces[static_cast<std::size_t>(token)] : none;
}

std::string Pipeline::decode(const Tokens& tokens) const {
  std::vector<std::string> pieces;
  for (const std::int32_t token : tokens) {
    const auto added = added_.find(token);
    if (added != added_.end() && added->second.special) continue;
    const std::string& text = piece(token);
    if (text.empty()) continue;
    if (added == added_.end() || !words_.by_bytes()) {
      pieces.push_back(text);
      continue;
    }
    pieces.emplace_back();  // the content of an added token is plain text, while other pieces consist of byte symbols
    for (const char byte : text) pieces.back() += symbol_of(static_cast<std::uint8_t>(byte));
  }
  for (const Decoder& decoder : decoders_) decoder(pieces);
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) text += (i > 0 ? between_ : "") + pieces[i];
  return text;
}

std::int32_t Pipeline::token_of(const std::string& piece) const {
  const auto found = added_tokens_.find(piece);
  return found != added_tokens_.end() ? found->second : model_->vocabulary().token_of(piece);
}

std::int64_t Pipeline::size() const {
  const auto pieces = std::ssize(model_->vocabulary().pieces());
  return added_.empty() ? pieces : std::max(pieces, std::int64_t{added_.rbegin()->first} + 1);
}

}  // namespace xtape
