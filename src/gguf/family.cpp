#include "gguf/family.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <sstream>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "model/hugging_face/folder.hpp"
#include "model/hugging_face/mapping.hpp"

namespace xtape::gguf {

namespace {
JsonNode read_json(const std::string& path) {
  JsonNode node(read_file(path), path, JsonErrors::definition);
  if (node.has("extends"))
    return model::extended_mapping(read_json(path_in(folder_of(path), node.at("extends").text())), node);
  return node;
}

/// Returns the families of models/gguf, by the names of their files.
std::vector<JsonNode> all_families() {
  const std::string folder = path_in(models_directory(), "gguf");
  std::vector<std::string> names = names_in(folder);
  std::ranges::sort(names);
  std::vector<JsonNode> families;
  for (const std::string& name : names)
    if (name.ends_with(".json")) families.push_back(read_json(path_in(folder, name)));
  std::erase_if(families, [](const JsonNode& each) { return !each.has("architecture"); });
  return families;
}

std::string text_at(const JsonNode& node, const char* key) {
  return node.has(key) ? node.at(key).text() : "";
}

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char letter : name)
    if (letter == '.')
      words.emplace_back();
    else
      words.back() += letter;
  return words;
}

/// Returns `to` with the words for which the stars of `from` stand in `name`, or nothing if the name does not match.
/// Sets `part` to the number for which "#" stands.
std::optional<std::string> replaced(const std::string& name, const std::string& from, const std::string& to,
                                    std::int64_t& part) {
  const std::vector<std::string> words = words_of(name), pattern = words_of(from);
  std::vector<std::string> held;
  if (words.size() != pattern.size()) return std::nullopt;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool number = !words[i].empty() && words[i].find_first_not_of("0123456789") == std::string::npos;
    if (pattern[i] == "*" && number)
      held.push_back(words[i]);
    else if (pattern[i] == "#" && number && words[i].size() < 10)
      part = std::stoll(words[i]);
    else if (pattern[i] != words[i])
      return std::nullopt;
  }
  std::vector<std::string> result = words_of(to);
  std::size_t next = 0;
  for (std::string& word : result)
    if (word == "*") word = held.at(next++);
  return joined(result, {}, ".");
}

const TensorRule& plain_rule() {
  static const TensorRule plain;
  return plain;
}
}  // namespace

Family::Family(JsonNode node) : node_(std::move(node)) {
  node_.only({"about", "architecture", "when", "model_type", "config", "tensors", "rotary_factors", "ignored"});
  architecture_ = node_.at("architecture").text();
  model_type_ = node_.at("model_type").text();
  factors_ = text_at(node_, "rotary_factors");
  for (const auto& [theirs, rule] : node_.at("tensors").entries()) {
    if (rule.is_string()) {
      rules_.push_back({theirs, rule.text(), ""});
      continue;
    }
    rule.only({"name", "rows", "plus", "transposed"});
    rules_.push_back({theirs, rule.at("name").text(), text_at(rule, "rows"),
                      rule.has("plus") ? rule.at("plus").number() : 0,
                      rule.has("transposed") && rule.at("transposed").flag()});
  }
}

Family Family::of_file(const FileData& file) {
  const std::string& architecture = file.text(architecture_key);
  std::vector<std::string> known;
  std::optional<JsonNode> usual;
  for (const JsonNode& each : all_families()) {
    known.push_back(each.at("architecture").text());
    if (known.back() != architecture) continue;
    if (!each.has("when"))
      usual = each;
    else if (file.find(architecture + "." + each.at("when").text()) != nullptr)
      return Family(each);
  }
  if (usual) return Family(*usual);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  file.fail("the key '" + std::string(architecture_key) + "' is \"" + architecture + "\"; models/gguf has " +
            joined(known));
}

Family Family::of_model_type(const std::string& type) {
  std::vector<std::string> known;
  for (const JsonNode& each : all_families()) {
    known.push_back(each.at("model_type").text());
    if (known.back() == type) return Family(each);
  }
  throw DefinitionError("models of type '" + type + "' cannot be written as GGUF files; models/gguf has " +
                        joined(known));
}

Renamed Family::renamed(const std::string& tensor, bool in_folder) const {
  const std::size_t dot = tensor.rfind('.');
  if (dot == std::string::npos) return {tensor};
  const std::string name = tensor.substr(0, dot), last = tensor.substr(dot);
  for (const TensorRule& rule : rules_) {
    std::int64_t part = -1;
    const auto found =
        in_folder ? replaced(name, rule.theirs, rule.ours, part) : replaced(name, rule.ours, rule.theirs, part);
    if (!found) continue;
    const bool added = rule.plus == 0 || last == ".weight";  // biases of norms have nothing added
    return {*found + last, added ? &rule : &plain_rule(), part};
  }
  return {tensor};
}

std::optional<Json> Family::formula(const FileData& file, const std::string& text, std::string& missing) const {
  std::optional<Json> result;
  char operation = ' ';
  for (const std::string& word : model::words_in(text)) {
    if (word == "*" || word == "/") {
      operation = word[0];
      continue;
    }
    const Json* value = file.find(key_of(word));
    if (value == nullptr) {
      missing = key_of(word);
      return std::nullopt;
    }
    if (!result) {
      result = *value;
      continue;
    }
    if (!value->is_number() || !result->is_number() || value->get<double>() == 0)
      file.fail("the key '" + key_of(word) + "' must be a number other than 0, not " + shown(*value));
    const bool whole = result->is_number_integer() && value->is_number_integer();
    const double a = result->get<double>(), b = value->get<double>(), c = operation == '*' ? a * b : a / b;
    result = whole && c == std::floor(c) && std::abs(c) < 1e15 ? Json(static_cast<std::int64_t>(c)) : Json(c);
  }
  return result;
}

std::optional<Json> Family::value_of(const FileData& file, const JsonNode& source, std::string& missing) const {
  if (source.is_string()) return formula(file, source.text(), missing);
  if (source.is_array()) {
    for (const JsonNode& each : source.elements())
      if (const auto value = value_of(file, each, missing)) return value;
    return std::nullopt;
  }
  source.only({"key", "same", "values", "default", "float", "rows", "tensor", "without", "constant", "when"});
  if (source.has("when"))
    for (const auto& [key, wanted] : source.at("when").entries())
      if (const Json* value = file.find(key_of(key)); value == nullptr || *value != wanted.json()) return std::nullopt;
  if (source.has("constant")) return source.at("constant").json();
  if (source.has("tensor")) return file.find_tensor(source.at("tensor").text()) != nullptr;
  if (source.has("without")) return file.find_tensor(source.at("without").text()) == nullptr;
  if (source.has("rows")) {
    const std::size_t* tensor = file.find_tensor(source.at("rows").text());
    if (tensor == nullptr || file.tensors[*tensor].shape.empty()) {
      missing = source.at("rows").text();
      return std::nullopt;
    }
    return file.tensors[*tensor].shape[0];
  }
  const std::string& key = source.at("key").text();
  std::optional<Json> value = formula(file, key, missing);
  if (!value) return source.has("default") ? std::optional<Json>(source.at("default").json()) : std::nullopt;
  if (source.has("same"))
    for (const JsonNode& each : source.at("same").elements())
      if (const Json* other = file.find(key_of(each.text())); other != nullptr && *other != *value)
        file.fail("the key '" + key_of(each.text()) + "' is " + shown(*other) + "; models of type " + model_type_ +
                  " support only the value " + shown(*value) + " of '" + key_of(key) + "'");
  if (!source.has("values")) return value;
  const auto in_config = [&](const Json& each) {
    for (const auto& [theirs, ours] : source.at("values").entries())
      if (model::is_word(each, theirs)) return ours.json();
    file.fail("the key '" + key_of(key) + "' is " + shown(each) + "; models of type " + model_type_ + " support " +
              joined(source.at("values").entries(), [](const auto& entry) { return entry.first; }));
  };
  if (!value->is_array()) return in_config(*value);
  Json list = Json::array();
  for (const Json& each : *value) list.push_back(in_config(each));
  return list;
}

void Family::check_sizes(const FileData& file) const {
  std::int64_t widest = 0;
  for (const GgufFile::Tensor& tensor : file.tensors)
    for (const std::int64_t size : tensor.shape) widest = std::max(widest, size);
  const std::pair<const char*, std::int64_t> most[] = {{"block_count", std::ssize(file.tensors)},
                                                       {"embedding_length", widest},
                                                       {"feed_forward_length", widest},
                                                       {"attention.head_count", widest},
                                                       {"expert_count", widest}};
  for (const auto& [word, limit] : most)
    if (const Json* value = file.find(key_of(word)); value != nullptr && value->is_number() && *value > limit)
      file.fail("the key '" + key_of(word) + "' is " + shown(*value) + ", and the tensors have room for " +
                std::to_string(limit) + " at most");
}

Json Family::config(const FileData& file) const {
  check_sizes(file);
  Json config = Json::object();
  config["model_type"] = model_type_;
  for (const auto& [key, source] : node_.at("config").entries()) {
    std::string missing;
    if (const auto value = value_of(file, source, missing)) {
      if (!value->is_null()) model::set_key(config, key, *value);
    } else {
      file.fail("it has no '" + missing + "', which models of the architecture '" + architecture_ + "' need for '" +
                key + "'");
    }
  }
  if (!factors_.empty() && file.find_tensor(factors_) != nullptr) read_factors(file, config);
  add_unknown_keys(file, config);
  return config;
}

/// A key that belongs to the architecture and is not read is a key of the config, so that it gives the warning that
/// other unknown keys of configs give.
void Family::add_unknown_keys(const FileData& file, Json& config) const {
  std::string text = node_.at("config").json().dump() + (node_.has("ignored") ? node_.at("ignored").json().dump() : "");
  std::ranges::replace(text, '"', ' ');
  std::istringstream words(text);
  std::set<std::string> known{std::istream_iterator<std::string>(words), {}};
  if (node_.has("when")) known.insert(node_.at("when").text());
  const std::string prefix = architecture_ + ".";
  auto& entries = config.get_ref<Json::object_t&>();  // ordered JSON would search all keys for each insertion
  for (const auto& [key, value] : file.metadata.items())
    if (key.starts_with(prefix) && !known.contains(key.substr(prefix.size()))) entries.emplace_back(key, value);
}

namespace {
/// Returns the value in a file that stands for the config's value. Throws DefinitionError if there is none.
Json word_in_file(const JsonNode& source, const std::string& key, const Json& value) {
  if (!source.has("values")) return value;
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& each : value) list.push_back(word_in_file(source, key, each));
    return list;
  }
  for (const auto& [theirs, ours] : source.at("values").entries())
    if (ours.json() == value) return model::word_of(theirs);
  throw DefinitionError("a GGUF file cannot express '" + key + "' = " + shown(value));
}

double number_in(const std::vector<std::pair<std::string, Json>>& metadata, const std::string& key) {
  for (const auto& [name, value] : metadata)
    if (name == key && value.is_number()) return value.get<double>();
  throw DefinitionError("a GGUF file needs the key '" + key + "'");
}
}  // namespace

std::vector<std::pair<std::string, Json>> Family::metadata(const Json& config) const {
  std::vector<std::pair<std::string, Json>> metadata;
  const bool by_factors = !rotary_factors(config).empty();  // a tensor says it
  for (const auto& [key, entry] : node_.at("config").entries()) {
    if (by_factors && (key == rope + std::string("rope_type") || key == rope + std::string("factor"))) continue;
    const Json* value = model::find_key(config, key);
    JsonNode source = entry;
    if (entry.is_array())
      for (const JsonNode& each : entry.elements())
        if (source = each; each.is_string() || !each.has("when")) break;
    if (source.is_object() && source.has("constant")) {
      const Json& wanted = source.at("constant").json();
      if (value != nullptr && *value != wanted && !(model::is_off(wanted) && model::is_off(*value)) &&
          key != "architectures")
        throw DefinitionError("a GGUF file of a " + model_type_ + " cannot express '" + key + "' = " + shown(*value) +
                              ", only " + shown(wanted));
    }
    if (value == nullptr || value->is_null() || !(source.is_string() || source.has("key"))) continue;
    const std::vector<std::string> words =
        model::words_in(source.is_string() ? source.text() : source.at("key").text());
    Json written = source.is_string() ? *value : word_in_file(source, key, *value);
    if (words.size() > 1) {  // the first key of the formula is the unknown one
      double number = value->get<double>();
      for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
        const double other = number_in(metadata, key_of(words[i + 1]));
        number = words[i] == "*" ? number / other : number * other;
      }
      written = static_cast<std::int64_t>(std::llround(number));
    }
    if (!source.is_string() && source.has("float")) written = written.get<double>();
    if (std::ranges::find(metadata, key_of(words[0]), &std::pair<std::string, Json>::first) == metadata.end())
      metadata.emplace_back(key_of(words[0]), written);
    if (!source.is_string() && source.has("same"))
      for (const JsonNode& each : source.at("same").elements()) metadata.emplace_back(key_of(each.text()), written);
  }
  if (const Json* first = model::find_key(config, rope + std::string("original_max_position_embeddings"));
      by_factors && first != nullptr)
    metadata.emplace_back(key_of("rope.scaling.original_context_length"), *first);
  return metadata;
}

std::vector<std::int64_t> row_order(const std::string& rows, std::int64_t count, const Json& config,
                                    const std::string& where) {
  const std::size_t arrow = rows.find(" -> ");
  if (arrow == std::string::npos)
    throw DefinitionError("\"rows\": \"" + rows + "\" must have the form \"heads 2 d -> heads d 2\"");
  const std::vector<std::string> from = model::words_in(rows.substr(0, arrow)),
                                 to = model::words_in(rows.substr(arrow + 4));
  std::vector<std::int64_t> sizes;
  std::int64_t product = 1, unknown = -1;
  for (const std::string& word : from) {
    const Json* value = model::find_key(config, word);
    const bool number = word.find_first_not_of("0123456789") == std::string::npos;
    sizes.push_back(number                                           ? std::stoll(word)
                    : value != nullptr && value->is_number_integer() ? value->get<std::int64_t>()
                                                                     : 0);
    const std::int64_t size = sizes.back();
    if (size <= 0 && unknown < 0)
      unknown = std::ssize(sizes) - 1;
    else
      product = size <= 0 || size > count / product ? count + 1 : product * size;  // sizes may be the file's
  }
  if (unknown >= 0) sizes[static_cast<std::size_t>(unknown)] = product > count ? 0 : count / product;
  const std::int64_t all = unknown < 0 ? product : product * sizes[static_cast<std::size_t>(unknown)];
  if (all != count || count == 0 || from.size() != to.size() || !std::ranges::is_permutation(from, to))
    throw FileError(where + " has " + std::to_string(count) + " rows, which cannot be divided into \"" + rows + "\"");
  std::vector<std::int64_t> steps(sizes.size(), 1), order(static_cast<std::size_t>(count));
  for (std::size_t i = sizes.size(); i-- > 1;) steps[i - 1] = steps[i] * sizes[i];
  for (std::int64_t row = 0; row < count; ++row) {
    std::int64_t rest = row;
    for (std::size_t i = to.size(); i-- > 0;) {
      const auto axis = static_cast<std::size_t>(std::ranges::find(from, to[i]) - from.begin());
      order[static_cast<std::size_t>(row)] += rest % sizes[axis] * steps[axis];
      rest /= sizes[axis];
    }
  }
  return order;
}

}  // namespace xtape::gguf
