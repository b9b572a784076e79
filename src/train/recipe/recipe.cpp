#include <filesystem>

#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
#include "model/language/formula.hpp"
#include "player/plan/memory.hpp"
#include "train/data/data_kind.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/recipe/section.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/train.hpp"

namespace xtape {

using train::Section;
namespace fs = std::filesystem;

namespace {
/// Keys whose values are paths. In the recipe, paths are relative to its directory. In settings, they are relative to
/// the working directory.
constexpr const char* path_keys[] = {
    "definition",       "from",          "adapter", "data.folder", "tokenizer.vocabulary", "tokenizer.vocab",
    "tokenizer.merges", "tokenizer.path"};

std::string resolved(const std::string& key, const std::string& path, const fs::path& directory) {
  const fs::path whole = (directory / path).lexically_normal();
  // A definition without a directory may be an installed definition, so its name is kept if there is no such file.
  if (key == path_keys[0] && !is_plain_file(whole.string()) && !fs::path(path).has_parent_path()) return path;
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

/// Resolves the paths whose keys begin with `prefix`.
void resolve_paths(Json& root, const fs::path& directory, const std::string& prefix = "") {
  for (const std::string key : path_keys)
    if (Json* value = find(root, key); key.starts_with(prefix) && value != nullptr && value->is_string())
      *value = resolved(key, value->get<std::string>(), directory);
}

/// Returns the value of a setting: its text parsed as JSON, or the text itself if it is not valid JSON.
Json value_of(const Setting& setting) {
  try {
    return JsonText(setting.value, "--set " + setting.key, JsonErrors::definition).root();
  } catch (const DefinitionError&) {
    return setting.value;
  }
}

/// Removes keys whose value is null. A null setting thus unsets a key of the recipe.
void drop_nulls(Json& value) {
  if (!value.is_structured()) return;
  for (auto each = value.begin(); each != value.end();) {
    if (value.is_object() && each->is_null()) {
      each = value.erase(each);
    } else {
      if (!value.is_object() || each.key() != "changes") drop_nulls(*each);  // a former value may be null
      ++each;
    }
  }
}

fs::path working_directory() {
  std::error_code failed;
  const fs::path here = fs::current_path(failed);
  if (failed) throw FileError("cannot get the working directory: " + failed.message());
  return here;
}

/// If a recipe starts from a folder of adapters, changes it to start from their base model, with the adapters.
void resolve_adapter(Json& root) {
  const Json* from = find(root, "from");
  if (from == nullptr || !from->is_string() || root.contains("adapter")) return;
  const std::string folder = from->get<std::string>();
  if (!is_adapter(folder)) return;
  root["from"] = fs::absolute(base_of_adapter(folder)).lexically_normal().string();
  root["adapter"] = folder;
}

/// Resolves the paths of the data's files. If the data has a folder, the paths stay relative to this folder.
void resolve_files(Json& root, const fs::path& directory, const std::vector<Setting>& settings) {
  const bool in_folder = find(root, "data.folder") != nullptr;
  std::vector<std::string> names = {"source", "target"};
  for (const train::DataKind* kind : train::data_kinds()) names.emplace_back(kind->files);
  for (const std::string part : {"", "validation_", "test_"})
    for (const std::string& name : names) {
      const std::string key = "data." + part + name;
      Json* value = find(root, key);
      if (value == nullptr) continue;
      bool set = false;
      for (const Setting& each : settings) {
        set = set || each.key == key || each.key == "data";
        if (each.key == key && !value->is_string() && !value->is_array())
          *value = each.value;  // a path may also be valid JSON, such as "2020"
      }
      const auto resolve = [&](Json& file) {
        if (file == "-")
          file = train::standard_input;
        else if (file.is_string() && !in_folder)
          file = resolved(key, file.get<std::string>(), set ? working_directory() : directory);
      };
      if (value->is_array())
        std::for_each(value->begin(), value->end(), resolve);
      else
        resolve(*value);
    }
}

void apply(Json& root, const Setting& setting) {
  Json* object = &root;
  std::size_t at = 0;
  for (std::size_t dot; (dot = setting.key.find('.', at)) != std::string::npos; at = dot + 1) {
    Json& child = (*object)[setting.key.substr(at, dot - at)];
    if (child.is_null()) child = Json::object();
    if (!child.is_object())
      throw DefinitionError("--set " + setting.key + ": '" + setting.key.substr(0, dot) + "' is not an object");
    object = &child;
  }
  const fs::path here = working_directory();
  Json& value = (*object)[setting.key.substr(at)];
  value = value_of(setting);
  // A path is always text, even if it is also valid JSON, such as "2020".
  for (const char* key : path_keys)
    if (setting.key == key && !value.is_null()) value = resolved(key, setting.value, here);
  resolve_paths(root, here, setting.key + ".");
}

HyperSetting read_hyper(const Section& section, const std::string& name, const Json& value, const Recipe::Data& data) {
  if (value.is_string()) return {name, value.get<std::string>()};
  if (value.is_number() || value.is_boolean()) return {name, value.dump()};
  if (!value.is_object() || value.size() != 1 || !value.contains("from") || !value["from"].is_string())
    section.fail(name, R"(must be a number, true, false, a string, or {"from": "vocabulary"}, not )" + value.dump());
  const std::string text = value["from"];
  try {
    model::check_formula(text, train::kind_of(data).size_names(data), "\"from\"");
  } catch (const DefinitionError& error) {
    section.fail(name, std::string("is not a valid expression over the data: ") + error.what());
  }
  return {name, text, true};
}

/// Reads the length of the training, and the intervals of evaluations and checkpoints.
void read_lengths(Section& root, Recipe& recipe) {
  root.read("steps", recipe.fit.steps);
  root.read("epochs", recipe.fit.epochs);
  if (recipe.fit.steps == 0 && recipe.fit.epochs == 0) {
    for (const char* key : {"steps", "epochs"})
      if (root.has(key)) root.fail(key, "must be above 0: a recipe has 'steps' or 'epochs'");
    root.fail("", "needs the key 'steps' or 'epochs'");
  }
  const auto need_epochs = [&](const char* key, const char* what) {
    if (!recipe.data.has_epochs())
      root.fail(key, std::string(what) +
                         "needs epochs, which this data does not have: rows, and "
                         "text with 'windows' \"consecutive\" have them");
  };
  if (recipe.fit.epochs > 0) need_epochs("epochs", "");
  const auto often = [&](const char* key, std::int64_t& every, bool& flag) {
    if (!root.has(key)) return;
    flag = root.read_or(key, every, "epoch");
    if (!flag) return;
    need_epochs(key, "\"epoch\" ");
    every = 0;
  };
  recipe.fit.evaluate_epochs = recipe.fit.epochs > 0;
  often("evaluate_every", recipe.fit.evaluate_every, recipe.fit.evaluate_epochs);
  recipe.checkpoint_every = recipe.fit.evaluate_every;
  recipe.checkpoint_epochs = recipe.fit.evaluate_epochs;
  often("checkpoint_every", recipe.checkpoint_every, recipe.checkpoint_epochs);
  root.read("patience", recipe.fit.patience);
  if (recipe.fit.patience > 0 && recipe.fit.evaluate_every == 0 && !recipe.fit.evaluate_epochs)
    root.fail("patience", "needs evaluations before the last update: give 'evaluate_every'");
  root.read("statistics_every", recipe.fit.statistics_every);
  root.read("watch", recipe.fit.watch);
  root.read("watch_every", recipe.fit.watch_every, {.low = 1});
  if (root.read_or("keep", recipe.keep, "all", {.low = 1})) recipe.keep = 0;
  std::vector<std::string> measures;
  root.read("measure", measures);
  for (const std::string& measure : measures) {
    if (measure != "bleu" && measure != "exact_match")
      root.fail("measure", R"(must be a list of "bleu" and "exact_match", without ")" + measure + "\"");
    if (!recipe.data.has_answers()) root.fail("measure", "needs pairs, or documents with a 'prompt_end'");
    (measure == "bleu" ? recipe.measure_bleu : recipe.measure_exact_match) = true;
  }
}

std::size_t read_memory(Section& root) {
  const Json& value = root.value("memory");
  if (value.is_null()) return 0;
  const auto bytes = value.is_string() ? bytes_in(value.get<std::string>()) : std::nullopt;
  if (!bytes)
    root.fail("memory", "must be a size such as \"300 MiB\", not " + value.dump() + "; the units are " + byte_units);
  return *bytes;
}

void read_privacy(Section& root, Recipe& recipe) {
  if (!root.has("privacy")) return;
  recipe.trainer.privacy = train::read_privacy(root.section("privacy"));
  if (!recipe.data.has_rows())
    root.fail("privacy",
              "protects rows, which data of kind 'text' does not have: documents, pairs and tables have them");
  if (recipe.batch_tokens > 0)
    root.fail("privacy",
              "needs 'batch.size', so that an update has each row with the same probability, not "
              "'batch.tokens'");
  if (recipe.trainer.precision == Precision::bf16)
    root.fail("privacy", "needs 'precision' \"float32\" or \"bf16x3\": norms of gradients are not exact in \"bf16\"");
}

Recipe read_recipe(const Json& json, const JsonNode& file, const std::vector<Setting>& settings) {
  Recipe recipe;
  TrainerOptions& trainer = recipe.trainer;
  Section root(json, file, settings);
  std::int64_t version = 0, threads = 0;
  root.need({"xtape", "name", "data", "batch", "optimizer", "schedule"});
  root.read("from", recipe.from);
  root.read("adapter", recipe.adapter);
  if (!recipe.adapter.empty() && recipe.from.empty()) root.fail("adapter", "needs 'from', the folder of its base");
  if (recipe.from.empty() && !root.has("definition")) root.fail("", "needs the key 'definition' or 'from'");
  root.read("xtape", version);
  if (version != 1) root.fail("xtape", "must be 1: other versions are not supported");
  root.read("name", recipe.name);
  if (recipe.name.empty() || recipe.name.find('/') != std::string::npos)
    root.fail("name", "must be a name without '/': run directories are named after it");
  if (root.has("about") && root.value("about").is_array()) {
    std::vector<std::string> lines;
    root.read("about", lines);
    recipe.about = joined(lines, std::identity{}, " ");
  } else {
    root.read("about", recipe.about);
  }
  root.read("definition", recipe.definition);
  root.read("original", recipe.original);
  root.read("initialise", recipe.initialise);
  root.read("frozen", trainer.frozen);
  root.read("trainable", trainer.trainable);
  root.exclude("trainable", "frozen");
  if (root.has("trainable") && trainer.trainable.empty()) root.fail("trainable", "names no weight to train");
  train::read_data(root.section("data"), recipe);
  const Section hyper = root.section("hyper");
  for (const auto& [name, value] : hyper.json().items())
    recipe.hyper.push_back(read_hyper(hyper, name, value, recipe.data));
  if (!recipe.data.has_tokens() && root.has("tokenizer"))
    root.fail("tokenizer", "is for texts, not for " + recipe.data.kind);
  if (root.has("tokenizer") || recipe.from.empty()) {
    recipe.tokenizer = train::read_tokenizer(root.section("tokenizer"));
  } else {  // uses the tokenizer of the folder's model
    recipe.tokenizer.kind = "saved";
    recipe.tokenizer.path = recipe.from;
  }
  if (recipe.tokenizer.kind == "gpt2" && recipe.data.has_rows())
    root.fail("tokenizer", "is \"gpt2\", which has no padding and start tokens: it needs data of kind 'text', not '" +
                               recipe.data.kind + "'");
  train::read_batch(root.section("batch"), recipe);
  train::read_optimizer(root.section("optimizer"), trainer);
  read_lengths(root, recipe);
  trainer.schedule = train::read_schedule(root.section("schedule"), recipe.fit);
  root.read("clip", trainer.clip, {.low = 0, .words = "at least 0 (0: gradients are not clipped)"});
  for (const char* name : {"float16", "fp16"})
    if (root.value("precision") == name)
      root.fail("precision",
                "must be \"float32\", \"bf16x3\" or \"bf16\": small gradients would be 0 in float16, which "
                "has no faster products here either; use \"bf16\"");
  root.read("precision", trainer.precision, {"float32", "bf16x3", "bf16"});
  read_privacy(root, recipe);
  trainer.memory = read_memory(root);
  recipe.search = train::read_search(root.section("search"));
  root.read("seed", trainer.seed);
  root.read("threads", threads, {0, most_threads});
  trainer.threads = static_cast<int>(threads);
  for (Section& change : root.sections("changes")) {  // the record of a run
    change.need({"until_step", "was"});
    std::int64_t step = 0;
    change.read("until_step", step);
    change.section("was");
    change.done();
  }
  root.done();
  return recipe;
}
}  // namespace

Setting Setting::parse(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  if (equals == std::string::npos || key.empty() || key.front() == '.' || key.back() == '.' ||
      key.find("..") != std::string::npos)
    throw DefinitionError("'" + text + "' must have the form key=value");
  return {key, text.substr(equals + 1)};
}

namespace {
/// A recipe with its settings, as text and as JSON.
struct Loaded {
  JsonNode source;
  Json json;
  std::string text;
};

Loaded loaded(const std::string& file, const std::vector<Setting>& settings) {
  Loaded made{JsonNode(read_file(file), file, JsonErrors::definition), {}, {}};
  made.json = made.source.json();
  if (made.json.is_object()) {
    resolve_paths(made.json, fs::absolute(file).parent_path());
    for (const Setting& setting : settings) apply(made.json, setting);
    drop_nulls(made.json);
    resolve_adapter(made.json);
    resolve_files(made.json, fs::absolute(file).parent_path(), settings);
  }
  try {
    made.text = made.json.dump(2) + "\n";
  } catch (const Json::exception&) {
    throw DefinitionError(file + ": a setting or a path is not UTF-8");
  }
  return made;
}
}  // namespace

std::string train::recipe_text(const std::string& file) {
  return loaded(file, {}).text;
}

Recipe Recipe::load(const std::string& path, const std::vector<Setting>& settings) {
  const Loaded made = loaded(find_definition(path, "recipes"), settings);
  Recipe recipe = read_recipe(made.json, made.source, settings);
  recipe.text = made.text;
  return recipe;
}

}  // namespace xtape
