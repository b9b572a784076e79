// A model's weights in files, and as its blocks export them.
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "base/arrays/elements.hpp"
#include "base/arrays/safetensors_header.hpp"
#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"
#include "model/recording/model_data.hpp"
#include "model/weights/stored_weights.hpp"
#include "optim/optimizer.hpp"

namespace xtape::model {

bool matches_weight(const std::string& name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches_pattern(name, pattern); });
}

void check_weight_patterns(const Model& model, const std::string& key, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const auto matched = [&](const Store::Entry& entry) { return matches_weight(entry.name, {pattern}); };
    if (std::ranges::any_of(model.weights(), matched)) continue;
    throw DefinitionError("'" + key + "': no weight of model '" + model.name() + "' matches '" + pattern + "'" +
                          nearest_pattern(pattern, model.weights()));
  }
}

}  // namespace xtape::model

namespace xtape {

namespace {
bool is_identity(const Axes& order) {
  return std::is_sorted(order.begin(), order.end());
}

/// A weight of the model, or one part of it.
struct Wanted {
  Dtype dtype;
  Shape stored, shape;  ///< The shape in which the model stores it, and that of the definition.
  Axes order;           ///< See BlockStorage; empty: the same order.

  Wanted(const model::WeightsToRead& weights, const std::string& name, std::int64_t part)
      : dtype(weights.store.at(name).dtype()), stored(weights.store.at(name).shape()), shape(weights.shape(name)) {
    if (const auto found = weights.orders.find(name); found != weights.orders.end())
      order = model::order_of_part(name, found->second, part);
    if (part == model::StoredWeight::whole) return;
    stored.erase(0);
    shape.erase(0);
  }

  /// The order of an array of a file. A file that does not say it is taken to have that of the model.
  Axes order_in(const ArrayFile::Entry& entry) const {
    const Axes& given = entry.order.empty() ? order : Axes(entry.order);
    return !is_block(entry.dtype) || given.size() != entry.shape.size() || is_identity(given) ? Axes() : given;
  }
  /// Whether the file has the array exactly as the model stores it.
  bool is_like(const ArrayFile::Entry& entry) const {
    return entry.dtype == dtype && entry.shape == stored && order_in(entry) == order;
  }
};

/// Returns the parts in which the files hold a weight: `whole`, or all indices of its first axis if the files have at
/// least one of these parts.
std::vector<std::int64_t> parts_in(const model::FoundWeights& found, const Store::Entry& entry) {
  const auto first = found.lower_bound({entry.name, 0});
  if (first == found.end() || first->first.first != entry.name) return {model::StoredWeight::whole};
  std::vector<std::int64_t> parts(static_cast<std::size_t>(entry.value.shape()[0]));
  std::iota(parts.begin(), parts.end(), std::int64_t{0});
  return parts;
}
}  // namespace

void Model::save_weights(const std::string& path) const {
  auto metadata = model::order_metadata(orders());
  metadata.insert(metadata.end(), {{"format", "pt"}, {"model", name()}});
  save_arrays(path, weights(), metadata);
}

void Model::load_weights(const std::string& path, const std::string& others) {
  std::vector<ArrayFile> files;
  files.reserve(2);
  files.emplace_back(path);
  if (!others.empty()) files.emplace_back(others);
  std::vector<model::StoredWeight> stored;
  std::set<std::string> first;
  for (const ArrayFile& file : files)
    for (std::size_t i = 0; i < file.entries().size(); ++i) {
      const std::string& name = file.entries()[i].name;
      if (&file == &files[0]) first.insert(name);
      if (&file == &files[0] || first.count(name) == 0) stored.push_back({name, &file, i});
    }
  const WeightDtypes blocks = model::blocks_in(stored);
  const auto read = [&] { model::read_weights({weights(), orders()}, stored, "'" + path + "'", name()); };
  if (blocks.empty()) return read();
  std::vector<std::pair<std::string, Array>> before;  // put back after an error, so that no weight has changed
  for (const Store::Entry& entry : weights()) before.emplace_back(entry.name, entry.value);
  const std::map<std::string, Axes> orders_before = orders();
  try {
    allocate_weights_as(blocks);
    read();
  } catch (const Error& error) {
    for (auto& [name, array] : before) data_->context.store.set(name, array);
    data_->context.orders = orders_before;
    if (dynamic_cast<const DtypeError*>(&error) == nullptr) throw;
    throw FileError("'" + path + "': " + error.what());
  }
}

WeightDtypes model::blocks_in(const std::vector<StoredWeight>& stored) {
  WeightDtypes blocks;
  for (const StoredWeight& each : stored)
    if (is_block(each.described().dtype)) blocks.add(each.weight, each.described().dtype);
  return blocks;
}

Shape model::in_order(const Shape& stored, const Axes& order) {
  Shape shape = stored;
  for (std::size_t i = 0; i < order.size(); ++i) shape[static_cast<std::size_t>(order[i])] = stored[i];
  return shape;
}

Axes model::order_of_part(const std::string& weight, const Axes& order, std::int64_t part) {
  if (part == StoredWeight::whole || order.empty()) return order;
  if (order[0] != 0)
    throw DtypeError("weight '" + weight +
                     "' has blocks along its first axis, along which files divide it: store it as float32");
  Axes rest;
  for (std::size_t i = 1; i < order.size(); ++i) rest.push_back(order[i] - 1);
  return is_identity(rest) ? Axes() : rest;
}

std::vector<std::pair<std::string, std::string>> model::order_metadata(const std::map<std::string, Axes>& orders) {
  std::vector<std::pair<std::string, std::string>> metadata;
  for (const auto& [name, order] : orders)
    metadata.emplace_back(order_key + name, joined(
                                                order, [](std::int64_t axis) { return std::to_string(axis); }, " "));
  return metadata;
}

Shape model::WeightsToRead::shape(const std::string& weight) const {
  const auto order = orders.find(weight);
  const Shape& stored = store.at(weight).shape();
  return order == orders.end() ? stored : model::in_order(stored, order->second);
}

namespace {
bool has_numbers(Dtype dtype) {
  return is_floating(dtype) || is_block(dtype);
}
}  // namespace

bool model::is_stored_as(const ArrayFile::Entry& array, const WeightsToRead& weights, const std::string& weight) {
  return Wanted(weights, weight, StoredWeight::whole).is_like(array);
}

model::FoundWeights model::check_weights(const WeightsToRead& weights, const std::vector<StoredWeight>& stored,
                                         const std::string& where, const std::string& model,
                                         const std::vector<std::string>& may_lack) {
  constexpr int most_listed = 100;
  std::string problems;
  int count = 0;
  const auto list = [&](const auto& describe) {
    if (++count <= most_listed) problems += "\n  " + describe();
  };
  FoundWeights found;
  std::vector<std::string> missing;  // an unexpected name may be a misspelling of one of them
  std::vector<const StoredWeight*> unexpected, again;
  for (const StoredWeight& each : stored) {
    if (weights.store.find(each.weight) == nullptr)
      unexpected.push_back(&each);
    else if (!found.emplace(std::pair(each.weight, each.part), &each).second)
      again.push_back(&each);
  }
  for (const Store::Entry& entry : weights.store)
    for (const std::int64_t part : parts_in(found, entry)) {
      const auto location = found.find({entry.name, part});
      if (location == found.end()) {
        missing.push_back(entry.name);
        if (matches_weight(entry.name, may_lack)) continue;
        list([&] {
          return "missing: " + entry.name + " " + to_string(weights.shape(entry.name)) +
                 (part == StoredWeight::whole ? "" : ", number " + std::to_string(part) + " of its first axis");
        });
        continue;
      }
      const ArrayFile::Entry& described = location->second->described();
      const Wanted wanted(weights, entry.name, part);
      if (wanted.is_like(described)) continue;
      const Shape& shape = wanted.shape;
      const bool fits = model::in_order(described.shape, wanted.order_in(described)) == shape;
      if (!fits && !location->second->is_exact && matches_weight(entry.name, may_lack))
        found.erase(location);  // counts as missing; an example is a head for a different number of labels
      else if (!fits)
        list([&] {
          return "of another shape: " + described.name + " is " + to_string(described.shape) + ", the model's is " +
                 to_string(shape);
        });
      else if (described.dtype != entry.value.dtype() &&
               !(has_numbers(described.dtype) && has_numbers(entry.value.dtype())))
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

namespace {
/// Reads an array of floats or blocks as floats, in the order of the definition.
Array read_numbers(const model::StoredWeight& location, const Wanted& wanted) {
  Array read = location.file->read(location.entry);
  return is_block(read.dtype()) ? model::numbers_of(read, wanted.order_in(location.described())) : read;
}

/// Converts an array of floats or blocks to the dtype in which a weight is stored: a half-precision dtype or a block
/// format. Throws FileError if numbers are out of range.
Array converted(const model::StoredWeight& location, const Wanted& wanted) {
  const Array read = read_numbers(location, wanted);
  Array result =
      is_half(wanted.dtype) ? model::as_half(read, wanted.dtype) : model::as_blocks(read, wanted.dtype, wanted.order);
  if (!result)
    throw FileError(location.described().name + " in '" + location.file->path() + "' has numbers beyond the range of " +
                    name_of(wanted.dtype) + ", as which the weight is stored");
  return result;
}

/// Reads an array into `to`. Converts the array if the file has another float dtype or blocks, and `to` is neither
/// bfloat16 nor float16.
void read_into(const model::StoredWeight& location, const Wanted& wanted, Array& to) {
  if (wanted.is_like(location.described()) || is_half(location.described().dtype))
    location.file->read(location.entry, to);
  else
    convert_floats(read_numbers(location, wanted), to);
}
}  // namespace

void model::read_weights(const WeightsToRead& weights, const std::vector<StoredWeight>& stored,
                         const std::string& where, const std::string& model, const std::vector<std::string>& may_lack) {
  const FoundWeights found = check_weights(weights, stored, where, model, may_lack);
  std::map<FoundWeights::key_type, Array> narrow;  // narrow weights that the files hold as other floats
  for (const auto& [place, location] : found) {    // this loop ends before any weight changes
    location->file->check(location->entry);
    const Wanted wanted(weights, place.first, location->part);
    if ((is_half(wanted.dtype) || is_block(wanted.dtype)) && !wanted.is_like(location->described()))
      narrow.emplace(place, converted(*location, wanted));
  }
  for (const auto& [place, location] : found) {
    Array weight(weights.store.at(place.first));
    const Wanted wanted(weights, place.first, location->part);
    const bool is_whole = location->part == StoredWeight::whole;
    Array read = is_whole ? Array(weight) : Array(weight.dtype(), wanted.stored);
    if (const auto known = narrow.find(place); known != narrow.end()) {
      read.assign(known->second);
      narrow.erase(known);  // at once, so that the converted weights are in memory only once
    } else {
      read_into(*location, wanted, read);
    }
    if (!is_whole) set_part(weight, location->part, read);
  }
}

Array model::part_of(const Array& array, std::int64_t part) {
  Shape shape = array.shape();
  shape.erase(0);
  Array elements(array.dtype(), shape);
  const auto* first = static_cast<const std::byte*>(array.data());
  std::memcpy(elements.data(), first + static_cast<std::size_t>(part) * elements.bytes(), elements.bytes());
  return elements;
}

void model::set_part(Array& array, std::int64_t part, const Array& elements) {
  auto* first = static_cast<std::byte*>(array.data());
  std::memcpy(first + static_cast<std::size_t>(part) * elements.bytes(), elements.data(), elements.bytes());
}

namespace {
/// Records the "export" expressions of every module. The results are keyed by the paths of the weights.
class Exports {
 public:
  Exports(const model::ModelContext& context, Tape tape) : interpreter_(context, std::move(tape)) {}

  void record(const model::Module& module) {
    for (const auto& [name, line] : module.block->exports) {
      const model::Value value = interpreter_.evaluate(line, {.home = module.block->home, .module = &module});
      if (value.is_none()) continue;
      const auto* var = value.as<Var>();
      if (var == nullptr) line.fail(line.value.column, "an array belongs here, not " + model::describe(value));
      results_.add(module.path + "." + name, *var);
    }
    for (const model::ModuleList& list : module.modules)
      for (const auto& item : list.items) record(*item);
  }
  const NamedVars& results() const { return results_; }

 private:
  model::Interpreter interpreter_;
  NamedVars results_;
};
}  // namespace

void Model::for_each_exported(const std::function<void(const std::string& name, Array value)>& take) const {
  if (!take) throw Error("for_each_exported needs a function");
  Tape tape(Mode::eval);
  tape.set_default_dtype(dtype());
  tape.set_ops(*data_->context.ops);
  Exports exports(data_->context, tape);
  exports.record(*data_->root);
  std::set<std::string> merged;  // the weights that the expressions read
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (tape.node(i).op == &parameter_op()) merged.insert(tape.node(i).name);
  for (const Store::Entry& entry : weights())
    if (merged.count(entry.name) == 0 && !exports.results().has(entry.name)) take(entry.name, Array(entry.value));
  for (const auto& [name, var] : exports.results()) take(name, evaluate(var));
}

Store Model::exported_weights() const {
  Store all;
  for_each_exported([&](const std::string& name, Array value) { all.add(name, std::move(value)); });
  return all;
}

}  // namespace xtape
