#include <utility>

#include "data/tokenizers/utf8.hpp"

namespace xtape {

namespace {

/// The continuation bytes that a first byte requires: their number, and the range of the first of them. The range
/// excludes overlong forms, surrogates and numbers above U+10FFFF. `count` is -1 if the byte cannot begin a character.
struct Rest {
  int count;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Rest rest_of(unsigned char lead) {
  if (lead < 0x80) return {0};
  if (lead < 0xC2 || lead > 0xF4) return {-1};
  if (lead < 0xE0) return {1};
  if (lead < 0xF0)
    return {2, static_cast<unsigned char>(lead == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(lead == 0xED ? 0x9F : 0xBF)};
  return {3, static_cast<unsigned char>(lead == 0xF0 ? 0x90 : 0x80),
          static_cast<unsigned char>(lead == 0xF4 ? 0x8F : 0xBF)};
}

}  // namespace

std::string Utf8Stream::feed(const std::string& bytes) {
  std::string whole;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (!begun_.empty()) {
      if (value >= low_ && value <= high_) {
        begun_ += byte;
        low_ = 0x80;
        high_ = 0xBF;
        if (--missing_ == 0) whole += std::exchange(begun_, "");
        continue;
      }
      whole += finish();
    }
    const Rest rest = rest_of(value);
    if (rest.count == 0) whole += byte;
    if (rest.count < 0) whole += replacement_text;
    if (rest.count > 0) {
      begun_ = byte;
      missing_ = rest.count;
      low_ = rest.low;
      high_ = rest.high;
    }
  }
  return whole;
}

std::string Utf8Stream::finish() {
  const bool cut = !begun_.empty();
  begun_.clear();
  return std::string(cut ? replacement_text : "");
}

}  // namespace xtape
