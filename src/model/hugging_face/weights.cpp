// The weights in the files of a folder.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "model/hugging_face/mapping.hpp"

namespace xtape::model {

namespace fs = std::filesystem;

namespace {
constexpr const char* weights_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";

bool same_values(const StoredWeight& a, const StoredWeight& b) {
  if (a.described().shape != b.described().shape || a.described().dtype != b.described().dtype) return false;
  const Array first = a.file->read(a.entry);
  const Array second = b.file->read(b.entry);
  return std::memcmp(first.data(), second.data(), first.bytes()) == 0;
}

std::string* find(Overrides& overrides, const std::string& name) {
  for (auto& [each, text] : overrides)
    if (each == name) return &text;
  return nullptr;
}
}  // namespace

bool has_weights(const std::string& folder) {
  return path_exists(folder + "/" + weights_file) || path_exists(folder + "/" + index_file);
}

std::vector<std::string> weight_file_names(const std::string& folder) {
  const std::string index = folder + "/" + index_file;
  if (path_exists(folder + "/" + weights_file)) return {weights_file};
  if (path_exists(index)) {
    std::set<std::string> names = {index_file};
    const JsonNode list(read_file(index), index, JsonErrors::file, JsonNumbers::any);
    for (const auto& [tensor, file] : list.at("weight_map").entries()) {
      if (fs::path(file.text()).has_parent_path() || file.text().empty())
        file.fail("the name of a file in this folder belongs here for '" + tensor + "', not \"" + file.text() + "\"");
      names.insert(file.text());
    }
    return {names.begin(), names.end()};
  }
  throw FileError(folder + " has no " + weights_file + " and no " + index_file +
                  ": weights can only be read from safetensors files");
}

std::vector<ArrayFile> weight_files(const std::string& folder) {
  std::vector<ArrayFile> files;
  for (const std::string& name : weight_file_names(folder))
    if (name != index_file) files.emplace_back(path_in(folder, name));
  return files;
}

std::vector<StoredWeight> tensors_of(const std::vector<ArrayFile>& files, const HuggingFaceMapping& mapping,
                                     std::vector<std::string>& skipped) {
  const auto bare = [&](const StoredWeight& each) {
    const std::string& name = each.described().name;
    return name.starts_with(mapping.prefix) ? name.substr(mapping.prefix.size()) : name;
  };
  std::vector<StoredWeight> stored, former;
  for (const ArrayFile& file : files)
    for (std::size_t i = 0; i < file.entries().size(); ++i) {
      StoredWeight each{"", &file, i};
      each.weight = present_name(mapping, bare(each));
      (each.weight == bare(each) ? stored : former).push_back(each);
    }
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < stored.size(); ++i) places.emplace(stored[i].weight, i);
  for (const StoredWeight& each : former) {
    const auto [place, fresh] = places.emplace(each.weight, stored.size());
    const StoredWeight& other = fresh ? each : stored[place->second];
    const std::string name = each.described().name;
    if (fresh) {
      stored.push_back(each);
    } else if (!same_values(other, each)) {
      if (!matches_any(bare(each), mapping.skip))
        throw FileError("'" + each.file->path() + "': the tensors '" + name + "' and '" + other.described().name +
                        "' are one weight of the definition, and they differ");
      skipped.push_back(name);
    }
  }
  return stored;
}

void settle_ties(const HuggingFaceMapping& mapping, std::vector<StoredWeight>& stored, Overrides& overrides) {
  for (const HuggingFaceMapping::Tie& tie : mapping.ties) {
    const auto named = [&](const std::string& name) {
      const std::string tensor = tensor_name(mapping, name);
      return std::ranges::find_if(stored, [&](const auto& each) { return each.weight == tensor; });
    };
    const auto weight = named(tie.weight);
    const auto other = named(tie.other);
    if (weight == stored.end() || other == stored.end()) continue;
    std::string* tied = find(overrides, tie.hyper);
    if (tied != nullptr && *tied == "false") continue;
    if (same_values(*weight, *other))
      stored.erase(weight);
    else if (tied != nullptr)
      *tied = "false";
    else
      overrides.emplace_back(tie.hyper, "false");
  }
}

void name_weights(const HuggingFaceMapping& mapping, const Store& weights, std::vector<StoredWeight>& stored,
                  std::vector<std::string>& skipped) {
  std::map<std::string, std::pair<std::string, std::int64_t>> ours;
  for (const Store::Entry& entry : weights) {
    const std::string tensor = tensor_name(mapping, entry.name);
    const std::optional<std::int64_t> count = tensors_of(tensor, entry.value.shape());
    if (!count) ours.emplace(tensor, std::pair(entry.name, StoredWeight::whole));
    for (std::int64_t i = 0; i < count.value_or(0); ++i) ours.emplace(numbered(tensor, i), std::pair(entry.name, i));
  }
  const auto skips = [&](const StoredWeight& each) {
    const bool skip = ours.count(each.weight) == 0 && matches_any(each.weight, mapping.skip);
    if (skip) skipped.push_back(each.described().name);
    return skip;
  };
  stored.erase(std::remove_if(stored.begin(), stored.end(), skips), stored.end());
  for (StoredWeight& each : stored)
    if (const auto found = ours.find(each.weight); found != ours.end())
      std::tie(each.weight, each.part) = found->second;
}

bool has_dtype(const std::vector<ArrayFile>& files, Dtype dtype) {
  return std::ranges::any_of(files, [&](const ArrayFile& file) {
    return std::ranges::any_of(
        file.entries(), [&](const ArrayFile::Entry& entry) { return entry.dtype == dtype && entry.shape.size() >= 2; });
  });
}

}  // namespace xtape::model
