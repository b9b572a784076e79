// Folders of the Hugging Face Hub as GGUF files.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/arrays/elements.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "gguf/family.hpp"
#include "gguf/tokenizer.hpp"
#include "gguf/write.hpp"
#include "model/definition/definition.hpp"
#include "model/definition/read_back.hpp"
#include "model/hugging_face/folder.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape::gguf {

namespace {
struct AsJson {
  template <class T>
  Json operator()(const T& held) const {
    return held;
  }
  Json operator()(const Hyper::List&) const { return {}; }
};

/// Returns the config with each setting of the mapping under the first of its keys. Where the config leaves the value
/// to the definition, it is that of the model.
Json full_config(const Json& config, const model::HuggingFaceMapping& mapping, const Model& model) {
  Json full = Json::object();
  for (const auto& setting : mapping.settings) {
    Json value = setting.missing.value_or(Json());
    for (const std::string& key : setting.keys)
      if (const Json* found = model::find_key(config, key);
          found != nullptr && (!found->is_null() || setting.maps_null())) {
        value = *found;
        break;
      }
    if (value.is_null() && setting.values.empty()) value = std::visit(AsJson{}, model.hyper().at(setting.hyper));
    if (!value.is_null()) model::set_key(full, setting.keys[0], model::plain(value));
  }
  return full;
}

}  // namespace

Array in_order(const model::StoredWeight& part, const TensorRule& rule, const Json& config) {
  Array read = part.file->read(part.entry);
  if (is_block(read.dtype())) read = model::numbers_of(read, part.described().order);
  Array values(Dtype::float32, read.shape());
  convert_floats(read, values);
  const Shape shape = values.shape();
  const std::int64_t rows = shape.empty() ? 1 : shape[0], columns = count_of(shape) / std::max<std::int64_t>(rows, 1);
  Array result(Dtype::float32, rule.transposed && shape.size() == 2 ? Shape{columns, rows} : shape);
  const float* from = values.as<float>();
  float* to = result.as<float>();
  std::vector<std::int64_t> order;
  if (!rule.rows.empty())
    order = row_order(rule.rows, rows, config, "'" + part.file->path() + "': tensor '" + part.described().name + "'");
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < columns; ++i) {
      const std::int64_t source = order.empty() ? row : order[static_cast<std::size_t>(row)];
      const std::int64_t target = rule.transposed && shape.size() == 2 ? i * rows + row : row * columns + i;
      to[target] = from[source * columns + i] + static_cast<float>(rule.plus);
    }
  return result;
}

Json config_of(const std::string& folder, model::HuggingFaceMapping& mapping) {
  const JsonNode config = model::read_config(folder);
  const auto definition = model::read_definition(find_definition(config.at("model_type").text()));
  if (!definition->hugging_face) config.fail("the definition of this type has no entry \"hugging_face\"");
  mapping = *definition->hugging_face;
  ModelOptions options;
  options.initialise = false;
  Json full = full_config(config.json(), mapping, open_hugging_face(folder, options));
  full["model_type"] = mapping.model_type;
  return full;
}

namespace {
/// A format for the matrices of a file. A mixture gives some of them more bits.
struct FileFormat {
  const char* name;
  int number;                    ///< In general.file_type.
  const char* matrices;          ///< The format of most matrices.
  const char* joined = nullptr;  ///< In a mixture: that of queries, keys and values in one matrix. Null: no mixture.
};
constexpr FileFormat file_formats[] = {{"F32", 0, "F32"},
                                       {"F16", 1, "F16"},
                                       {"BF16", 32, "BF16"},
                                       {"Q8_0", 7, "Q8_0"},
                                       {"Q4_0", 2, "Q4_0"},
                                       {"Q4_1", 3, "Q4_1"},
                                       {"Q5_0", 8, "Q5_0"},
                                       {"Q5_1", 9, "Q5_1"},
                                       {"Q4_K", 14, "Q4_K"},
                                       {"Q5_K", 16, "Q5_K"},
                                       {"Q6_K", 18, "Q6_K"},
                                       {"Q4_K_M", 15, "Q4_K", "Q5_K"},
                                       {"Q5_K_M", 17, "Q5_K", "Q6_K"}};

/// Throws Error if there is no format of this name.
const FileFormat& file_format(const std::string& name) {
  for (const FileFormat& each : file_formats)
    if (name == each.name) return each;
  throw Error("there is no format '" + name + "' for weights of GGUF files; there are " + joined(gguf_formats()));
}

/// Returns the number of the layer in a name such as "blk.3.attn_v.weight", or -1.
std::int64_t layer_of(const std::string& tensor) {
  std::int64_t layer = -1;
  const std::string prefix = "blk.";
  if (tensor.starts_with(prefix)) std::from_chars(tensor.data() + prefix.size(), tensor.data() + tensor.size(), layer);
  return layer;
}

/// Whether a mixture gives more bits to the values of attention and to the last map of a feed-forward layer: in the
/// first and the last eighth of the layers and in every third one between, as in llama.cpp.
bool has_more_bits(const std::string& tensor, std::int64_t layers) {
  const std::int64_t layer = layer_of(tensor), eighth = layers / 8;
  for (const char* part : {".attn_v.weight", ".ffn_down.weight", ".ffn_down_exps.weight"})
    if (layer >= 0 && tensor.ends_with(part))
      return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
  return false;
}

/// Chooses a tensor's format as llama.cpp does. Vectors, tables of positions and what chooses experts stay float32. The
/// table of outputs has more bits. A format whose blocks do not divide the rows gives way to a larger one.
const BlockFormat* format_for(const std::string& name, const Shape& shape, const FileFormat& wanted, bool outputs,
                              std::int64_t layers) {
  std::string chosen = wanted.matrices;
  if (shape.size() < 2 || name.starts_with("position_embd.") || name.starts_with("token_types.") ||
      name.find(".ffn_gate_inp.") != std::string::npos)
    chosen = "F32";
  else if (outputs ? chosen[0] == 'Q' && chosen != "Q8_0" : wanted.joined != nullptr && has_more_bits(name, layers))
    chosen = "Q6_K";
  else if (wanted.joined != nullptr && name.find(".attn_qkv.") != std::string::npos)
    chosen = wanted.joined;
  static const std::map<std::string, std::string> larger = {{"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}};
  const auto divides = [&] { return shape.empty() || shape.back() % find_block_format(chosen)->elements == 0; };
  if (!divides()) chosen = larger.contains(chosen) ? larger.at(chosen) : "F16";
  if (!divides()) chosen = "F16";
  return find_block_format(chosen);
}

/// A tensor of the file and the arrays of the folder from which it comes, by their numbers.
struct Target {
  const TensorRule* rule = nullptr;
  std::map<std::int64_t, model::StoredWeight> parts;
  bool is_list = false;  ///< Whether the folder has an array for each index of the first axis.
};

Array joined_parts(const Target& target, const Json& config) {
  if (!target.is_list) return in_order(target.parts.begin()->second, *target.rule, config);
  std::vector<Array> parts;
  for (const auto& part : target.parts) parts.push_back(in_order(part.second, *target.rule, config));
  Shape shape = parts[0].shape();
  shape.insert(0, std::ssize(parts));
  Array all(Dtype::float32, shape);
  float* to = all.as<float>();
  for (const Array& part : parts) to = std::copy_n(part.as<float>(), count_of(part.shape()), to);
  return all;
}

/// Throws FileError unless the parts are all indices of one axis, and equally large.
void check_parts(const std::string& name, const Target& target) {
  if (!target.is_list) return;
  const model::StoredWeight& first = target.parts.begin()->second;
  std::int64_t number = 0;
  for (const auto& [index, part] : target.parts)
    if (index != number++ || part.described().shape != first.described().shape)
      throw FileError("'" + part.file->path() + "': tensor '" + part.described().name + "' of shape " +
                      to_string(part.described().shape) + " does not fit '" + first.described().name + "' of shape " +
                      to_string(first.described().shape) + ": '" + name +
                      "' joins them, and needs every number from 0");
}

Shape shape_in_file(const Target& target) {
  const ArrayFile::Entry& array = target.parts.begin()->second.described();
  Shape shape = model::in_order(array.shape, array.order);
  if (target.rule->transposed && shape.size() == 2) shape = {shape[1], shape[0]};
  if (target.is_list) shape.insert(0, std::ssize(target.parts));
  return shape;
}

std::map<std::string, Target> targets_of(const std::vector<ArrayFile>& files, const model::HuggingFaceMapping& mapping,
                                         const Family& family) {
  std::vector<std::string> skipped;
  std::map<std::string, Target> targets;
  for (const model::StoredWeight& each : model::tensors_of(files, mapping, skipped)) {
    const Renamed renamed = family.in_file(each.weight);
    if (renamed.rule == nullptr) {
      if (model::matches_any(each.weight, mapping.skip)) continue;
      throw FileError("'" + each.file->path() + "': tensor '" + each.described().name +
                      "' has no name in GGUF files of '" + family.architecture() + "'");
    }
    Target& target = targets[renamed.name];
    target.rule = renamed.rule;
    target.is_list = renamed.part >= 0;
    target.parts.emplace(renamed.part, each);
  }
  for (const auto& [name, target] : targets) check_parts(name, target);
  return targets;
}

/// Texts in which tokenizers differ: spaces, digits, signs, letters of several scripts, and special tokens.
constexpr const char* trial_texts[] = {"Hello  world, it's 1234567 \u00c4\u00d6.\n\n  \u65e5\u672c\u8a9e \U0001f642",
                                       " a b", "<s>x</s> [UNK] <|im_start|>user<|endoftext|>"};

/// Throws FileError if the file gives other tokens than the folder.
void check_tokens(const std::string& folder, const std::string& file) {
  const auto of_folder = load_tokenizer(folder), of_file = load_tokenizer(file);
  for (const char* text : trial_texts)
    if (of_folder->encode(text) != of_file->encode(text))
      throw FileError("the tokenizer of '" + folder + "' gives other tokens in a GGUF file for \"" + escaped(text) +
                      "\": such files cannot express it");
}

/// Throws FileError if the file computes something else than the folder, or lacks weights.
void check_same(const std::string& folder, const std::string& file) {
  model::check_hugging_face(file, {}, "");
  ModelOptions options;
  options.initialise = false;
  options.weights = Dtype::float32;
  const Model model = open_hugging_face(folder, options), written = open_hugging_face(file, options);
  const std::vector<std::string> functions = model.functions();
  for (const std::string& function : functions)
    if (function == "logits" || !contains(functions, std::string("logits")))
      model::require_same_computation(model, written, function, "in a GGUF file");
}

Metadata metadata_of(const std::string& folder, const std::string& name, const Family& family, const Json& config,
                     const FileFormat& format) {
  Metadata metadata = {{architecture_key, family.architecture()},
                       {"general.name", name},
                       {"general.file_type", format.number},
                       {"general.quantization_version", 2}};
  for (auto& each : family.metadata(config)) metadata.push_back(std::move(each));
  const Json* tokens = model::find_key(config, "vocab_size");
  if (tokens != nullptr) metadata.emplace_back(family.architecture() + ".vocab_size", *tokens);
  for (auto& each : tokenizer_metadata(folder, tokens == nullptr ? 0 : tokens->get<std::int64_t>()))
    metadata.push_back(std::move(each));
  return metadata;
}
}  // namespace

}  // namespace xtape::gguf

namespace xtape {

std::vector<std::string> gguf_formats() {
  std::vector<std::string> names;
  for (const gguf::FileFormat& format : gguf::file_formats) names.emplace_back(format.name);
  return names;
}

void convert_to_gguf(const std::string& folder, const std::string& path, const std::string& format) {
  using namespace gguf;
  const FileFormat& wanted = file_format(format);
  read_gguf_files();
  model::check_hugging_face(folder, {}, "");
  model::HuggingFaceMapping mapping;
  const Json config = config_of(folder, mapping);
  const Family family = Family::of_model_type(mapping.model_type);
  const std::vector<ArrayFile> files = model::weight_files(folder);
  const std::map<std::string, Target> targets = targets_of(files, mapping, family);
  const std::string outputs = targets.contains("output.weight") ? "output.weight" : "token_embd.weight";
  std::int64_t layers = 0;
  for (const auto& each : targets) layers = std::max(layers, layer_of(each.first) + 1);
  std::vector<Written> tensors;
  for (const auto& [name, target] : targets) {
    const Shape shape = shape_in_file(target);
    tensors.push_back({name, shape, format_for(name, shape, wanted, name == outputs, layers),
                       [&target = target, &config] { return joined_parts(target, config); }});
  }
  if (const std::vector<float> factors = family.rotary_factors(config); !factors.empty())
    tensors.push_back({family.factors(), Shape{std::ssize(factors)}, find_block_format("F32"), [factors] {
                         Array array(Dtype::float32, Shape{std::ssize(factors)});
                         std::ranges::copy(factors, array.as<float>());
                         return array;
                       }});
  const std::string target = link_target(path), beside = target + ".writing.gguf";
  const Metadata metadata = metadata_of(folder, std::filesystem::path(path).stem().string(), family, config, wanted);
  try {
    write_file(beside, metadata, tensors);
    check_same(folder, beside);
    if (std::ranges::find(metadata, tokenizer_prefix + "tokens", &Metadata::value_type::first) != metadata.end())
      check_tokens(folder, beside);
    rename_path(beside, target);
  } catch (...) {
    remove_if_possible(beside);
    throw;
  }
}

void save_gguf(const Model& model, const std::string& path, const std::string& format, const std::string& like) {
  gguf::file_format(format);  // throws before anything is written
  const std::string folder = path + ".folder" + unfinished;
  try {
    remove_if_possible(folder);  // what a process that was ended left
    save_hugging_face(model, folder, like, Dtype::float32);
    convert_to_gguf(folder, path, format);
  } catch (...) {
    remove_if_possible(folder);
    throw;
  }
  remove_if_possible(folder);
}

}  // namespace xtape
