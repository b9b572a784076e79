// Writes low-rank adapters in the format of PEFT.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/system/durable.hpp"
#include "model/definition/read_back.hpp"
#include "model/hugging_face/adapter.hpp"
#include "model/hugging_face/folder.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/ops.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

using model::HuggingFaceMapping;

namespace {
double adapter_number(const Model& model, const HuggingFaceMapping::Adapter& mapping, const char* key) {
  const auto name = mapping.hyper.find(key);
  return name == mapping.hyper.end() ? 0 : model.hyper().number(name->second);
}

/// Returns a JSON integer if the number has no fraction.
Json short_number(double number) {
  return number == std::floor(number) && std::abs(number) < 1e15 ? Json(static_cast<std::int64_t>(number))
                                                                 : Json(number);
}

/// Returns the square root of the sum of squares.
double norm_of(const Var& x) {
  return std::sqrt(evaluate(sum(square(x))).as<double>()[0]);
}

/// Throws DefinitionError if the block of the module `path` does not export weight + alpha / rank · B A, which PEFT
/// computes.
void check_merged(const Model& model, const Array& merged, const std::string& path,
                  const HuggingFaceMapping::Adapter& mapping, double rank, double alpha) {
  const std::string name = path + ".weight";
  Tape tape;
  const auto numbers = [&](const Array& array) { return cast(tape.constant(array), Dtype::float64); };
  const Var a = numbers(model.weights().at(path + "." + mapping.a)),
            b = numbers(model.weights().at(path + "." + mapping.b));
  if (a.rank() != 2 || b.rank() != 2 || static_cast<double>(a.size(0)) != rank || b.size(1) != a.size(0))
    throw DefinitionError("the adapters of '" + path + "' are A " + to_string(a.shape()) + " and B " +
                          to_string(b.shape()) + ": in PEFT they are [rank, in] and [out, rank]");
  const Var product = mapping.transposed() ? matmul(transpose(a), transpose(b)) : matmul(b, a);
  const Var before = cast(model.weight(tape, name), Dtype::float64), change = product * (alpha / rank);
  if (change.shape() != before.shape())
    throw DefinitionError("the adapters of '" + path + "' have shape " + to_string(change.shape()) +
                          ", but the weight has shape " + to_string(before.shape()) +
                          ": set \"fan_in_fan_out\" in the mapping if the weight is [in, out]");
  const double off = norm_of(numbers(merged) - before - change),
               allowed = 1e-6 * norm_of(before) + 1e-4 * norm_of(change);
  if (!std::isfinite(allowed))
    throw FileError("the adapters of '" + path + "', or its weight, have numbers that are not finite");
  if (!(off <= allowed))
    throw DefinitionError("the adapters of '" + path + "' cannot be written: PEFT would compute " +
                          "weight + alpha / rank * B @ A, and \"export\" of its block says otherwise");
}

const HuggingFaceMapping::Adapter& adapter_of(const HuggingFaceMapping& mapping, const Model& model) {
  if (!mapping.adapter)
    throw DefinitionError("the entry \"hugging_face\" of model '" + model.name() +
                          "' has no \"adapter\": add it to save adapters");
  return *mapping.adapter;
}
}  // namespace

std::vector<std::string> model::adapter_weights(const Model& model) {
  const auto definition = mapped_definition(model);
  const HuggingFaceMapping::Adapter& adapter = adapter_of(*definition->hugging_face, model);
  std::vector<std::string> names;
  for (const Store::Entry& entry : model.weights())
    if (const std::string word = cut_last(entry.name).second; word == adapter.a || word == adapter.b)
      names.push_back(entry.name);
  return names;
}

void model::write_adapter(const Model& model, const std::string& folder, const std::string& base,
                          const std::string& base_folder) {
  const auto definition = model::mapped_definition(model);
  const HuggingFaceMapping& mapping = *definition->hugging_face;
  const HuggingFaceMapping::Adapter& adapter = adapter_of(mapping, model);
  const double rank = adapter_number(model, adapter, "r"), alpha = adapter_number(model, adapter, "lora_alpha");
  Store named;
  std::vector<std::string> names;        // the names of all weights except the adapters
  std::set<std::string> adapted, paths;  // modules, by their names in folders and in the model
  for (const Store::Entry& entry : model.weights()) {
    const auto [path, word] = model::cut_last(entry.name);
    if (word != adapter.a && word != adapter.b) {
      names.push_back(model::written_name(mapping, entry.name));
      continue;
    }
    const std::string module = model::cut_last(model::written_name(mapping, path + ".weight")).first;
    if (model.weights().find(path + ".weight") == nullptr)
      throw DefinitionError("model '" + model.name() + "' has adapters of '" + path + "', but no '" + path +
                            ".weight' that they adapt");
    adapted.insert(module);
    paths.insert(path);
    named.add(model::adapter_prefix + module + (word == adapter.a ? model::adapter_a : model::adapter_b),
              Array(entry.value));
  }
  if (named.empty()) throw DefinitionError("model '" + model.name() + "' has no adapters");
  model.for_each_exported([&](const std::string& name, const Array& value) {
    const auto [path, word] = model::cut_last(name);
    if (word == "weight" && paths.count(path) > 0) return check_merged(model, value, path, adapter, rank, alpha);
    if (const Array* weight = model.weights().find(name); weight == nullptr || weight->data() != value.data())
      throw DefinitionError("model '" + model.name() + "' exports '" + name +
                            "', which is no weight with an adapter: an adapter cannot express it");
  });
  Json config;
  for (const auto& [key, value] : adapter.config) config[key] = value;
  config["peft_type"] = "LORA";
  config["base_model_name_or_path"] = base;
  config["r"] = short_number(rank);
  config["lora_alpha"] = short_number(alpha);
  config["lora_dropout"] = adapter_number(model, adapter, "lora_dropout");
  config["target_modules"] = model::shortest_endings(adapted, model::modules_around(names));
  config["bias"] = "none";
  config["inference_mode"] = true;
  model::write_files(folder, model::adapter_config_file, [&](const std::string& beside) {
    save_arrays(beside + "/" + model::adapter_weights_file, named, {{"format", "pt"}});
    write_file(beside + "/" + model::adapter_config_file, indented(config));
    if (!base_folder.empty()) model::read_back(model, beside, folder, mapping.model_type, base_folder);
  });
}

void save_adapter(const Model& model, const std::string& folder, const std::string& base) {
  model::write_adapter(model, folder, base, is_hugging_face(base) ? base : "");
}

}  // namespace xtape
