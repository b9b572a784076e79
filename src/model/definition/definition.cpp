#include "model/definition/definition.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "model/definition/checks.hpp"
#include "model/definition/definition_blocks.hpp"
#include "model/hugging_face/mapping.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

namespace {
/// Reads a text, or a list of the lines of a text.
std::string read_about(const JsonNode& node) {
  return node.is_array() ? joined(
                               node.elements(), [](const JsonNode& line) { return line.text(); }, " ")
                         : node.text();
}

/// Returns the hint for an error about a missing file: a similar name in its directory.
std::string file_like(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), none))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);  // the order of a directory is not defined
  return did_you_mean(path.filename().string(), names);
}

/// Reads each file once and detects cycles of files that use each other.
class Reader {
 public:
  std::shared_ptr<const Definition> file(const std::string& path) {
    return add(canonical(path), [&] { return opened(path); });
  }

  std::shared_ptr<const Definition> text(const std::string& text, const std::string& name) {
    return add(name, [&] { return JsonNode(text, name, JsonErrors::definition); });
  }

 private:
  JsonNode opened(const std::string& path) {
    const std::string base = adapted_definition(path);
    return base.empty() ? JsonNode(read_file(path), path, JsonErrors::definition) : with_adapters(path, base);
  }

  /// Returns the definition `path`, which is not a file: the changes that add adapters to the definition `base`. They
  /// are those of the definition with adapters that stands beside one which `base` extends, or else those of linear
  /// maps.
  JsonNode with_adapters(const std::string& path, const std::string& base) {
    std::optional<JsonNode> changes, mapping;
    JsonNode node = opened(base);
    for (std::size_t depth = 0; depth < deepest; ++depth) {
      if (!mapping && node.has("hugging_face")) mapping = node.at("hugging_face");
      if (!node.has("extends")) break;
      const Source source = source_of(node.at("extends"), node.file());
      const std::string beside =
          std::filesystem::path(source.key).replace_extension().string() + adapter_suffix + ".json";
      if (!changes && is_plain_file(beside)) changes = opened(beside);
      node = source.open();
    }
    if (!changes) {
      const char* const file = "changes/lora.json";
      const std::string beside = (std::filesystem::path(base).parent_path() / file).string();
      changes = opened(is_plain_file(beside) ? beside : models_directory() + "/" + file);
    }
    Entries entries = changes->entries();
    std::erase_if(entries, [&](const auto& entry) {
      return is_one_of("name extends", entry.first) ||
             (entry.first == "hugging_face" && (!mapping || mapping->is_null()));
    });
    const Json own = {{"name", std::filesystem::path(path).stem().string()}, {"extends", canonical(base)}};
    for (const auto& entry : JsonNode(own.dump(), path, JsonErrors::definition).entries()) entries.push_back(entry);
    return changes->with_entries(entries);
  }

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

  /// A file that another file names. `key` is its key in `done_`, and `open` opens it.
  struct Source {
    std::string key;
    std::function<JsonNode()> open;
  };

  Source source_of(const JsonNode& entry, const std::string& from) {
    const std::string& name = entry.text();
    if (embedded_.has(name)) return {name, [this, name] { return embedded_.at(name); }};
    std::string path = (std::filesystem::path(from).parent_path() / name).string();
    std::error_code none;
    const auto missing = [&] {
      return !std::filesystem::is_regular_file(path, none) && adapted_definition(path).empty();
    };
    if (missing()) {
      const std::string beside = path;
      path = (std::filesystem::path(models_directory()) / name).string();
      if (missing())
        entry.fail("cannot find '" + name + "': neither " + beside + " nor " + path + " is a file" + file_like(path));
    }
    return {canonical(path), [this, path] { return opened(path); }};
  }

  std::shared_ptr<const Definition> use(const JsonNode& entry, const std::string& from) {
    const Source source = source_of(entry, from);
    if (contains(reading_, source.key))
      entry.fail("'" + entry.text() + "' uses this file: files cannot use each other in a cycle");
    if (reading_.size() == deepest) entry.fail("files use each other more than " + std::to_string(deepest) + " deep");
    return add(source.key, source.open);
  }

  void add_used(Definition& definition, const JsonNode& entry) {
    const std::shared_ptr<const Definition> file = use(entry, entry.file());
    const auto same = [&](const Definition::Used& other) { return other.file == file; };
    if (std::ranges::any_of(definition.used, same)) return;
    for (const auto& block : file->blocks)
      if (definition.find_block(block->name) != nullptr)
        entry.fail("its block '" + block->name + "' is in another used file already");
    definition.used.push_back({entry.text(), file});
  }

  /// Returns a file and the files that it extends. The base file comes first.
  std::vector<JsonNode> extended_by(const JsonNode& node) {
    std::vector<JsonNode> nodes = {node};
    std::vector<std::string> keys;
    while (nodes.back().has("extends")) {
      const JsonNode entry = nodes.back().at("extends");
      const Source source = source_of(entry, entry.file());
      if (source.key == reading_.back() || contains(keys, source.key))
        entry.fail("'" + entry.text() + "' extends this file: files cannot extend each other in a cycle");
      keys.push_back(source.key);
      nodes.push_back(source.open());
    }
    std::ranges::reverse(nodes);
    return nodes;
  }

  /// Returns the files. Where the change of a block is the path of a file, the contents of this file replace the path.
  std::vector<JsonNode> with_changes(std::vector<JsonNode> nodes) {
    for (JsonNode& node : nodes) {
      if (!node.has("blocks")) continue;
      Entries blocks = node.at("blocks").entries();
      for (auto& [name, entry] : blocks) {
        if (!is_change(entry)) continue;
        Entries parts = entry.entries();
        for (auto& [key, part] : parts)
          if (key == "change" && part.is_string()) part = source_of(part, part.file()).open();
        entry = entry.with_entries(parts);
      }
      node = node.with_entries({{"blocks", node.at("blocks").with_entries(blocks)}});
    }
    return nodes;
  }

  /// Returns the mapping to folders that `entry` describes. The entry is the mapping itself, or the path of a file that
  /// contains it. If the mapping extends another mapping, returns it merged over the other mapping.
  JsonNode mapping_of(const JsonNode& entry, std::size_t depth) {
    const JsonNode node = entry.is_string() ? source_of(entry, entry.file()).open() : entry;
    if (!node.has("extends")) return node;
    if (depth == deepest) entry.fail("mappings extend each other more than " + std::to_string(deepest) + " deep");
    return extended_mapping(mapping_of(node.at("extends"), depth + 1), node);
  }

  static void check_version(const JsonNode& node) {
    const JsonNode version = node.at("xtape");
    if (version.json() == 1)
      version.fail(
          "a definition of version 1 is not read: write \"xtape\": 2, \"modules\" in place of \"parts\", and in scan "
          "'valid' and 'non_sequences' in place of 'real' and 'alike'");
    if (version.json() != format_version)
      version.fail("this program reads definitions of version " + std::to_string(format_version));
  }

  void read(Definition& definition) {
    const std::vector<JsonNode> nodes = extended_by(definition.node);
    definition.extended.assign(nodes.begin(), nodes.end() - 1);
    for (const JsonNode& node : nodes) {
      check_version(node);
      node.only({"xtape", "name", "about", "extends", "use", "hyper", "defaults", "hugging_face", "blocks", "functions",
                 "model", "files"});
      if (node.has("name")) definition.name = node.at("name").text();
      if (node.has("about")) definition.about = read_about(node.at("about"));
      if (node.has("use"))
        for (const JsonNode& entry : node.at("use").elements()) add_used(definition, entry);
    }
    if (nodes.size() > 1) {
      refuse_slips(nodes, "hyper", {});
      refuse_slips(nodes, "blocks", definition.block_names());
    }
    definition.hyper = read_parameters(merged(nodes, "hyper", "hyper"));
    definition.hyper_index = index_of(definition.hyper);
    std::optional<JsonNode> mapping;
    for (const JsonNode& node : nodes) {
      if (!node.has("hugging_face")) continue;
      const JsonNode entry = node.at("hugging_face").owned_by("hugging_face");
      if (entry.is_null()) mapping.reset();
      if (entry.is_null()) continue;
      const bool changes = entry.is_object() && entry.has("change");
      if (changes && !mapping) entry.fail("there is no mapping to change: no file that this one extends has any");
      if (changes) entry.only({"change"});
      mapping = changes ? extended_mapping(*mapping, mapping_of(entry.at("change"), 0)) : mapping_of(entry, 0);
    }
    if (mapping) {
      std::vector<std::string> names;
      for (const Parameter& each : definition.hyper) names.push_back(each.name);
      definition.hugging_face = std::make_shared<const HuggingFaceMapping>(read_hugging_face(*mapping, names));
    }
    Entries used;
    for (const Definition::Used& each : definition.used)
      for (const auto& block : each.file->blocks) used.emplace_back(block->name, block->node);
    read_blocks(definition, merged(with_changes(nodes), "blocks", "", used));
    keep_changed(definition, nodes);
    for (const auto& block : definition.blocks) definition.reachable.insert(block->name);
    for (const Definition::Used& each : definition.used)
      definition.reachable.insert(each.file->reachable.begin(), each.file->reachable.end());
    read_model_of(definition, nodes);
    for (const JsonNode& node : nodes)
      if (node.has("defaults")) read_defaults(definition, node.at("defaults").owned_by("defaults"));
  }

  /// Notes which blocks of used files the files change. Other blocks of such a name hide the used file's block.
  static void keep_changed(Definition& definition, const std::vector<JsonNode>& nodes) {
    const auto changes = [&](const std::string& name) {
      const auto has = [&](const JsonNode& node) { return node.has("blocks") && node.at("blocks").has(name); };
      const auto first = std::ranges::find_if(nodes, has);
      return first != nodes.end() && is_change(first->at("blocks").at(name));
    };
    for (const Definition::Used& each : definition.used)
      for (const auto& block : each.file->blocks)
        if (changes(block->name)) definition.changed.emplace(block.get(), definition.block_index.at(block->name));
  }

  static void read_defaults(Definition& definition, const JsonNode& node) {
    std::vector<std::string> known;
    for (const std::string& block : definition.block_names())
      for (const Parameter& each : definition.find_block(block)->parameters) known.push_back(each.name);
    for (const auto& [name, line] : read_settings(node)) {
      if (!contains(known, name))
        fail(line.location, "no block of this file or of those that it uses has a parameter '" + name + "'" +
                                did_you_mean(name, known));
      definition.defaults[name] = line;
    }
  }

  /// Throws DefinitionError if a new name is probably a misspelling of an existing name. Otherwise the misspelt name
  /// would silently add an entry instead of replacing one.
  static void refuse_slips(const std::vector<JsonNode>& nodes, const char* key, std::vector<std::string> known) {
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i)
      if (nodes[i].has(key))
        for (const auto& entry : nodes[i].at(key).entries()) known.push_back(entry.first);
    if (!nodes.back().has(key)) return;
    for (const auto& [name, entry] : nodes.back().at(key).entries()) {
      if (contains(known, name)) continue;
      for (const std::string& meant : known)
        if (is_slip(name, meant, true))
          entry.fail_at_key("the extended file has no '" + name + "'; did you mean '" + meant +
                            "'? (A new name must differ by more than one misspelt letter.)");
    }
  }

  static void read_model_of(Definition& definition, const std::vector<JsonNode>& nodes) {
    std::vector<JsonNode> models;
    for (const JsonNode& node : nodes)
      if (node.has("model")) models.push_back(node.at("model").owned_by("model"));
    if (models.empty()) return;
    for (const JsonNode& node : nodes)
      if (node.has("functions"))
        node.at("functions")
            .fail_at_key("a model's functions belong in \"model\"; only files for use by others have them here");
    definition.model = read_model(models, definition);
    definition.functions =
        read_functions(merged(models, "functions", "", used_functions(definition)), *definition.model);
    for (const JsonNode& node : models)
      if (node.has("functions"))
        for (const auto& [name, entry] : node.at("functions").entries())
          entry.is_null() ? void(definition.removed.insert(name)) : void(definition.removed.erase(name));
    for (const Function& function : definition.functions)
      definition.function_index.emplace(function.name, definition.function_index.size());
    add_used_functions(definition);
  }

  /// Adds the functions of used files, unless the model defines or removes functions of the same names. The lines of
  /// the added functions see the same names as the model's own lines.
  static void add_used_functions(Definition& definition) {
    const std::size_t own = definition.functions.size();
    for (const auto& [name, file] : definition.used)
      for (const auto& entry : shared_functions(*file)) {
        if (definition.removed.count(entry.first) != 0) continue;
        const auto [known, is_new] = definition.function_index.emplace(entry.first, definition.functions.size());
        if (is_new)
          definition.functions.push_back(read_functions({entry}, *definition.model).front());
        else if (known->second >= own)
          entry.second.fail_at_key("another used file has a function '" + entry.first + "' too");
      }
  }

  /// Modules refer to blocks by name. Therefore the first loop adds all blocks with only their names, and the second
  /// loop reads them. A block hides one of this name in a used file.
  void read_blocks(Definition& definition, const Entries& entries) {
    for (const auto& [name, entry] : entries) {
      definition.blocks.push_back(std::make_unique<Block>());
      definition.blocks.back()->name = name;
      definition.block_index.emplace(name, definition.blocks.back().get());
    }
    auto bare = definition.blocks.begin();
    for (const auto& [name, plain] : entries) {
      const JsonNode entry = plain.owned_by("block '" + name + "'");
      **bare++ =
          std::move(*(entry.has("onnx") ? read_file_block(name, entry, block_source(entry.at("onnx")), definition)
                                        : read_block(name, entry, definition)));
    }
  }

  BlockSource block_source(const JsonNode& named) const {
    const std::string& file = named.text();
    if (embedded_.has(file)) return {file, embedded_.at(file), true};
    return {(std::filesystem::path(named.file()).parent_path() / file).string()};
  }

  std::map<std::string, std::shared_ptr<const Definition>> done_;
  std::vector<std::string> reading_;
  JsonNode embedded_;
};
}  // namespace

const Block* Definition::find_block(const std::string& name) const {
  if (const auto own = block_index.find(name); own != block_index.end()) return own->second;
  for (const Used& each : used)
    if (const auto found = each.file->block_index.find(name); found != each.file->block_index.end())
      return found->second;
  return nullptr;
}

const Block* Definition::in_place_of(const Block* block) const {
  const auto found = changed.find(block);
  return found == changed.end() ? block : found->second;
}

const Function* Definition::find_function(const std::string& name) const {
  const auto found = function_index.find(name);
  return found == function_index.end() ? nullptr : &functions[found->second];
}

std::vector<std::string> Definition::block_names() const {
  std::vector<std::string> names;
  for (const auto& block : blocks) names.push_back(block->name);
  for (const auto& each : used)
    for (const auto& block : each.file->blocks) names.push_back(block->name);
  return names;
}

std::shared_ptr<const Definition> read_definition(const std::string& path) {
  return Reader().file(path);
}

std::shared_ptr<const Definition> parse_definition(const std::string& text, const std::string& file) {
  return Reader().text(text, file);
}

}  // namespace xtape::model
