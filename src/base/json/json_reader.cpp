// Parses JSON text and records the beginnings of values.
#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/process_memory.hpp"

namespace xtape {

/// Builds the values from nlohmann's SAX events. Open containers are on an explicit stack. A value therefore never
/// moves once it is inside another value, and no call is recursive.
class JsonReader {
 public:
  JsonReader(JsonText& json, JsonNumbers numbers) : json_(json), text_(json.text_), numbers_(numbers) {}

  void run() {
    const std::size_t first = text_.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
    find_lines(first);
    if (text_.size() >> 32 != 0)
      json_.fail(json_.file_ + ": the text is too long: JSON text must be smaller than 4 GiB");
    if (text_.find_first_not_of(" \t\r\n", first) == std::string::npos)
      json_.fail(json_.file_ + ": the text is empty: JSON text must contain a value");
    if (const char* other = other_encoding(text_))
      json_.fail_at(0, std::string("this is ") + other + ": JSON text must be UTF-8");
    // The parser would interpret a NUL as the end of the text.
    if (const std::size_t nul = text_.find('\0'); nul != std::string::npos)
      json_.fail_at(nul, "a NUL byte is not allowed in JSON text");
    check_memory();
    if (numbers_ == JsonNumbers::any) hide_infinities();
    Json::sax_parse(Bytes(this, first), Bytes(this, text_.size()), this);
    note_places();
  }

  // The SAX interface that the parser calls.
  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(Json::number_integer_t value) { return add_number(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add_number(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add_number(value); }
  bool string(std::string& value) {
    const auto hidden = infinities_.find(mark_);
    return add(hidden == infinities_.end() ? Json(std::move(value)) : Json(hidden->second));
  }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& key) {
    Level& level = levels_.back();
    if (infinities_.count(mark_) != 0) json_.fail_at(mark_, "a key in \"\" belongs here, not a number");
    level.key_begin = mark_;
    const auto [first, is_new] = level.keys.emplace(key, mark_);
    if (!is_new)
      json_.fail_at(mark_, "the key \"" + key + "\" appears twice in one object, first in line " +
                               std::to_string(json_.line_at(first->second)));
    level.key = std::move(key);
    marking_ = true;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) {
    const std::string what = error.what();
    const auto says = [&](const char* words) { return what.find(words) != std::string::npos; };
    // the last byte that was read
    const std::size_t last = std::min(begin_ + std::max<std::size_t>(position, 1) - 1, text_.size());
    if (says("number overflow"))
      json_.fail_at(mark_, "the number " + token + " is out of range: the largest float64 is 1.8e308");
    if (says("ill-formed UTF-8")) json_.fail_at(last, "this byte is not UTF-8");
    if (says("missing closing quote") || (says("control character") && text_[last] == '\n'))
      json_.fail_at(mark_, "this string has no end");
    if (says("invalid literal"))
      json_.fail_at(mark_,
                    "this is not a JSON value: use an object, an array, a string in \"\", a number, true, "
                    "false or null");
    const std::size_t detail = what.find(" - invalid ");
    if (detail != std::string::npos)
      json_.fail_at(last, "this is not JSON: " + what.substr(detail + 3, what.find("; last read") - detail - 3));
    if (last == text_.size())
      json_.fail_at(text_.find_last_not_of(" \t\r\n") + 1, expected(what) + ", but the text ends");
    const std::size_t at = std::strchr("{}[],:", text_[last]) != nullptr ? last : mark_;
    json_.fail_at(at, expected(what) + ", not " + found(at));
  }

 private:
  void check_memory() const {
    constexpr std::size_t value_bytes = 128;  // about the size of a value with its key, besides the text
    const auto precedes_value = [](char each) { return each == ',' || each == '[' || each == '{'; };
    try {
      require_memory_left(value_bytes * static_cast<std::size_t>(std::ranges::count_if(text_, precedes_value)),
                          "its content");
    } catch (const OutOfMemory& error) {
      json_.fail(json_.file_ + ": " + error.what());
    }
  }

  struct Level {
    Json value;
    std::string key;  // the key of the next entry
    std::size_t key_begin = 0;
    std::unordered_map<std::string, std::size_t> keys = {};  // the byte at which each key begins
  };

  /// Iterates over the text byte by byte. Records the beginning of the next token, which the parser does not report.
  class Bytes {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    Bytes(JsonReader* reader, std::size_t at) : reader_(reader), at_(at) {}
    reference operator*() const { return reader_->parsed()[at_]; }
    Bytes& operator++() {
      reader_->pass(at_++);
      return *this;
    }
    Bytes operator++(int) {
      Bytes before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Bytes& other) const { return at_ == other.at_; }
    bool operator!=(const Bytes& other) const { return at_ != other.at_; }

   private:
    JsonReader* reader_;
    std::size_t at_;
  };

  /// Called for each byte that the parser reads. While `marking_`, the first byte that is not white space, a comma or a
  /// colon is the beginning of the next token.
  void pass(std::size_t at) {
    last_ = at;
    if (!marking_) return;
    switch (text_[at]) {
      case ' ':
      case '\t':
      case '\r':
      case '\n':
      case ',':
      case ':':
        return;
      default:
        mark_ = at;
        marking_ = false;
    }
  }

  const std::string& parsed() const { return infinities_.empty() ? text_ : hidden_; }

  /// The parser supports neither Infinity nor NaN. It therefore receives a string of the same length in place of each
  /// of them.
  void hide_infinities() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::pair<std::string_view, double> words[] = {
        {"Infinity", infinity}, {"-Infinity", -infinity}, {"NaN", std::numeric_limits<double>::quiet_NaN()}};
    const auto ends = [&](std::size_t at) {
      return at >= text_.size() || std::strchr(",]} \t\r\n", text_[at]) != nullptr;
    };
    bool quoted = false;
    for (std::size_t at = 0; at < text_.size(); ++at) {
      if (text_[at] == '"') quoted = !quoted;
      if (quoted && text_[at] == '\\') ++at;
      if (quoted) continue;
      for (const auto& [word, value] : words)
        if (text_.compare(at, word.size(), word) == 0 && ends(at + word.size())) {
          if (infinities_.empty()) hidden_ = text_;
          infinities_[at] = value;
          hidden_.replace(at, word.size(), "\"" + std::string(word.size() - 2, '-') + "\"");
          at += word.size() - 1;
          break;
        }
    }
  }

  void find_lines(std::size_t first) {
    begin_ = first;
    json_.lines_.push_back(first);
    for (std::size_t at = first; (at = text_.find('\n', at)) != std::string::npos;) json_.lines_.push_back(++at);
  }

  void begin_value() {
    const bool named = !levels_.empty() && levels_.back().value.is_object();
    begins_.push_back({nullptr, static_cast<std::uint32_t>(mark_),
                       static_cast<std::uint32_t>(named ? levels_.back().key_begin : mark_)});
    marking_ = true;
  }

  bool add(Json value) {
    begin_value();
    put(std::move(value));
    return true;
  }

  /// The parser has already read one byte past the number. The next token may begin with that byte.
  template <class Number>
  bool add_number(Number value) {
    add(Json(value));
    pass(last_);
    return true;
  }

  void put(Json value) {
    if (levels_.empty()) {
      json_.root_ = std::make_unique<Json>(std::move(value));
      return;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      // The key is known to be new, so the entry is appended. The insertion of ordered_json would search all keys.
      using Entries = Json::object_t::Container;
      static_cast<Entries&>(level.value.get_ref<Json::object_t&>())
          .emplace_back(std::move(level.key), std::move(value));
    }
  }

  bool open(Json value) {
    if (levels_.size() == JsonText::deepest)
      json_.fail_at(mark_, "this is nested more than " + std::to_string(JsonText::deepest) + " deep");
    begin_value();
    levels_.push_back({std::move(value), {}, 0, {}});
    return true;
  }

  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    put(std::move(value));
    marking_ = true;
    return true;
  }

  /// Assigns each value its recorded location. Values were recorded in the order of the text, which is the order of a
  /// depth-first walk from the root.
  void note_places() {
    std::vector<const Json*> ahead = {json_.root_.get()};
    for (JsonText::Place& place : begins_) {
      const Json& value = *ahead.back();
      ahead.pop_back();
      place.value = &value;
      if (value.is_object() || value.is_array()) {
        for (const Json& child : value) ahead.push_back(&child);
        std::reverse(ahead.end() - std::ssize(value), ahead.end());
      }
    }
    std::ranges::sort(begins_, [](const auto& a, const auto& b) { return std::less<>()(a.value, b.value); });
    json_.places_ = std::move(begins_);
  }

  /// Returns the message about the token that the parser expects where it stopped. `what` is the parser's message.
  std::string expected(const std::string& what) const {
    const auto parsing = [&](const char* context) {
      return what.find(std::string("while parsing ") + context) != std::string::npos;
    };
    if (levels_.empty()) return begins_.empty() ? "a value belongs here" : "nothing may follow the end of the value";
    const Level& level = levels_.back();
    const bool first = level.value.empty();
    const std::string named = "\"" + (parsing("object - ") ? last_key(level) : level.key) + "\"";
    if (parsing("object key"))
      return first ? "a key in \"\" or '}' belongs here" : "a key in \"\" belongs here after the comma";
    if (parsing("object separator")) return "':' belongs here after the key " + named;
    if (parsing("object")) return "',' or '}' belongs here after the value of " + named;
    if (parsing("array")) return "',' or ']' belongs here";
    if (level.value.is_object()) return "a value belongs here after the key " + named;
    return first ? "a value or ']' belongs here" : "a value belongs here after the comma";
  }

  static std::string last_key(const Level& level) { return level.value.get_ref<const Json::object_t&>().back().first; }

  /// Describes the token at byte `at`.
  std::string found(std::size_t at) const {
    const char c = text_[at];
    if (c == '"') return "a string";
    if (c == '-' || (c >= '0' && c <= '9')) return "a number";
    if (c == 't' || c == 'f' || c == 'n') return "a literal";
    return std::string("'") + c + "'";
  }

  JsonText& json_;
  const std::string& text_;
  JsonNumbers numbers_;
  // the numbers that are not finite, by the byte at which they begin
  std::unordered_map<std::size_t, double> infinities_;
  std::string hidden_;  // the text with strings in place of these numbers
  // bytes: the first byte of the text; the last byte read; the first byte of the current token
  std::size_t begin_ = 0, last_ = 0, mark_ = 0;
  bool marking_ = true;  // whether the next token has not begun yet
  std::vector<Level> levels_;
  std::vector<JsonText::Place> begins_;
};

JsonText::JsonText(std::string text, std::string file, JsonErrors errors, JsonNumbers numbers, int first_line)
    : text_(std::move(text)), file_(std::move(file)), errors_(errors), first_line_(first_line) {
  JsonReader(*this, numbers).run();
}

JsonText::~JsonText() = default;

}  // namespace xtape
