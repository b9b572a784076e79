// Writes a definition as one text. The text contains the used files under "files", and the values of the
// hyper-parameters. Under "hugging_face", it contains the mapping itself in place of its file name.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "model/definition/definition_blocks.hpp"
#include "model/hugging_face/mapping.hpp"
#include "model/language/interpreter.hpp"
#include "model/recording/model_data.hpp"

namespace xtape::model {

namespace {
/// Returns the value in the form that a definition uses. `names` are visible to the hyper-parameters.
Json json_of(const Value& value, const VisibleNames& names) {
  if (const auto* flag = value.as<bool>()) return *flag;
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  if (const auto* number = value.as<double>(); number != nullptr && std::isfinite(*number)) return *number;
  if (const auto* text = value.as<std::string>(); text != nullptr && names.of(*text) == Meaning::definition)
    return *text;
  return xtape::to_string(*hyper_value(value));
}

class Writer {
 public:
  explicit Writer(const ModelContext& context) : context_(context) {}

  Json run() {
    Json root = rewritten(*context_.definition);
    if (!files_.empty()) root["files"] = files_;
    return root;
  }

 private:
  Json rewritten(const Definition& definition) {
    Json json = extended(definition);
    json.erase("files");
    json.erase("extends");
    if (!definition.used.empty()) json["use"] = Json::array();
    for (const auto& used : definition.used) json["use"].push_back(key_of(*used.file, used.name));
    json.erase("defaults");
    for (const auto& [name, line] : definition.defaults) json["defaults"][name] = line.text;
    if (definition.hugging_face) json["hugging_face"] = definition.hugging_face->json;
    for (const auto& block : definition.blocks)
      if (block->from_file != nullptr) json["blocks"][block->name]["onnx"] = key_of(*block);
    const VisibleNames names{.home = &definition, .recording = false};
    if (json.contains("hyper"))
      for (auto& [name, value] : json["hyper"].items()) value = json_of(context_.hyper.at(&definition).at(name), names);
    return json;
  }

  /// Merges the entries of the file over the entries of the files that it extends.
  static Json extended(const Definition& definition) {
    std::vector<JsonNode> nodes = definition.extended;
    nodes.push_back(definition.node);
    Json json = Json::object();
    for (const JsonNode& node : nodes)
      for (const auto& [key, entry] : node.entries()) json[key] = entry.json();
    lay_over(nodes, {"hyper", "functions"}, {}, json);
    if (json.contains("blocks")) {
      Json::object_t blocks;  // with the changes of all files
      std::set<const Block*> of_used;
      for (const auto& [original, block] : definition.changed) of_used.insert(block);
      for (const auto& block : definition.blocks) {
        const Json& whole = block->node.json();
        blocks.push_back({block->name, of_used.contains(block.get()) ? Json{{"change", whole}} : whole});
      }
      json["blocks"] = std::move(blocks);
    }
    std::vector<JsonNode> models;
    for (const JsonNode& node : nodes)
      if (node.has("model")) models.push_back(node.at("model"));
    for (const JsonNode& model : models)
      for (const auto& [key, entry] : model.entries()) json["model"][key] = entry.json();
    if (!models.empty()) {
      lay_over(models, {"weights", "modules"}, {}, json["model"]);
      lay_over(models, {"functions"}, used_functions(definition), json["model"]);
    }
    return json;
  }

  static void lay_over(const std::vector<JsonNode>& nodes, const std::vector<std::string>& keys,
                       const Entries& inherited, Json& json) {
    for (const std::string& key : keys) {
      if (!json.contains(key)) continue;
      Json::object_t object;  // filled by push_back: looking up each name would be a linear search
      for (const auto& [name, entry] : merged(nodes, key, "", inherited)) object.push_back({name, entry.json()});
      json[key] = std::move(object);
    }
  }

  /// Returns the key of a used file in "files": the name under which it is used, with a number if another file has this
  /// name.
  std::string key_of(const Definition& definition, const std::string& used_as) {
    if (const auto found = keys_.find(&definition); found != keys_.end()) return found->second;
    std::string key = used_as;
    for (int i = 2; files_.contains(key); ++i) key = used_as + "#" + std::to_string(i);
    keys_[&definition] = key;
    files_[key] = nullptr;  // fixes the order: each file comes before the files that it uses
    Json inner = rewritten(definition);
    files_[key] = std::move(inner);
    return key;
  }

  /// Like the function above, for the file of a block. If several blocks use the same file, each block has its own
  /// entry with its own weights.
  std::string key_of(const Block& block) {
    std::string key = block.file;
    for (int i = 2; files_.contains(key); ++i) key = block.file + "#" + std::to_string(i);
    files_[key] = embedded_file(block);
    return key;
  }

  const ModelContext& context_;
  std::map<const Definition*, std::string> keys_;
  Json files_ = Json::object();
};
}  // namespace

std::string self_contained(const ModelContext& context) {
  return Writer(context).run().dump(2) + "\n";
}

}  // namespace xtape::model
