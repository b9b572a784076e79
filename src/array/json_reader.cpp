// Parses JSON text, noting where values begin.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "caret.hpp"
#include "json_text.hpp"

namespace xtape {

/// Takes nlohmann's events and makes the values of them. Containers that are still open stand on a stack of their own,
/// so that no value moves once it is inside another, and nothing recurses.
class JsonReader {
 public:
  explicit JsonReader(JsonText& json) : json_(json), text_(json.text_) {}

  void run() {
    const std::size_t first = text_.compare(0, 3, "\xEF\xBB\xBF") == 0 ? 3 : 0;
    find_lines(first);
    if (text_.size() >> 32 != 0) json_.fail(json_.file_ + " is too long: JSON text has less than 4 GiB");
    if (text_.find_first_not_of(" \t\r\n", first) == std::string::npos)
      json_.fail(json_.file_ + " is empty: JSON text holds a value");
    if (text_.compare(0, 2, "\xFF\xFE") == 0 || text_.compare(0, 2, "\xFE\xFF") == 0)
      json_.fail_at(0, "this is UTF-16: JSON text is UTF-8");
    // The parser would take this for the end.
    if (const std::size_t nul = text_.find('\0'); nul != std::string::npos)
      json_.fail_at(nul, "a NUL byte has no meaning in JSON text");
    Json::sax_parse(Bytes(this, first), Bytes(this, text_.size()), this);
    note_places();
  }

  // What the parser calls.
  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(Json::number_integer_t value) { return add_number(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add_number(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add_number(value); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& key) {
    Level& level = levels_.back();
    level.key_begin = mark_;
    const auto [first, is_new] = level.keys.emplace(key, mark_);
    if (!is_new)
      json_.fail_at(mark_, "the key \"" + key + "\" stands twice in one object: first in line " +
                               std::to_string(json_.line_at(first->second)));
    level.key = std::move(key);
    marking_ = true;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) {
    const std::string what = error.what();
    const auto says = [&](const char* words) { return what.find(words) != std::string::npos; };
    const std::size_t last = std::min(begin_ + std::max<std::size_t>(position, 1) - 1, text_.size());  // read so far
    if (says("number overflow"))
      json_.fail_at(mark_, "the number " + token + " is out of range: float64 ends at 1.8e308");
    if (says("ill-formed UTF-8")) json_.fail_at(last, "this byte is not UTF-8");
    if (says("missing closing quote") || (says("control character") && text_[last] == '\n'))
      json_.fail_at(mark_, "this string has no end");
    if (says("invalid literal"))
      json_.fail_at(mark_,
                    "this is no JSON value: an object, an array, a string in \"\", a number, true, false or null is");
    const std::size_t detail = what.find(" - invalid ");
    if (detail != std::string::npos)
      json_.fail_at(last, "this is not JSON: " + what.substr(detail + 3, what.find("; last read") - detail - 3));
    if (last == text_.size())
      json_.fail_at(text_.find_last_not_of(" \t\r\n") + 1, expected(what) + ", and the text ends");
    const std::size_t at = std::strchr("{}[],:", text_[last]) != nullptr ? last : mark_;
    json_.fail_at(at, expected(what) + ", not " + found(at));
  }

 private:
  struct Level {
    Json value;
    std::string key;  // of the entry that comes next
    std::size_t key_begin = 0;
    std::unordered_map<std::string, std::size_t> keys = {};  // where each begins
  };

  /// The text, byte by byte. Notes where the next token begins: the parser does not tell.
  class Bytes {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    Bytes(JsonReader* reader, std::size_t at) : reader_(reader), at_(at) {}
    reference operator*() const { return reader_->text_[at_]; }
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

  /// The parser has read one byte behind a number by now, with which the next token may begin.
  template <class Number>
  bool add_number(Number value) {
    add(Json(value));
    pass(last_);
    return true;
  }

  void put(Json value) {
    if (levels_.empty()) {
      json_.root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      // Known to be new: what ordered_json itself offers would look at all keys for each.
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

  /// Values begin in the order of the text, which is that of a walk from the root.
  void note_places() {
    std::vector<const Json*> ahead = {&json_.root_};
    for (JsonText::Place& place : begins_) {
      const Json& value = *ahead.back();
      ahead.pop_back();
      place.value = &value;
      if (value.is_object() || value.is_array()) {
        for (const Json& child : value) ahead.push_back(&child);
        std::reverse(ahead.end() - static_cast<std::ptrdiff_t>(value.size()), ahead.end());
      }
    }
    std::sort(begins_.begin(), begins_.end(),
              [](const auto& a, const auto& b) { return std::less<>()(a.value, b.value); });
    json_.places_ = std::move(begins_);
  }

  /// What would be right where the parser stopped.
  std::string expected(const std::string& what) const {
    const auto parsing = [&](const char* context) {
      return what.find(std::string("while parsing ") + context) != std::string::npos;
    };
    if (levels_.empty())
      return begins_.empty() ? "a value belongs here" : "nothing belongs behind the end of the value";
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

  std::string found(std::size_t at) const {
    const char c = text_[at];
    if (c == '"') return "a string";
    if (c == '-' || (c >= '0' && c <= '9')) return "a number";
    if (c == 't' || c == 'f' || c == 'n') return "a word";
    return std::string("'") + c + "'";
  }

  JsonText& json_;
  const std::string& text_;
  std::size_t begin_ = 0, last_ = 0, mark_ = 0;  // of the text; read last; of the token
  bool marking_ = true;
  std::vector<Level> levels_;
  std::vector<JsonText::Place> begins_;
};

JsonText::JsonText(std::string text, std::string file, JsonErrors errors)
    : text_(std::move(text)), file_(std::move(file)), errors_(errors) {
  JsonReader(*this).run();
}

}  // namespace xtape
