#include "definition.hpp"

#include <algorithm>
#include <filesystem>

#include "definition_blocks.hpp"
#include "files.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

namespace {
/// Reads files, each once, and notices when they use each other in a circle.
class Reader {
 public:
  std::shared_ptr<const Definition> file(const std::string& path) {
    return add(canonical(path), [&] { return JsonNode(read_file(path), path, JsonErrors::definition); });
  }

  std::shared_ptr<const Definition> text(const std::string& text, const std::string& name) {
    return add(name, [&] { return JsonNode(text, name, JsonErrors::definition); });
  }

 private:
  static std::string canonical(const std::string& path) {
    std::error_code none;
    return std::filesystem::weakly_canonical(path, none).string();
  }

  template <class Open>
  std::shared_ptr<const Definition> add(const std::string& key, const Open& open) {
    if (const auto found = done_.find(key); found != done_.end()) return found->second;
    auto definition = std::make_shared<Definition>();
    definition->node = open();
    definition->file = definition->node.file();
    if (definition->node.has("files")) embedded_ = definition->node.at("files");
    reading_.push_back(key);
    read(*definition);
    reading_.pop_back();
    done_.emplace(key, definition);
    return definition;
  }

  /// Where the file is that an entry of the file `from` names: beside that file, or among the installed models.
  static std::string located(const JsonNode& entry, const std::string& from) {
    const std::string& name = entry.text();
    const std::string beside = (std::filesystem::path(from).parent_path() / name).string();
    std::error_code none;
    if (std::filesystem::is_regular_file(beside, none)) return beside;
    const std::string installed = (std::filesystem::path(models_directory()) / name).string();
    if (!std::filesystem::is_regular_file(installed, none))
      entry.fail("cannot find '" + name + "': neither " + beside + " nor " + installed + " is a file");
    return installed;
  }

  std::shared_ptr<const Definition> use(const JsonNode& entry, const std::string& from) {
    const std::string& name = entry.text();
    const bool inside = embedded_.has(name);
    const std::string path = inside ? "" : located(entry, from);
    const std::string key = inside ? name : canonical(path);
    if (std::find(reading_.begin(), reading_.end(), key) != reading_.end())
      entry.fail("'" + name + "' uses this file in turn: files cannot use each other in a circle");
    if (reading_.size() == deepest) entry.fail("files use each other more than " + std::to_string(deepest) + " deep");
    return inside ? add(key, [&] { return embedded_.at(name); }) : file(path);
  }

  void add_used(Definition& definition, const JsonNode& entry) {
    const std::shared_ptr<const Definition> file = use(entry, definition.file);
    for (const auto& block : file->blocks)
      if (definition.find_block(block->name) != nullptr)
        entry.fail("its block '" + block->name + "' is in another used file already");
    definition.used.push_back(file);
  }

  void read(Definition& definition) {
    const JsonNode& node = definition.node;
    node.only({"xtape", "name", "about", "use", "hyper", "hugging_face", "blocks", "functions", "model", "files"});
    const JsonNode version = node.at("xtape");
    if (version.json() != 1) version.fail("this program reads definitions of version 1");
    if (node.has("name")) definition.name = node.at("name").text();
    if (node.has("about")) definition.about = node.at("about").text();
    if (node.has("use"))
      for (const JsonNode& entry : node.at("use").elements()) add_used(definition, entry);
    if (node.has("hyper")) definition.hyper = read_parameters(node.at("hyper").owned_by("hyper"));
    if (node.has("hugging_face")) {
      std::vector<std::string> names;
      for (const Parameter& each : definition.hyper) names.push_back(each.name);
      const JsonNode entry = node.at("hugging_face").owned_by("hugging_face");
      definition.hugging_face = read_hugging_face(entry.is_string() ? mapping(entry, definition.file) : entry, names);
    }
    if (node.has("blocks")) read_blocks(definition, node.at("blocks"));
    if (node.has("model")) {
      const JsonNode model = node.at("model").owned_by("model");
      definition.model = read_model(model, definition);
      definition.functions = read_functions(model.at("functions"), *definition.model);
      if (node.has("functions"))
        node.at("functions").fail_at_key("a model's functions stand in \"model\"; here stand those of files that are used");
      add_used_functions(definition);
    }
  }

  /// An entry "hugging_face" that stands in a file of its own.
  static JsonNode mapping(const JsonNode& entry, const std::string& from) {
    const std::string path = located(entry, from);
    return JsonNode(read_file(path), path, JsonErrors::definition);
  }

  /// What the model does not define itself, it has from the files that it uses. Their lines see what its own lines see.
  static void add_used_functions(Definition& definition) {
    const std::vector<Function>& functions = definition.functions;
    const std::size_t own = functions.size();
    for (const auto& file : definition.used) {
      if (!file->node.has("functions")) continue;
      const JsonNode shared = file->node.at("functions");
      for (Function& function : read_functions(shared, *definition.model)) {
        const auto same = [&](const Function& other) { return other.name == function.name; };
        const auto known = std::find_if(functions.begin(), functions.end(), same);
        if (known == functions.end())
          definition.functions.push_back(std::move(function));
        else if (known - functions.begin() >= static_cast<std::ptrdiff_t>(own))
          shared.at(function.name).fail_at_key("another used file has a function '" + function.name + "' too");
      }
    }
  }

  /// Parts name blocks, so all names must be known before any block is read: each is entered as a bare name first.
  static void read_blocks(Definition& definition, const JsonNode& node) {
    for (const auto& [name, entry] : node.entries()) {
      if (name.empty() || name[0] == '=') entry.fail_at_key("a block needs a name, and none that begins with '='");
      if (definition.find_block(name) != nullptr)
        entry.fail("a used file has a block '" + name + "' already: give this one another name");
      definition.blocks.push_back(std::make_unique<Block>());
      definition.blocks.back()->name = name;
    }
    auto bare = definition.blocks.begin();
    for (const auto& [name, entry] : node.entries())
      **bare++ = std::move(*read_block(name, entry.owned_by("block '" + name + "'"), definition));
  }

  std::map<std::string, std::shared_ptr<const Definition>> done_;
  std::vector<std::string> reading_;
  JsonNode embedded_;
};
}  // namespace

const Block* Definition::find_block(const std::string& name) const {
  for (const auto& block : blocks)
    if (block->name == name) return block.get();
  for (const auto& file : used)
    for (const auto& block : file->blocks)
      if (block->name == name) return block.get();
  return nullptr;
}

std::vector<std::string> Definition::block_names() const {
  std::vector<std::string> names;
  for (const auto& block : blocks) names.push_back(block->name);
  for (const auto& file : used)
    for (const auto& block : file->blocks) names.push_back(block->name);
  return names;
}

std::shared_ptr<const Definition> read_definition(const std::string& path) {
  return Reader().file(path);
}

std::shared_ptr<const Definition> parse_definition(const std::string& text, const std::string& file) {
  return Reader().text(text, file);
}

}  // namespace xtape::model
