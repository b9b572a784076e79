// Models from definitions and folders.
#include "c/models.hpp"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/system/durable.hpp"
#include "xtape/hugging_face.hpp"
#if defined(XTAPE_WITH_GGUF)
#include "xtape/gguf.hpp"
#endif
#if defined(XTAPE_WITH_ONNX)
#include "xtape/onnx.hpp"
#endif

namespace xtape::c {

namespace {
/// A model and the folder or file that it comes from, which may have a tokenizer.
class OpenedModel : public DefinedModel {
 public:
  OpenedModel(Model model, std::string folder) : model_(std::move(model)), folder_(std::move(folder)) {}
  Model& model() override { return model_; }
  const Tokenizer& tokenizer() override {
    if (folder_.empty())
      throw Error("a model from a definition has no tokenizer: give the prompt as tokens, in the option 'prompt'");
    if (!tokenizer_) tokenizer_ = load_tokenizer(folder_);
    return *tokenizer_;
  }
  Tokens end_tokens() override { return folder_.empty() ? Tokens() : tokenizer().ends(); }
  Sampling sampling() const override { return folder_.empty() ? Sampling() : published_sampling(folder_); }

 private:
  Model model_;
  std::string folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

std::string hyper_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::optional<Dtype> read_dtype(Options& options, const char* key) {
  std::optional<Dtype> dtype;
  options.read_named(key, dtype, dtype_named);
  return dtype;
}

Json json_of(const Hyper::Value& value) {
  return std::visit(
      [](const auto& each) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, Hyper::List>) {
          Json list = Json::array();
          for (const Hyper::Scalar& scalar : each)
            std::visit([&](const auto& element) { list.push_back(element); }, scalar);
          return list;
        } else {
          return each;
        }
      },
      value);
}

Json json_of(const Signature& signature) {
  Json inputs = Json::array();
  for (const FunctionInput& input : signature.inputs)
    inputs.push_back({{"name", input.name}, {"dtype", name_of(input.dtype)}, {"dims", input.dims}});
  return {{"inputs", inputs}, {"sizes", signature.sizes}, {"results", signature.results}};
}

bool ends_in(const std::string& path, const char* ending) {
  return std::filesystem::path(path).extension() == ending;
}

void save_as_gguf([[maybe_unused]] const Model& model, [[maybe_unused]] const std::string& path,
                  [[maybe_unused]] const std::string& format, [[maybe_unused]] const std::string& like) {
#if defined(XTAPE_WITH_GGUF)
  save_gguf(model, path, format, like);
#else
  throw Error("this library was built without xtape-gguf (-Dgguf)");
#endif
}
}  // namespace

std::int64_t DefinedModel::context() {
  for (const char* name : {"max_positions", "n_positions"})
    if (model().hyper().has(name)) return model().hyper().integer(name);
  return 1024;  // for models without a maximum position
}

Json DefinedModel::describe() const {
  Json hyper = Json::object(), functions = Json::object();
  for (const auto& [name, value] : model().hyper().items()) hyper[name] = json_of(value);
  for (const std::string& name : model().functions()) functions[name] = json_of(model().signature(name));
  return {{"name", model().name()}, {"about", model().about()}, {"dtype", name_of(model().dtype())},
          {"hyper", hyper},         {"functions", functions},   {"parameters", model().parameter_count()}};
}

Vars DefinedModel::inputs(Tape& tape, const std::string& function, const NamedSizes& sizes) const {
  Vars list;
  for (const auto& each : model().inputs(tape, function, sizes)) list.push_back(each.value);
  return list;
}

Vars DefinedModel::record(Tape& tape, const std::string& function, const Vars& inputs) const {
  const Signature& signature = model().signature(function);
  if (inputs.size() != signature.inputs.size())
    throw Error("function '" + function + "' has " + std::to_string(signature.inputs.size()) + " inputs, got " +
                std::to_string(inputs.size()));
  NamedVars named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named.add(signature.inputs[i].name, inputs[i]);
  Vars list;
  for (const auto& each : model().record(tape, function, named)) list.push_back(each.value);
  return list;
}

Store DefinedModel::play(const std::string& function, const NamedArrays& arrays, Mode mode) {
  std::vector<std::string> known;
  for (const FunctionInput& input : model().signature(function).inputs) known.push_back(input.name);
  for (const auto& each : arrays)
    if (std::ranges::find(known, each.name) == known.end()) throw_no_such_name("input", each.name, known);
  return model().play(function, arrays, mode);
}

void DefinedModel::save(const std::string& path, Options& options) const {
  std::string like, format = "F32";
  options->read("like", like);
  options->read("format", format);
  const std::optional<Dtype> weights = read_dtype(options, "weights");
  options.done();
  if (ends_in(path, ".safetensors")) return model().save_weights(path);
  if (ends_in(path, ".gguf")) return save_as_gguf(model(), path, format, like);
  if (ends_in(path, ".onnx"))
    throw Error("'" + path + "': record a function of the model on a tape, and write it by xtape_onnx_save");
  save_hugging_face(model(), path, like, weights);
}

bool is_json_text(const std::string& source) {
  const std::size_t first = source.find_first_not_of(" \t\r\n");
  return first != std::string::npos && source[first] == '{';
}

std::vector<Setting> settings_of(const JsonNode& object) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : object.entries()) settings.push_back({key, hyper_text(value.json())});
  return settings;
}

std::vector<Setting> settings_of(Options& options, const char* key) {
  std::vector<Setting> settings;
  for (const auto& [name, value] : options->section(key).json().items()) settings.push_back({name, hyper_text(value)});
  return settings;
}

namespace {
// These functions read their options to the end, before they work.

std::shared_ptr<DefinedModel> open_folder(const std::string& path, Options& options) {
  ModelOptions how;
  how.weights = read_dtype(options, "weights");
  options.done();
  const bool adapters = is_adapter(path);
  const std::string folder = adapters ? base_of_adapter(path) : path;
  return std::make_shared<OpenedModel>(open_hugging_face(folder, how, "", {}, adapters ? path : ""), folder);
}

std::shared_ptr<DefinedModel> open_definition(const std::string& source, Options& options) {
  ModelOptions how;
  for (const Setting& each : settings_of(options, "hyper")) how.hyper.emplace_back(each.key, each.value);
  options->read("seed", how.seed);
  how.dtype = read_dtype(options, "dtype").value_or(how.dtype);
  options.done();
  return std::make_shared<OpenedModel>(is_json_text(source) ? Model::parse(source, how) : Model::load(source, how), "");
}

std::shared_ptr<DefinedModel> open_run(const std::string& folder, Options& options) {
  std::string checkpoint = "last";
  bool resume = false;
  options->read("checkpoint", checkpoint);
  options->read("resume", resume);
  const std::vector<Setting> settings = settings_of(options, "settings");
  options.done();
  const CheckpointChoice choice = CheckpointChoice::parse(checkpoint);
  return std::make_shared<RunObject>(resume ? Run::resume(folder, settings, choice)
                                            : Run::open(folder, settings, choice));
}

/// Lets definitions and folders name ONNX and GGUF files.
void register_readers() {
  static std::once_flag once;
  std::call_once(once, [] {
#if defined(XTAPE_WITH_GGUF)
    read_gguf_files();
#endif
#if defined(XTAPE_WITH_ONNX)
    read_onnx_blocks();
#endif
  });
}

std::shared_ptr<ModelObject> opened(const std::string& source, Options& options) {
  register_readers();
  const bool path = !is_json_text(source);
  if (path && ends_in(source, ".onnx")) return open_onnx_model(source, options);
  if (path && path_exists(source + "/recipe.json")) return open_run(source, options);
  const bool folder = path && (is_adapter(source) || is_hugging_face(source));
  PlayerOptions player;
  read_player_options(options, player);
  std::shared_ptr<DefinedModel> model = folder ? open_folder(source, options) : open_definition(source, options);
  model->model().set_player_options(16, player);
  return model;
}
}  // namespace
}  // namespace xtape::c

using namespace xtape::c;

xtape_status xtape_model_open(const char* source, const char* options, xtape_model** model) noexcept {
  return guarded("xtape_model_open", [&] {
    require(model, "model");
    Options given(options);
    give(model, opened(text_of(source, "source"), given));
  });
}

xtape_status xtape_weights(const xtape_model* model, xtape_store** weights) noexcept {
  return guarded("xtape_weights", [&] {
    require(weights, "weights");
    give(weights, std::make_shared<StoreObject>(found<ModelObject>(model, "model")->weights()));
  });
}

xtape_status xtape_model_inputs(const xtape_model* model, xtape_tape* tape, const char* function, const char* sizes,
                                xtape_var* inputs, size_t capacity, size_t* count) noexcept {
  return guarded("xtape_model_inputs", [&] {
    const std::shared_ptr<const ModelObject> object = found<ModelObject>(model, "model");
    const Used<TapeObject> on = use<TapeObject>(tape, "tape");
    xtape::NamedSizes given;
    for (const auto& [name, size] : json_object(sizes, "sizes").entries())
      given.add(name, size.integer(INT64_MIN, INT64_MAX));
    const std::string name = function == nullptr ? "" : text_of(function, "function");
    on->record([&] { return object->inputs(on->tape, name, given); }, inputs, capacity, count);
  });
}

xtape_status xtape_model_record(const xtape_model* model, xtape_tape* tape, const char* function,
                                const xtape_var* inputs, size_t input_count, xtape_var* results, size_t capacity,
                                size_t* count) noexcept {
  return guarded("xtape_model_record", [&] {
    const std::shared_ptr<const ModelObject> object = found<ModelObject>(model, "model");
    const Used<TapeObject> on = use<TapeObject>(tape, "tape");
    const std::string name = function == nullptr ? "" : text_of(function, "function");
    on->record([&] { return object->record(on->tape, name, on->vars(inputs, input_count, "inputs")); }, results,
               capacity, count);
  });
}

xtape_status xtape_model_play(xtape_model* model, const char* function, const char* mode, const char* const* names,
                              const xtape_view* values, size_t count, xtape_store** results) noexcept {
  return guarded("xtape_model_play", [&] {
    require(results, "results");
    require_list(names, count, "names");
    require_list(values, count, "values");
    const Used<ModelObject> object = use<ModelObject>(model, "model");
    xtape::NamedArrays arrays;
    for (std::size_t i = 0; i < count; ++i) arrays.add(text_of(names[i], "names"), array_view(values[i], "values"));
    const xtape::Mode how = mode == nullptr ? xtape::Mode::eval : xtape::mode_named(text_of(mode, "mode"));
    const std::string name = function == nullptr ? "" : text_of(function, "function");
    give(results, std::make_shared<StoreObject>(object->play(name, arrays, how)));
  });
}

xtape_status xtape_model_load_weights(xtape_model* model, const char* path) noexcept {
  return guarded("xtape_model_load_weights",
                 [&] { use<ModelObject>(model, "model")->load_weights(text_of(path, "path")); });
}

xtape_status xtape_model_save(const xtape_model* model, const char* path, const char* options) noexcept {
  return guarded("xtape_model_save", [&] {
    Options given(options);
    use<ModelObject>(model, "model")->save(text_of(path, "path"), given);
  });
}
