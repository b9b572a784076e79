// The keys of `start`, the weights with which a run begins, and of `lora`, the adapters that it adds.
#include <algorithm>
#include <filesystem>

#include "model/definition/definition.hpp"
#include "model/hugging_face/folder.hpp"
#include "train/recipe/recipe_parts.hpp"

namespace xtape::train {

namespace {
void check_star(const Section& section, const std::string& key, const std::string& pattern) {
  if (pattern.empty() || std::ranges::count(pattern, '*') > 1)
    section.fail(key, "must be a name, or a pattern with one *, not \"" + pattern + "\"");
}

template <class Member>
Key<WeightSource>::Read pattern_of(Member member) {
  return [member](Section& section, const std::string& name, WeightSource& source) {
    section.read(name, source.*member);
    check_star(section, name, source.*member);
  };
}

void read_checkpoint(Section& section, const std::string& name, WeightSource& source) {
  if (!section.has(name)) return;
  const Json& value = section.value(name);
  try {
    source.checkpoint = CheckpointChoice::parse(value.is_string() ? value.get<std::string>() : value.dump());
  } catch (const Error& error) {
    section.fail(name, std::string("is wrong: ") + error.what());
  }
  if (source.checkpoint.kind == CheckpointChoice::Kind::average) section.fail(name, "must be a single checkpoint");
}

void read_rename(Section& section, const std::string& name, WeightSource& source) {
  if (!section.has(name)) return;
  const Section pairs = section.section(name);
  for (const auto& [from, to] : pairs.json().items()) {
    if (!to.is_string()) pairs.fail(from, "must be a name or a pattern, not " + to.dump());
    check_star(pairs, from, from);
    check_star(pairs, from, to.get<std::string>());
    source.rename.emplace_back(from, to.get<std::string>());
  }
}
}  // namespace

const Keys<WeightSource> start_keys = {
    {{{"from", &WeightSource::from, "a run, a safetensors or ONNX file, or a folder with safetensors files", a_path,
       needed},
      {"checkpoint", R"(`"last"`, `"best"`, integer)", "`\"last\"`", "of a run: the checkpoint", read_checkpoint},
      {"rename", "section", "", "patterns of the names of arrays, each with its name in place of it", read_rename},
      {"take", "string", "`\"*\"`", "a pattern of the arrays that are read", pattern_of(&WeightSource::take)},
      {"into", "string", "`\"*\"`", "the weights that they become", pattern_of(&WeightSource::into)}}}};

const Keys<LoraSettings> lora_keys = {
    {{{"rank", &LoraSettings::rank, "the rank of the adapters", Range{1, std::int64_t{1} << 20}, needed},
      {"alpha", &LoraSettings::alpha, "they are multiplied by `alpha / rank`",
       Bounds{.low = std::numeric_limits<double>::denorm_min(), .words = "above 0"}, otherwise("2 `rank`")},
      {"dropout", &LoraSettings::dropout, "the rate of the dropout before the adapters", Bounds{0, 1, "in [0, 1)"}},
      {"targets", &LoraSettings::targets, "names of the modules that get adapters; `\"*\"`: all linear maps",
       otherwise("`\"*\"`")}}}};

namespace {
/// Adds a pattern to a key that may be a text or a list.
void add_pattern(Json& root, const char* key, const std::string& pattern) {
  Json patterns = root.contains(key) ? root[key] : Json(Json::array());
  if (!patterns.is_array()) patterns = Json::array({patterns});
  if (std::ranges::find(patterns, Json(pattern)) == patterns.end()) patterns.push_back(pattern);
  root[key] = patterns;
}

/// Returns the definition with adapters of the one that a recipe names, or else of that of its folder.
std::string adapted(const Json& root, const Section& section) {
  const auto text = [&](const char* key) { return root.contains(key) && root[key].is_string(); };
  if (!text("definition") && !text("from"))
    section.fail("lora", "needs 'from' or 'definition': the model that gets adapters");
  std::string name = text("definition") ? root["definition"] : Json(model::definition_of_folder(root["from"]));
  const std::string ending = ".json";
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name.ends_with(model::adapter_suffix) ? name : name + model::adapter_suffix;
}

/// Whether this is the recipe of a run, whose definition is beside it.
bool is_of_run(const Json& root, const std::string& file) {
  return std::filesystem::path(file).filename() == "recipe.json" && root.contains("definition") &&
         std::filesystem::path(root["definition"].is_string() ? root["definition"] : "").filename() ==
             "definition.json";
}
}  // namespace

void resolve_lora(Json& root, const JsonNode& file, const std::vector<Setting>& settings) {
  if (!root.contains("lora")) return;
  Section section(root, file, settings);
  if (is_of_run(root, file.file()))
    section.fail("lora", "belongs to the beginning of a run, whose model has its adapters: it cannot change");
  LoraSettings lora;
  read_section(section.section("lora"), lora_keys, lora);
  root["definition"] = adapted(root, section);
  if (root.contains("frozen")) section.fail("frozen", "has no effect beside 'lora', which trains adapters alone");
  section.section("hyper");  // throws if it is no object
  const auto set = [&](const char* name, const Json& value) {
    Json& hyper = root["hyper"];
    if (hyper.contains(name)) section.fail("hyper", "has '" + std::string(name) + "', which 'lora' sets");
    hyper[name] = value;
  };
  set("rank", lora.rank);
  set("alpha", lora.alpha > 0 ? lora.alpha : 2.0 * static_cast<double>(lora.rank));
  set("lora_dropout_rate", lora.dropout);
  set("targets", xtape::to_string(Hyper::Value(Hyper::List(lora.targets.begin(), lora.targets.end()))));
  add_pattern(root, "initialise", "*.lora_?");
  add_pattern(root, "trainable", "*.lora_?");
  root.erase("lora");
}

}  // namespace xtape::train
