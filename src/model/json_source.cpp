#include "json_source.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "nearest.hpp"

namespace xtape::model {

namespace {
std::string escaped(const std::string& token) {  // as JSON pointers want it (RFC 6901)
  std::string text;
  for (char c : token) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

/// Walks a text that is known to be JSON and notes where values start. Keeps its own stack: depth is the file's choice.
class LineScanner {
 public:
  LineScanner(const std::string& text, JsonSource& source) : text_(text), source_(source) {}

  void run() {
    for (; at_ < text_.size(); ++at_) {
      switch (text_[at_]) {
        case '\n':
          ++line_;
          break;
        case ' ':
        case '\t':
        case '\r':
        case ':':
          break;
        case ',':
          if (open_.back().is_object)
            open_.back().awaits_key = true;
          else
            ++open_.back().index;
          break;
        case '}':
        case ']':
          open_.pop_back();
          break;
        case '{':
        case '[': {
          const std::string pointer = start();
          const bool is_object = text_[at_] == '{';
          open_.push_back({pointer, is_object, is_object, 0, {}, {}});
          break;
        }
        case '"':
          string();
          break;
        default:
          start();
          while (at_ + 1 < text_.size() && std::string(",]}: \t\r\n").find(text_[at_ + 1]) == std::string::npos) ++at_;
      }
    }
  }

 private:
  struct Level {
    std::string pointer;
    bool is_object;
    bool awaits_key;
    std::size_t index;
    std::string key;
    std::vector<std::string> keys;
  };

  std::string start() {
    std::string pointer;
    if (!open_.empty()) {
      const Level& level = open_.back();
      pointer = level.pointer + "/" + (level.is_object ? escaped(level.key) : std::to_string(level.index));
    }
    source_.lines.emplace(pointer, line_);
    return pointer;
  }

  void string() {
    const std::size_t first = at_++;
    while (text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (open_.empty() || !open_.back().awaits_key) {
      start();
      return;
    }
    Level& level = open_.back();
    level.awaits_key = false;
    level.key = Json::parse(text_.substr(first, at_ + 1 - first)).get<std::string>();
    if (std::find(level.keys.begin(), level.keys.end(), level.key) != level.keys.end())
      fail({source_.file, "", line_}, "the key \"" + level.key + "\" stands twice in one object");
    level.keys.push_back(level.key);
  }

  const std::string& text_;
  JsonSource& source_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Level> open_;
};

[[noreturn]] void not_json(const std::string& text, const std::string& file, std::size_t byte) {
  const std::size_t position = std::min(byte == 0 ? 0 : byte - 1, text.size());  // the parser counts from 1
  const auto line =
      static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
  const std::size_t before = position == 0 ? std::string::npos : text.rfind('\n', position - 1);
  const std::size_t first = before == std::string::npos ? 0 : before + 1;
  const std::size_t last = std::min(text.find('\n', position), text.size());
  fail({file, "", line + 1}, text.substr(first, last - first), position - first, "this is not JSON");
}
}  // namespace

std::shared_ptr<const JsonSource> parse_json(const std::string& text, const std::string& file) {
  auto source = std::make_shared<JsonSource>();
  source->file = file;
  try {
    source->root = Json::parse(text);
  } catch (const Json::parse_error& error) {
    not_json(text, file, error.byte);
  }
  LineScanner(text, *source).run();
  return source;
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) throw FileError("cannot read '" + path + "'");
  return text.str();
}

Place JsonNode::place(const std::string& owner) const {
  const auto line = source_->lines.find(pointer_);
  return {source_->file, owner.empty() ? owner_ : owner, line == source_->lines.end() ? 0 : line->second};
}

void JsonNode::fail(const std::string& message) const {
  model::fail(place(), message);
}

JsonNode JsonNode::owned_by(const std::string& owner) const {
  JsonNode node = *this;
  node.owner_ = owner;
  return node;
}

const std::string& JsonNode::text() const {
  if (!value_->is_string()) fail(std::string("a string belongs here, not ") + value_->type_name());
  return value_->get_ref<const std::string&>();
}

bool JsonNode::flag() const {
  if (!value_->is_boolean()) fail(std::string("true or false belongs here, not ") + value_->type_name());
  return value_->get<bool>();
}

JsonNode JsonNode::at(const std::string& key) const {
  if (!value_->is_object()) fail(std::string("an object belongs here, not ") + value_->type_name());
  const auto found = value_->find(key);
  if (found == value_->end()) fail("the key \"" + key + "\" is missing");
  return child(*found, key);
}

std::vector<std::pair<std::string, JsonNode>> JsonNode::entries() const {
  if (!value_->is_object()) fail(std::string("an object belongs here, not ") + value_->type_name());
  std::vector<std::pair<std::string, JsonNode>> entries;
  for (const auto& [key, value] : value_->items()) entries.emplace_back(key, child(value, key));
  return entries;
}

std::vector<JsonNode> JsonNode::elements() const {
  if (!value_->is_array()) fail(std::string("an array belongs here, not ") + value_->type_name());
  std::vector<JsonNode> elements;
  for (std::size_t i = 0; i < value_->size(); ++i) elements.push_back(child((*value_)[i], std::to_string(i)));
  return elements;
}

void JsonNode::only(const std::vector<std::string>& known) const {
  for (const auto& [key, node] : entries())
    if (std::find(known.begin(), known.end(), key) == known.end())
      node.fail("the key \"" + key + "\" is not known here" + did_you_mean(key, known));
}

JsonNode JsonNode::child(const Json& value, const std::string& token) const {
  JsonNode node = *this;
  node.value_ = &value;
  node.pointer_ = pointer_ + "/" + escaped(token);
  return node;
}

}  // namespace xtape::model
