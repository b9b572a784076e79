#include <filesystem>

#include "json_source.hpp"
#include "recipe_parts.hpp"
#include "section.hpp"
#include "xtape/train.hpp"

namespace xtape {

using model::Json;
using train::Section;
namespace fs = std::filesystem;

namespace {
/// Keys that hold paths: relative to the recipe's file, or, from a setting, to the working directory.
constexpr const char* path_keys[] = {"definition", "data.text"};

std::string resolved(const std::string& path, const fs::path& directory) {
  const fs::path whole = (directory / path).lexically_normal();
  std::error_code none;
  // A definition without a directory may stand among the installed ones: then its name is kept as it is.
  if (!fs::exists(whole, none) && !fs::path(path).has_parent_path()) return path;
  return whole.string();
}

Json* find(Json& root, const std::string& dotted) {
  Json* value = &root;
  for (std::size_t at = 0; at <= dotted.size();) {
    const std::size_t dot = std::min(dotted.find('.', at), dotted.size());
    if (!value->is_object()) return nullptr;
    const auto child = value->find(dotted.substr(at, dot - at));
    if (child == value->end()) return nullptr;
    value = &*child;
    at = dot + 1;
  }
  return value;
}

void resolve_paths(Json& root, const fs::path& directory) {
  for (const char* key : path_keys)
    if (Json* value = find(root, key); value != nullptr && value->is_string())
      *value = resolved(value->get<std::string>(), directory);
}

void apply(Json& root, const Setting& setting) {
  Json* object = &root;
  std::size_t at = 0;
  for (std::size_t dot; (dot = setting.key.find('.', at)) != std::string::npos; at = dot + 1) {
    Json& child = (*object)[setting.key.substr(at, dot - at)];
    if (child.is_null()) child = Json::object();
    if (!child.is_object())
      throw DefinitionError("--set " + setting.key + ": '" + setting.key.substr(0, dot) + "' holds no keys");
    object = &child;
  }
  const Json parsed = Json::parse(setting.value, nullptr, false);
  Json& value = (*object)[setting.key.substr(at)];
  value = parsed.is_discarded() ? Json(setting.value) : parsed;
  for (const char* key : path_keys)
    if (setting.key == key) value = resolved(setting.value, fs::current_path());
}

HyperSetting read_hyper(const Section& section, const std::string& name, const Json& value) {
  if (value.is_string()) return {name, HyperSetting::From::text, value.get<std::string>()};
  if (value.is_number() || value.is_boolean()) return {name, HyperSetting::From::text, value.dump()};
  if (value.is_object() && value.size() == 1 && value.contains("from")) {
    if (value["from"] == "vocabulary") return {name, HyperSetting::From::vocabulary, ""};
    if (value["from"] == "columns") return {name, HyperSetting::From::columns, ""};
  }
  section.fail(name, R"(must be a number, true, false, a string, {"from": "vocabulary"} or {"from": "columns"}, not )" +
                         value.dump());
}

Recipe::Data read_data(Section section) {
  Recipe::Data data;
  section.need("kind");
  section.read("kind", data.kind);
  if (data.kind == "text") {
    if (!section.has("text")) section.fail("", "needs the key 'text', a file: give it with --set data.text=FILE");
    section.read("text", data.text);
    section.read("split", data.split);
    section.read("block_size", data.block_size);
  } else if (data.kind == "adder") {
    section.read("digits", data.adder.digits);
    section.read("held_out", data.adder.held_out);
    section.read("reversed", data.adder.reversed);
    section.read("padded", data.adder.padded);
  } else {
    section.fail("kind", "must be \"text\" or \"adder\", not \"" + data.kind + "\"");
  }
  section.done();
  return data;
}

void read_tokenizer(Section section, Recipe& recipe) {
  std::string kind = "character";
  std::string unknown = "error";
  section.read("kind", kind);
  if (kind != "character") section.fail("kind", "must be \"character\", not \"" + kind + "\"");
  section.read("unknown", unknown);
  if (unknown != "error" && unknown != "token")
    section.fail("unknown", "must be \"error\" or \"token\", not \"" + unknown + "\"");
  if (unknown == "token") recipe.unknown = CharacterTokenizer::Unknown::token;
  section.done();
}

void read_batch(Section section, Recipe& recipe) {
  section.need("size");
  section.read("size", recipe.batch_size);
  section.read("accumulate", recipe.trainer.accumulate);
  if (recipe.batch_size < 1) section.fail("size", "must be at least 1");
  if (recipe.trainer.accumulate < 1) section.fail("accumulate", "must be at least 1");
  section.done();
}

Recipe read_recipe(const Json& json, const model::JsonSource& source) {
  Recipe recipe;
  Section root(json, source);
  std::int64_t version = 0;
  for (const char* key : {"xtape", "name", "definition", "data", "batch", "optimizer", "schedule", "steps"})
    root.need(key);
  root.read("xtape", version);
  if (version != 1) root.fail("xtape", "must be 1: this program knows no other version");
  root.read("name", recipe.name);
  if (recipe.name.empty() || recipe.name.find('/') != std::string::npos)
    root.fail("name", "must be a name without '/': run directories are called after it");
  root.read("about", recipe.about);
  root.read("definition", recipe.definition);
  const Section hyper = root.section("hyper");
  for (const auto& [name, value] : hyper.json().items()) recipe.hyper.push_back(read_hyper(hyper, name, value));
  recipe.data = read_data(root.section("data"));
  read_tokenizer(root.section("tokenizer"), recipe);
  read_batch(root.section("batch"), recipe);
  recipe.trainer.optimizer = train::read_optimizer(root.section("optimizer"));
  root.read("steps", recipe.fit.steps);
  recipe.trainer.schedule = train::read_schedule(root.section("schedule"), recipe.fit.steps);
  root.read("clip", recipe.trainer.clip);
  if (!(recipe.trainer.clip >= 0)) root.fail("clip", "must be at least 0 (0: gradients are not clipped)");
  root.read("evaluate_every", recipe.fit.evaluate_every);
  recipe.checkpoint_every = recipe.fit.evaluate_every;
  root.read("checkpoint_every", recipe.checkpoint_every);
  root.read("keep", recipe.keep);
  if (recipe.keep < 1) root.fail("keep", "must be at least 1");
  root.read("seed", recipe.trainer.seed);
  std::int64_t threads = 0;
  root.read("threads", threads);
  recipe.trainer.threads = static_cast<int>(threads);
  root.done();
  return recipe;
}
}  // namespace

Setting Setting::parse(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  if (equals == std::string::npos || key.empty() || key.front() == '.' || key.back() == '.' ||
      key.find("..") != std::string::npos)
    throw DefinitionError("'" + text + "' is not of the form key=value");
  return {key, text.substr(equals + 1)};
}

Recipe Recipe::load(const std::string& path, const std::vector<Setting>& settings) {
  const std::string file = find_definition(path, "recipes");
  const auto source = model::parse_json(read_text(file), file);
  Json json = source->root;
  if (json.is_object()) {
    resolve_paths(json, fs::absolute(file).parent_path());
    for (const Setting& setting : settings) apply(json, setting);
  }
  Recipe recipe = read_recipe(json, *source);
  recipe.text = json.dump(2) + "\n";
  return recipe;
}

}  // namespace xtape
