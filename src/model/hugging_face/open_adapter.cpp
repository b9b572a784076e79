// Reads low-rank adapters in the format of PEFT.
#include <cstring>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "base/system/system.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/folder.hpp"
#include "xtape/hugging_face.hpp"

namespace xtape {

namespace fs = std::filesystem;

namespace model {
namespace {
constexpr std::int64_t most_rank = std::int64_t{1} << 20;

/// Keys of features that change what adapters compute. Each key must be null, false or empty, because these features
/// are not supported.
constexpr const char* refused =
    "alora_invocation_tokens alpha_pattern arrow_config kasa_config layer_replication lora_bias megatron_config "
    "modules_to_save monteclora_config rank_pattern target_parameters trainable_token_indices use_bdlora use_dora "
    "use_qalora";
/// Keys that the reader uses or that do not affect a trained adapter. They describe its origin, its training, and the
/// modules with adapters, which the tensor names determine.
constexpr const char* known =
    "auto_mapping base_model_name_or_path bias corda_config ensure_weight_tying eva_config exclude_modules "
    "fan_in_fan_out inference_mode init_lora_weights layers_pattern layers_to_transform loftq_config lora_alpha "
    "lora_dropout lora_ga_config megatron_core peft_type peft_version qalora_group_size r revision runtime_config "
    "target_modules task_type use_rslora velora_config";
/// The ending of the name of a base weight that PEFT stores with the adapters of an embedding or of the head.
constexpr const char* kept_base = ".base_layer.weight";
/// Prefixes of the names of initialisations that subtract the initial adapter from the base weights.
constexpr const char* residual_starts = "corda loftq lora_ga olora pissa";

/// Returns the beginning of a value, for errors.
std::string brief(const Json& value) {
  constexpr std::size_t most = 80;
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= most ? text : text.substr(0, most) + "…";
}

JsonNode read_adapter_config(const std::string& folder, const std::string& shown) {
  const std::string file = path_in(folder, adapter_config_file);
  if (!path_exists(file))
    throw FileError(folder + " has no " + adapter_config_file + ": it is not a folder of adapters");
  const JsonNode config(read_file(file), shown, JsonErrors::definition);
  if (!config.is_object()) config.fail("an object belongs here");
  return config;
}

std::string adapter_file(const std::string& folder) {
  const std::string file = path_in(folder, adapter_weights_file);
  if (!path_exists(folder)) throw FileError("there are no adapters at " + folder + ": no folder or file has this name");
  if (!path_exists(file))
    throw FileError(folder + " has no " + adapter_weights_file + ": adapters can only be read from a safetensors file");
  return file;
}

std::mutex mutex;
std::map<std::string, AdapterReader>& readers() {
  static std::map<std::string, AdapterReader> by_ending;
  return by_ending;
}

AdapterReader reader_of(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const auto& [ending, reader] : readers())
    if (path.ends_with(ending) && is_plain_file(path)) return reader;
  return nullptr;
}

/// Returns all modules of `model` whose weight is a matrix. Maps the name of each module in a folder to its name in the
/// model.
std::map<std::string, std::string> modules_of(const Model& model, const HuggingFaceMapping& mapping) {
  std::map<std::string, std::string> modules;
  for (const Store::Entry& entry : model.weights())
    if (entry.value.shape().size() == 2 && entry.name.ends_with(".weight"))
      modules.emplace(cut_last(written_name(mapping, entry.name)).first, cut_last(entry.name).first);
  return modules;
}

std::string tuple_of(const std::vector<std::string>& texts) {
  Hyper::List list(texts.begin(), texts.end());
  return xtape::to_string(Hyper::Value(list));
}
}  // namespace

void set_adapter_reader(const std::string& ending, AdapterReader reader) {
  const std::lock_guard<std::mutex> lock(mutex);
  readers()[ending] = reader;
}

AdapterFolder::Opened AdapterFolder::opened(const std::string& folder, const std::string& base) {
  const AdapterReader reader = reader_of(folder);
  if (reader == nullptr) {
    const std::string file = adapter_file(folder);
    return {read_adapter_config(folder, path_in(folder, adapter_config_file)), ArrayFile(file), file};
  }
  struct Temporary {
    ~Temporary() { remove_if_possible(folder); }  // the open file stays readable
    std::string folder;
  } const temporary{temporary_path("adapter", "")};
  reader(folder, base, temporary.folder);
  return {read_adapter_config(temporary.folder, folder), ArrayFile(adapter_file(temporary.folder)), folder};
}

AdapterFolder::AdapterFolder(const std::string& folder, const std::string& base)
    : AdapterFolder(opened(folder, base)) {}

AdapterFolder::AdapterFolder(Opened opened)
    : config_(std::move(opened.config)), file_(std::move(opened.file)), path_(std::move(opened.path)) {
  read_config();
  for (std::size_t i = 0; i < file_.entries().size(); ++i) {
    const ArrayFile::Entry& entry = file_.entries()[i];
    const bool is_a = entry.name.ends_with(adapter_a), is_b = entry.name.ends_with(adapter_b);
    const std::size_t before = std::strlen(adapter_prefix), around = before + std::strlen(adapter_a);
    if (!entry.name.starts_with(adapter_prefix) || !(is_a || is_b) || entry.name.size() <= around)
      throw FileError("'" + path() + "' has '" + entry.name + "': " +
                      (entry.name.find(".lora_embedding_") != std::string::npos || entry.name.ends_with(kept_base)
                           ? "adapters of embeddings or of the head are not supported; those of a linear map are "
                           : "the adapters of a linear map are ") +
                      adapter_prefix + "MODULE" + adapter_a + " and " + adapter_b);
    check_shape(entry, is_a ? 0 : 1);
    const std::string module = entry.name.substr(before, entry.name.size() - around);
    Pair& pair = pairs_[module];
    (is_a ? pair.a : pair.b) = entry.name;
    (is_a ? pair.a_entry : pair.b_entry) = i;
  }
  if (pairs_.empty()) throw FileError("'" + path() + "' has no adapters");
  for (const auto& [module, pair] : pairs_)
    if (pair.a.empty() || pair.b.empty())
      throw FileError("'" + path() + "' has '" + (pair.a.empty() ? pair.b : pair.a) + "' and no '" + adapter_prefix +
                      module + (pair.a.empty() ? adapter_a : adapter_b) + "': an adapter needs both");
}

void AdapterFolder::read_config() {
  const JsonNode type = config_.at("peft_type");
  if (type.json() != "LORA") type.fail("'peft_type' is " + brief(type.json()) + ", and only \"LORA\" is supported");
  for (const auto& [key, value] : config_.entries())
    if (is_one_of(refused, key) && !model::is_off(value.json()))
      value.fail("'" + key + "' is " + brief(value.json()) +
                 ", which is not supported: it must be null, false or empty");
  if (config_.has("bias") && config_.at("bias").json() != "none")
    config_.at("bias").fail("'bias' is " + brief(config_.at("bias").json()) + ", and only \"none\" is supported");
  if (config_.has("init_lora_weights") && config_.at("init_lora_weights").is_string())
    for (const std::string& word : words_in(residual_starts))
      if (with_ascii_in_lower_case(config_.at("init_lora_weights").text()).starts_with(word))
        config_.at("init_lora_weights")
            .fail("'init_lora_weights' is " + brief(config_.at("init_lora_weights").json()) +
                  ", whose adapters belong to other weights than those of the base: PEFT converts them when it saves "
                  "them");
  rank_ = 8;  // the default of PEFT, also for lora_alpha
  if (!config_.has("r")) return;
  const JsonNode rank = config_.at("r");
  const bool fits = rank.json().is_number_integer() && rank.json() >= 1 && rank.json() <= most_rank;
  if (!fits)
    rank.fail("'r' is " + brief(rank.json()) + ": a rank is an integer from 1 to " + std::to_string(most_rank));
  rank_ = rank.integer(1, most_rank);
}

void AdapterFolder::check_shape(const ArrayFile::Entry& entry, std::size_t axis) const {
  if (entry.shape.size() == 2 && entry.shape[axis] == rank_) return;
  const std::string message = "'r' is " + std::to_string(rank_) + ", but '" + entry.name + "' in '" + path() + "' is " +
                              to_string(entry.shape) + ": " + (axis == 0 ? "it is [r, in]" : "it is [out, r]");
  if (config_.has("r")) config_.at("r").fail(message);
  config_.fail(message);
}

/// Throws if target_modules is a list that lacks a module with tensors, or that names a module of `modules` without
/// tensors.
void AdapterFolder::check_targets(const std::map<std::string, std::string>& modules) const {
  if (!config_.has("target_modules") || !config_.at("target_modules").is_array()) return;
  std::map<std::string, JsonNode> targets;
  for (const JsonNode& each : config_.at("target_modules").elements()) targets.emplace(each.text(), each);
  const auto target_of = [&](const std::string& module) -> const JsonNode* {
    for (const std::string& ending : endings_of(module))
      if (const auto found = targets.find(ending); found != targets.end()) return &found->second;
    return nullptr;
  };
  for (const auto& [module, pair] : pairs_)
    if (target_of(module) == nullptr)
      config_.at("target_modules")
          .fail("'target_modules' does not name '" + module + "', of which '" + path() + "' has '" + pair.a + "'");
  for (const char* key : {"exclude_modules", "layers_to_transform"})
    if (config_.has(key) && !model::is_off(config_.at(key).json())) return;
  for (const auto& [module, name] : modules)
    if (const JsonNode* target = target_of(module); target != nullptr && pairs_.count(module) == 0)
      target->fail("'target_modules' names '" + module + "', and '" + path() + "' has no '" + adapter_prefix + module +
                   adapter_a + "'");
}

Overrides AdapterFolder::hyper(const HuggingFaceMapping::Adapter& mapping) const {
  const auto number = [&](const char* key, const char* otherwise) {
    if (!config_.has(key)) return std::string(otherwise);
    config_.at(key).number();  // throws if the value is not a number
    return config_.at(key).json().dump();
  };
  std::string alpha = number("lora_alpha", "8");
  if (config_.has("use_rslora") && !config_.at("use_rslora").is_null() && config_.at("use_rslora").flag())
    alpha += " * sqrt(" + std::to_string(rank_) + ")";
  const std::string dropout = number("lora_dropout", "0.0");
  if (const double share = std::stod(dropout); !(share >= 0 && share < 1))
    config_.at("lora_dropout").fail("'lora_dropout' is " + dropout + ": it is a number from 0 to below 1");
  Overrides overrides;
  for (const auto& [key, value] :
       {std::pair("r", std::to_string(rank_)), {"lora_alpha", alpha}, {"lora_dropout", dropout}})
    if (const auto name = mapping.hyper.find(key); name != mapping.hyper.end())
      overrides.emplace_back(name->second, value);
  return overrides;
}

std::vector<StoredWeight> AdapterFolder::weights(const Model& base, const HuggingFaceMapping& mapping,
                                                 Overrides& overrides) const {
  const std::map<std::string, std::string> modules = modules_of(base, mapping);
  std::vector<std::string> names;
  for (const auto& each : modules) names.push_back(each.first);
  std::vector<StoredWeight> stored;
  std::set<std::string> adapted;
  for (const auto& [module, pair] : pairs_) {
    const auto found = modules.find(module);
    if (found == modules.end())
      throw FileError("'" + path() + "' has '" + pair.a + "', but model '" + base.name() + "' has no linear map '" +
                      module + "'" + did_you_mean(module, names));
    adapted.insert(found->second);
    stored.push_back({found->second + "." + mapping.adapter->a, &file_, pair.a_entry});
    stored.push_back({found->second + "." + mapping.adapter->b, &file_, pair.b_entry});
  }
  check_targets(modules);
  if (const auto targets = mapping.adapter->hyper.find("target_modules"); targets != mapping.adapter->hyper.end())
    overrides.emplace_back(targets->second,
                           tuple_of(shortest_endings(adapted, modules_around(base.weights().names()))));
  return stored;
}

std::vector<std::string> AdapterFolder::unlisted_keys() const {
  std::vector<std::string> unlisted;
  for (const auto& [key, value] : config_.entries())
    if (!model::is_off(value.json()) && !is_one_of(known, key) && !is_one_of(refused, key)) unlisted.push_back(key);
  return unlisted;
}
}  // namespace model

bool is_adapter(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(fs::path(path) / model::adapter_config_file, none) && !is_hugging_face(path);
}

std::string base_of_adapter(const std::string& folder) {
  const JsonNode config = model::read_adapter_config(folder, path_in(folder, model::adapter_config_file));
  const JsonNode base = config.at("base_model_name_or_path");
  const std::string named = base.is_null() ? "" : base.text();
  for (const fs::path& path : {fs::path(named), fs::path(folder) / named})
    if (!named.empty() && xtape::is_hugging_face(path.string())) return path.string();
  base.fail("'base_model_name_or_path' is " + model::brief(base.json()) +
            ", which is no folder with a config.json: name the folder of the base, and the adapter beside it");
}

}  // namespace xtape
