#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/folder.hpp"
#include "model/hugging_face/mapping.hpp"

namespace xtape::model {

namespace {
/// Keys that never affect the computation of a model: the origin of the config, the dtype of weights, the outputs that
/// a program returns, and settings of generation.
const char* const ignored_by_all =
    "_* architectures auto_map bad_words_ids begin_suppress_tokens chunk_size_feed_forward diversity_penalty "
    "do_sample dtype early_stopping exponential_decay_length_penalty finetuning_task gradient_checkpointing id2label "
    "is_encoder_decoder keys_to_ignore_at_inference label2id length_penalty max_length min_length model_type "
    "*no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences output_attentions "
    "output_hidden_states output_past output_scores prefix quantization_config problem_type remove_invalid_values "
    "repetition_penalty return_dict return_dict_in_generate suppress_tokens task_specific_params temperature "
    "tf_legacy_loss *_token_id tokenizer_class top_k top_p torch_dtype torchscript transformers.js_config "
    "transformers_version typical_p use_bfloat16 use_cache";

/// Keys of generation_config.json that are read, or that do not change the tokens: the origin of the file, limits that
/// callers give, and the outputs and the memory of a program.
const char* const known_generation_keys =
    "_* bos_token_id cache_config cache_implementation decoder_start_token_id do_sample eos_token_id max_length "
    "max_new_tokens output_* pad_token_id return_* temperature top_k top_p transformers_version use_cache";

/// Splits a key at its first dot. The second element is empty if there is no dot.
std::pair<std::string, std::string> cut(const std::string& key) {
  const std::size_t dot = std::min(key.find('.'), key.size());
  return {key.substr(0, dot), key.substr(std::min(dot + 1, key.size()))};
}

void collect(const HuggingFaceMapping& mapping, const std::vector<std::string>& known, const Json& object,
             const std::string& before, std::vector<std::string>& unlisted) {
  for (const auto& [word, value] : object.items()) {
    const std::string key = before + word;
    if (value.is_null() || contains(known, key) || matches_any(key, mapping.ignored) ||
        matches_any(key, words_in(ignored_by_all)))
      continue;
    const bool holds_known =
        std::ranges::any_of(known, [&](const std::string& each) { return each.rfind(key + ".", 0) == 0; });
    if (value.is_object() && holds_known)
      collect(mapping, known, value, key + ".", unlisted);
    else if (!value.is_array() || !holds_known)
      unlisted.push_back(key);
  }
}
}  // namespace

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

bool is_off(const Json& value) {
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

bool is_element(const std::string& word) {
  return !word.empty() && word.size() < 6 && word.find_first_not_of("0123456789") == std::string::npos;
}

std::optional<JsonNode> find_key(const JsonNode& config, const std::string& key) {
  const auto [word, rest] = cut(key);
  std::optional<JsonNode> found;
  if (config.is_array() && is_element(word)) {
    const std::vector<JsonNode> elements = config.elements();
    if (const std::size_t i = std::stoul(word); i < elements.size()) found = elements[i];
  } else if (config.has(word)) {
    found = config.at(word);
  }
  return found && !rest.empty() ? find_key(*found, rest) : found;
}

const Json* find_key(const Json& config, const std::string& key) {
  const auto [word, rest] = cut(key);
  const Json* found = nullptr;
  if (config.is_array() && is_element(word)) {
    if (const std::size_t i = std::stoul(word); i < config.size()) found = &config[i];
  } else if (config.is_object() && config.contains(word)) {
    found = &config.at(word);
  }
  return found != nullptr && !rest.empty() ? find_key(*found, rest) : found;
}

Json plain(const Json& value) {
  const bool made = value.is_object() && value.size() == 1 && value.contains("__float__");
  const Json number = made && value["__float__"].is_string() ? word_of(value["__float__"].get<std::string>()) : Json();
  return number.is_number() ? number : value;
}

Json word_of(const std::string& text) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [word, value] : {std::pair{"Infinity", infinity}, {"-Infinity", -infinity}})
    if (text == word) return value;
  Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_discarded() || parsed.is_structured() ? Json(text) : parsed;
}

bool is_word(const Json& value, const std::string& text) {
  return value.is_string() ? value.get_ref<const std::string&>() == text : value == word_of(text);
}

std::string to_text(const Json& value) {
  if (value.is_string()) return xtape::to_string(Hyper::Value(value.get<std::string>()));
  if (!value.is_number_float() || std::isfinite(value.get<double>())) return value.dump();
  const double number = value.get<double>();
  return std::isnan(number) ? "NaN" : number > 0 ? "inf" : "-inf";
}

std::vector<std::string> class_names(const std::string& folder) {
  const JsonNode config = read_config(folder);
  if (!config.has("id2label")) return {};
  std::vector<std::string> names;
  const JsonNode labels = config.at("id2label");
  for (std::size_t i = 0; i < labels.entries().size(); ++i) {
    if (!labels.has(std::to_string(i)))
      labels.fail("there is no label " + std::to_string(i) + ": the keys count from 0");
    names.push_back(labels.at(std::to_string(i)).text());
  }
  return names;
}

void set_key(Json& config, const std::string& key, Json value) {
  const auto [word, rest] = cut(key);
  const bool element = config.is_array() && is_element(word);
  Json& location = element ? config[std::stoul(word)] : config[word];
  if (rest.empty()) {
    location = std::move(value);
    return;
  }
  const bool list = is_element(cut(rest).first) && (location.is_array() || location.is_null());
  if (list && location.is_null()) location = Json::array();
  if (!list && !location.is_object()) location = Json::object();
  set_key(location, rest, std::move(value));
}

void erase_key(Json& config, const std::string& key) {
  const auto [word, rest] = cut(key);
  if (!config.is_object() || !config.contains(word)) return;
  if (!rest.empty()) erase_key(config[word], rest);
  if (rest.empty() || (config[word].is_object() && config[word].empty())) config.erase(word);
}

std::vector<std::string> unlisted_keys(const HuggingFaceMapping& mapping, const Json& config) {
  std::vector<std::string> known, unlisted;
  for (const auto& setting : mapping.settings) known.insert(known.end(), setting.keys.begin(), setting.keys.end());
  for (const auto& [key, value] : mapping.config) known.push_back(key);
  collect(mapping, known, config, "", unlisted);
  return unlisted;
}

std::vector<std::string> unlisted_generation_keys(const JsonNode& config) {
  std::vector<std::string> keys;
  for (const auto& [key, node] : config.entries()) {
    const Json value = plain(node.json());
    const bool neutral = is_off(value) || value == 0 || value == 1;  // 1 is a factor, or a number of beams
    if (!neutral && !matches_any(key, words_in(known_generation_keys))) keys.push_back(key);
  }
  return keys;
}

// The files of a folder by their names: which of them are read, and which do not matter.

namespace {
/// Files that never matter: descriptions, licences, pictures, code, states of trainings, the same weights in other
/// formats, and templates of conversations, because prompts are complete texts. A star matches no dot.
const char* const irrelevant_files =
    ".* *.md LICENSE* LICENCE* NOTICE* Notice* USE_POLICY* *.png *.jpg *.jpeg *.gif *.svg *.webp *.pdf *.py *.ipynb "
    "*.log all_results.json eval_results.json train_results.json trainer_state.json *.bin *.bin.index.json *.pt *.pth "
    "*.ckpt *.h5 *.h5.index.json *.msgpack *.msgpack.index.json *.ot *.onnx *.onnx_data *.gguf chat_template.jinja "
    "chat_template.json";

/// Returns the regular files of a folder that are neither `read` nor irrelevant, in alphabetical order.
std::vector<std::string> others(const std::string& folder, const std::vector<std::string>& read) {
  std::vector<std::string> names = xtape::names_in(folder);
  const std::vector<std::string> irrelevant = words_in(irrelevant_files);
  const auto known = [&](const std::string& name) {
    return contains(read, name) || matches_any(name, irrelevant) || !is_plain_file(path_in(folder, name));
  };
  names.erase(std::remove_if(names.begin(), names.end(), known), names.end());
  std::ranges::sort(names);
  return names;
}
}  // namespace

const std::vector<std::string>& side_files() {
  static const std::vector<std::string> names = words_in(
      "tokenizer.json tokenizer.model spiece.model vocab.json merges.txt vocab.txt tokenizer_config.json "
      "added_tokens.json special_tokens_map.json generation_config.json preprocessor_config.json");
  return names;
}

std::vector<std::string> unread_files(const std::string& folder) {
  std::vector<std::string> read = side_files();
  read.insert(read.end(), {config_file, definition_file});
  if (path_exists(path_in(folder, adapter_config_file)))  // there is a warning of its own for adapters
    read.insert(read.end(), {adapter_config_file, adapter_weights_file});
  if (has_weights(folder))
    for (const std::string& name : weight_file_names(folder)) read.push_back(name);
  return others(folder, read);
}

std::vector<std::string> unread_adapter_files(const std::string& folder) {
  return others(folder, {adapter_config_file, adapter_weights_file});
}

}  // namespace xtape::model
