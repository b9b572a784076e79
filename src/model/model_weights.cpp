// A model's weights in files.
#include <algorithm>
#include <map>

#include "convert.hpp"
#include "model_data.hpp"
#include "narrow_weights.hpp"
#include "nearest.hpp"
#include "stored_weights.hpp"
#include "weight_patterns.hpp"

namespace xtape {

namespace {
/// Reads an array into `to`, and converts it if the file has another float dtype and `to` is no half.
void read_into(const ArrayFile& file, std::size_t entry, Array& to) {
  const Dtype dtype = file.entries()[entry].dtype;
  if (dtype == to.dtype() || is_half(dtype))
    file.read(entry, to);
  else
    convert_floats(file.read(entry), to);
}
}  // namespace

void Model::save_weights(const std::string& path) const {
  save_arrays(path, weights(), {{"format", "pt"}, {"model", name()}});
}

void Model::load_weights(const std::string& path) {
  const ArrayFile file(path);
  std::vector<model::StoredWeight> stored;
  for (std::size_t i = 0; i < file.entries().size(); ++i) stored.push_back({file.entries()[i].name, &file, i});
  model::read_weights(weights(), stored, "'" + path + "'", name());
}

std::map<std::string, const model::StoredWeight*> model::check_weights(const Store& weights,
                                                                       const std::vector<StoredWeight>& stored,
                                                                       const std::string& where,
                                                                       const std::string& model,
                                                                       const std::vector<std::string>& may_lack) {
  constexpr int most_listed = 100;
  std::string problems;
  int count = 0;
  const auto list = [&](const auto& describe) {
    if (++count <= most_listed) problems += "\n  " + describe();
  };
  std::map<std::string, const StoredWeight*> found;
  std::vector<std::string> missing;  // which an unexpected one may mean
  std::vector<const StoredWeight*> unexpected, again;
  for (const StoredWeight& each : stored) {
    if (weights.find(each.weight) == nullptr)
      unexpected.push_back(&each);
    else if (!found.emplace(each.weight, &each).second)
      again.push_back(&each);
  }
  for (const Store::Entry& entry : weights) {
    const auto location = found.find(entry.name);
    if (location == found.end()) {
      missing.push_back(entry.name);
      if (matches_weight(entry.name, may_lack)) continue;
      list([&] { return "missing: " + entry.name + " " + to_string(entry.value.shape()); });
      continue;
    }
    const ArrayFile::Entry& described = location->second->described();
    if (described.shape != entry.value.shape())
      list([&] {
        return "of another shape: " + described.name + " is " + to_string(described.shape) + ", the model's is " +
               to_string(entry.value.shape());
      });
    else if (described.dtype != entry.value.dtype() &&
             !(is_floating(described.dtype) && is_floating(entry.value.dtype())))
      list([&] {
        return "of another dtype: " + described.name + " is " + name_of(described.dtype) + ", the model's is " +
               name_of(entry.value.dtype());
      });
  }
  for (const StoredWeight* each : unexpected)
    list([&] { return "unexpected: " + each->described().name + did_you_mean(each->weight, missing); });
  for (const StoredWeight* each : again) list([&] { return "there twice: " + each->described().name; });
  if (count > most_listed) problems += "\n  and " + std::to_string(count - most_listed) + " more";
  if (count > 0) throw FileError("the weights in " + where + " do not fit model '" + model + "':" + problems);
  return found;
}

void model::read_weights(const Store& weights, const std::vector<StoredWeight>& stored, const std::string& where,
                         const std::string& model, const std::vector<std::string>& may_lack) {
  const std::map<std::string, const StoredWeight*> found = check_weights(weights, stored, where, model, may_lack);
  std::map<std::string, Array> halves;          // of weights that files hold as other floats
  for (const auto& [name, location] : found) {  // before any weight changes
    location->file->check(location->entry);
    const Dtype dtype = weights.at(name).dtype();
    if (!is_half(dtype) || location->described().dtype == dtype) continue;
    Array half = as_half(location->file->read(location->entry), dtype);
    if (!half)
      throw FileError(location->described().name + " in '" + location->file->path() +
                      "' has numbers beyond the range of " + name_of(dtype) + ", as which the weight is stored");
    halves.emplace(name, std::move(half));
  }
  for (const Store::Entry& entry : weights) {
    const auto location = found.find(entry.name);
    if (location == found.end()) continue;
    Array shared(entry.value);
    if (const auto half = halves.find(entry.name); half != halves.end())
      shared.assign(half->second);
    else
      read_into(*location->second->file, location->second->entry, shared);
  }
}

}  // namespace xtape
