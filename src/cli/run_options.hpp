/// Options that several commands for runs and definitions share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/threads/threads.hpp"
#include "cli/commands.hpp"
#include "xtape/model.hpp"
#include "xtape/train.hpp"

namespace xtape::cli {

/// Adds --set key=value, which can be repeated.
inline void add_settings(CLI::App& command, std::vector<std::string>& set) {
  add_option(command, "--set", set,
             "Change the recipe: key=value, such as optimizer.weight_decay=0; one --set for each key", one_value);
}

/// Adds --threads. 0, the default, means all cores.
template <class Number>
CLI::Option* add_threads(CLI::App& command, Number& threads) {
  return add_option(command, "--threads", threads, "The number of threads (default: all cores)")
      ->check(CLI::Range(0, most_threads));
}

/// Adds --checkpoint last|best|average:N|ema|STEP.
inline CLI::Option* add_checkpoint(
    CLI::App& command, std::string& checkpoint,
    const std::string& about =
        "The checkpoint to load: last, best, average:N (the mean of the last N), ema (the moving averages of the "
        "weights) or the number of a step") {
  return add_option(command, "--checkpoint", checkpoint, about, shown)->check(error_of(CheckpointChoice::parse));
}

/// Opens a run with the checkpoint that --checkpoint names. Throws WrongInput.
inline Run open_run(const std::string& directory, const std::string& checkpoint) {
  return as_wrong_input([&] { return Run::open(directory, {}, CheckpointChoice::parse(checkpoint)); });
}

/// The options for inference with a model.
struct InferenceArguments {
  std::string weights;             ///< A dtype. If empty, weights keep the dtype of the files.
  std::string precision;           ///< If empty, the precision of the recipe, or float32 for a folder.
  std::string bits;                ///< If empty, the bits of the recipe, or usual for a folder.
  std::string caches = "float32";  ///< The dtype of caches.
  std::string adapter;             ///< A folder of adapters for a model folder; may be empty.

  /// Returns the dtype in which weights are stored.
  Dtype dtype(Dtype in_files) const { return weights.empty() ? in_files : dtype_named(weights); }
  /// Without --weights, the weights stay as they are.
  WeightDtypes dtypes() const { return weights.empty() ? WeightDtypes() : WeightDtypes(dtype_named(weights)); }
  std::vector<Setting> settings() const {
    std::vector<Setting> given;
    if (!precision.empty()) given.push_back({"precision", precision});
    if (!bits.empty()) given.push_back({"bits", bits});
    return given;
  }
};

/// Returns the names of the dtypes in which weights can be stored in fewer bytes, after `also`.
inline std::vector<std::string> storage_names(std::vector<std::string> also = {}) {
  also.insert(also.end(), {"bfloat16", "float16", "int8", "Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q4_0"});
  return also;
}

/// Adds --bits.
inline void add_bits(CLI::App& command, std::string& bits) {
  add_option(command, "--bits", bits,
             "same: the same bits on every processor, or an error; fast: those of this one's fastest units")
      ->check(CLI::IsMember({"usual", "same", "fast"}));
}

/// Adds --weights, --precision, --bits and --adapter.
inline void add_inference(CLI::App& command, InferenceArguments& arguments) {
  add_option(command, "--weights", arguments.weights,
             "Store the weights of products as this dtype (default: as the files do)")
      ->check(CLI::IsMember(storage_names({"float32"})));
  add_option(command, "--precision", arguments.precision,
             "Round the operands of products to this precision (default: the recipe's; of a folder, float32)")
      ->check(CLI::IsMember(precision_names()));
  add_bits(command, arguments.bits);
  add_option(command, "--adapter", arguments.adapter,
             "For a model folder: low-rank adapters, a folder of PEFT or a GGUF file");
}

/// Adds --cache-type.
inline void add_caches(CLI::App& command, InferenceArguments& arguments) {
  add_option(command, "--cache-type", arguments.caches,
             "How keys and values of earlier tokens are stored: float32, or Q8_0 in a quarter of the memory")
      ->check(CLI::IsMember({"float32", "Q8_0"}));
}

inline std::vector<Setting> parse_settings(const std::vector<std::string>& set) {
  std::vector<Setting> settings;
  for (const std::string& each : set) settings.push_back(Setting::parse(each));
  return settings;
}

// Definitions and their hyper-parameters.

struct DefinitionOptions {
  std::string definition;
  std::vector<std::string> set;  ///< "n_layer=2" or "hyper.n_layer=2".
  std::string dtype = "float32";
  std::uint64_t seed = 0;
};

/// Adds DEFINITION, --set and --dtype. `also` is appended to the help text of DEFINITION.
void add_definition(CLI::App& command, DefinitionOptions& arguments, const std::string& also);

/// Loads the model that the options specify. For a run, loads the weights of its last checkpoint if there is one. If
/// `initialise` is false, the weights are zero. Throws WrongInput, DefinitionError or FileError.
Model load_model(const DefinitionOptions& arguments, bool initialise);
ModelOptions model_options(const DefinitionOptions& arguments, bool initialise);

/// Returns the file of a recipe. `name` is its path, or a name as for `xtape train`: "shakespeare_char". Returns an
/// empty text for anything else.
std::string recipe_file(const std::string& name);

/// Parses sizes such as "b=2,t=8". Throws WrongInput if the text is not of this form.
NamedSizes sizes_of(const std::string& text);

/// Formats 124439808 as "124,439,808".
std::string grouped(std::int64_t number);

}  // namespace xtape::cli
