// A definition in one text: the used files stand inside under "files", the entry "hugging_face" in its place, and
// hyper-parameters have their values.
#include <cmath>

#include "model_data.hpp"

namespace xtape::model {

namespace {
/// As a definition would say it.
Json json_of(const Value& value) {
  if (const auto* flag = value.as<bool>()) return *flag;
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  if (const auto* text = value.as<std::string>()) return xtape::to_string(Hyper::Value(*text));
  const double number = value.number();
  if (!std::isfinite(number)) return xtape::to_string(Hyper::Value(number));
  return number;
}

class Writer {
 public:
  explicit Writer(const World& world) : world_(world) {}

  Json run() {
    Json root = rewritten(*world_.definition);
    if (!files_.empty()) root["files"] = files_;
    return root;
  }

 private:
  Json rewritten(const Definition& definition) {
    Json json = definition.node.json();
    json.erase("files");
    if (json.contains("use"))
      for (std::size_t i = 0; i < definition.used.size(); ++i)
        json["use"][i] = key_of(*definition.used[i], json["use"][i]);
    if (definition.hugging_face) json["hugging_face"] = definition.hugging_face->json;
    if (json.contains("hyper"))
      for (auto& [name, value] : json["hyper"].items()) value = json_of(world_.hyper.at(&definition).at(name));
    return json;
  }

  /// The name under which a used file stands in "files": the one it was used by, told apart where that is taken.
  std::string key_of(const Definition& definition, const std::string& used_as) {
    if (const auto found = keys_.find(&definition); found != keys_.end()) return found->second;
    std::string key = used_as;
    for (int i = 2; files_.contains(key); ++i) key = used_as + "#" + std::to_string(i);
    keys_[&definition] = key;
    files_[key] = nullptr;  // holds the place: files that are used stand behind those that use them
    Json inner = rewritten(definition);
    files_[key] = std::move(inner);
    return key;
  }

  const World& world_;
  std::map<const Definition*, std::string> keys_;
  Json files_ = Json::object();
};
}  // namespace

std::string self_contained(const World& world) {
  return Writer(world).run().dump(2) + "\n";
}

}  // namespace xtape::model
