// Low-rank adapters as GGUF files of llama.cpp, and as folders of PEFT.
#include "model/hugging_face/adapter.hpp"

#include <cmath>
#include <map>

#include "base/arrays/elements.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "gguf/family.hpp"
#include "gguf/write.hpp"
#include "model/hugging_face/folder.hpp"

namespace xtape::gguf {

namespace {
constexpr const char *type_key = "general.type", *adapter_key = "adapter.type", *alpha_key = "adapter.lora.alpha";
constexpr const char *a_ending = ".lora_a", *b_ending = ".lora_b", *weight_ending = ".weight";

std::string without(const std::string& name, const std::string& ending) {
  return name.substr(0, name.size() - ending.size());
}

/// Returns alpha, with which a product of adapters is multiplied after a division by the rank.
double alpha_of(const JsonNode& config) {
  const double alpha = config.has("lora_alpha") ? config.at("lora_alpha").number() : 8;
  const bool by_root = config.has("use_rslora") && config.at("use_rslora").json() == true;
  return by_root ? alpha * std::sqrt(config.at("r").number()) : alpha;
}

/// Returns the name in a GGUF file of the weight that an adapter of PEFT changes, and the rule of the family.
Renamed weight_in_file(const Family& family, const model::HuggingFaceMapping& mapping, const ArrayFile& file,
                       const std::string& tensor, const char* ending) {
  std::string module = without(tensor, ending).substr(std::string(model::adapter_prefix).size());
  if (module.starts_with(mapping.prefix)) module.erase(0, mapping.prefix.size());
  Renamed found = family.in_file(module + weight_ending);
  if (found.rule == nullptr || found.part >= 0)
    throw FileError("'" + file.path() + "': GGUF files of '" + family.architecture() + "' have no place for '" +
                    tensor + "'");
  return found;
}

/// Reads the tensors of a file into arrays of PEFT. `config` is that of the base.
class AdapterTensors {
 public:
  AdapterTensors(const FileData& file, const Family& family, const model::HuggingFaceMapping& mapping,
                 const Json& config)
      : file_(file), family_(family), mapping_(mapping), config_(config) {}

  Store read() {
    Store arrays;
    for (std::size_t i = 0; i < file_.tensors.size(); ++i) {
      const std::string& name = file_.tensors[i].name;
      const bool is_a = name.ends_with(a_ending);
      if (!is_a && !name.ends_with(b_ending))
        file_.fail("tensor '" + name + "' is no adapter: names end with .lora_a and .lora_b");
      if (file_.tensors[i].shape.size() != 2)
        file_.fail("tensor '" + name + "' has the shape " + to_string(file_.tensors[i].shape) +
                   ": adapters have two axes");
      const Renamed weight = family_.in_folder(without(name, a_ending));
      if (weight.rule == nullptr || !weight.name.ends_with(weight_ending))
        file_.fail("tensor '" + name + "' belongs to no weight of '" + family_.architecture() + "'");
      std::string module = without(weight.name, weight_ending);
      if (!model::matches_any(module + weight_ending, mapping_.without_prefix)) module = mapping_.prefix + module;
      arrays.set(model::adapter_prefix + module + (is_a ? model::adapter_a : model::adapter_b),
                 is_a ? values(i) : in_folder_order(values(i), weight, name));
      if (is_a) rank_ = file_.tensors[i].shape[0];
    }
    return arrays;
  }
  std::int64_t rank() const { return rank_; }

 private:
  Array values(std::size_t tensor) const {
    Array read(Dtype::float32, file_.tensors[tensor].shape);
    const std::int64_t blocks = std::ssize(file_.elements[tensor]) / file_.formats[tensor]->bytes;
    const std::int64_t bad = decode(file_, tensor, 0, blocks, read.as<float>());
    if (bad >= 0) fail_block(file_, tensor, bad);
    return read;
  }

  Array in_folder_order(Array b, const Renamed& weight, const std::string& name) const {
    if (weight.rule->rows.empty()) return b;
    const std::int64_t rows = b.shape()[0], columns = b.shape()[1];
    const std::vector<std::int64_t> order =
        row_order(weight.rule->rows, rows, config_, escaped("'" + file_.path + "': tensor '" + name + "'"));
    Array sorted(Dtype::float32, b.shape());
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(b.as<float>() + row * columns, columns,
                  sorted.as<float>() + order[static_cast<std::size_t>(row)] * columns);
    return sorted;
  }

  const FileData& file_;
  const Family& family_;
  const model::HuggingFaceMapping& mapping_;
  const Json& config_;
  std::int64_t rank_ = 0;
};
}  // namespace

void write_adapter_folder(const std::string& path, const std::string& base, const std::string& folder) {
  const auto file = open_file(path);
  if (!file->is_adapter()) file->fail("it is a whole model and has no adapters: name it as the model");
  if (file->text(adapter_key) != "lora")
    file->fail("the key '" + std::string(adapter_key) + "' is \"" + file->text(adapter_key) +
               "\"; only \"lora\" is supported");
  model::HuggingFaceMapping mapping;
  const Json config = config_of(base, mapping);
  const Family family = Family::of_model_type(mapping.model_type);
  if (file->text(architecture_key) != family.architecture())
    file->fail("its adapters are for models of the architecture \"" + file->text(architecture_key) + "\", and " + base +
               " is of \"" + family.architecture() + "\"");
  AdapterTensors tensors(*file, family, mapping, config);
  const Store arrays = tensors.read();
  if (arrays.empty()) file->fail("it has no adapters");
  const Json* alpha = file->find(alpha_key);
  if (alpha != nullptr && !(alpha->is_number() && std::isfinite(alpha->get<double>())))
    file->fail("the key '" + std::string(alpha_key) + "' must be a finite number");
  const bool scaled = alpha != nullptr && *alpha != 0;  // as in llama.cpp
  const Json made = {{"peft_type", "LORA"},
                     {"base_model_name_or_path", base},
                     {"r", tensors.rank()},
                     {"lora_alpha", scaled ? *alpha : Json(tensors.rank())},
                     {"bias", "none"}};
  make_folders(folder);
  xtape::write_file(path_in(folder, model::adapter_config_file), indented(made));
  save_arrays(path_in(folder, model::adapter_weights_file), arrays);
}

}  // namespace xtape::gguf

namespace xtape {

void convert_adapter_to_gguf(const std::string& folder, const std::string& base, const std::string& path) {
  using namespace gguf;
  const std::string config_file = path_in(folder, model::adapter_config_file);
  const JsonNode peft(read_file(config_file), config_file, JsonErrors::definition);
  const ArrayFile file(path_in(folder, model::adapter_weights_file));
  model::HuggingFaceMapping mapping;
  const Json config = config_of(base, mapping);
  const Family family = Family::of_model_type(mapping.model_type);
  std::map<std::string, Written> tensors;  // in the order of names
  for (std::size_t i = 0; i < file.entries().size(); ++i) {
    const std::string& name = file.entries()[i].name;
    const bool is_a = name.ends_with(model::adapter_a);
    if (!name.starts_with(model::adapter_prefix) || !(is_a || name.ends_with(model::adapter_b)))
      throw FileError("'" + file.path() + "' has '" + name + "', which is no adapter of a linear map");
    const Renamed weight = weight_in_file(family, mapping, file, name, is_a ? model::adapter_a : model::adapter_b);
    const TensorRule rule{"", "", is_a ? "" : weight.rule->rows};
    const std::string written = weight.name + (is_a ? a_ending : b_ending);
    tensors.emplace(written, Written{written, file.entries()[i].shape, find_block_format("F32"),
                                     [stored = model::StoredWeight{"", &file, i}, rule, &config] {
                                       return in_order(stored, rule, config);
                                     }});
  }
  std::vector<Written> all;
  for (auto& [name, tensor] : tensors) all.push_back(std::move(tensor));
  write_file(path,
             {{architecture_key, family.architecture()},
              {type_key, "adapter"},
              {adapter_key, "lora"},
              {alpha_key, alpha_of(peft)}},
             all);
}

}  // namespace xtape
