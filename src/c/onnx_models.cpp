// Models from ONNX files, and tapes as ONNX files.
#include <map>
#include <nlohmann/json.hpp>

#include "c/models.hpp"
#include "xtape/compiled.hpp"
#if defined(XTAPE_WITH_ONNX)
#include "xtape/onnx.hpp"
#endif

namespace xtape::c {

#if defined(XTAPE_WITH_ONNX)
namespace {
/// A model with one function, whose name is empty.
class OnnxObject : public ModelObject {
 public:
  OnnxObject(const std::string& path, const OnnxOptions& options, const PlayerOptions& player)
      : model_(open_onnx(path, options)), path_(path), player_(player) {}

  Json describe() const override {
    return {{"opset", model_.opset()}, {"inputs", json_of(model_.inputs())}, {"outputs", json_of(model_.outputs())}};
  }
  Store weights() const override { return Store(model_.weights()); }

  Vars inputs(Tape& tape, const std::string& function, const NamedSizes& sizes) const override {
    check(function);
    Vars made;
    for (const OnnxValue& input : model_.inputs())
      made.push_back(tape.input(input.name, shape(input, sizes), input.dtype));
    return made;
  }
  Vars record(Tape& tape, const std::string& function, const Vars& inputs) const override {
    check(function);
    return model_.record(tape, inputs);
  }

  Store play(const std::string& function, const NamedArrays& arrays, Mode mode) override {
    check(function);
    std::vector<ArrayView> values;
    for (const OnnxValue& input : model_.inputs()) values.push_back(arrays.at(input.name));
    if (values.empty()) throw Error("the model has no inputs: record it on a tape");
    const auto [place, fresh] = compiled_.try_emplace(
        mode, [this](const Vars& inputs) { return model_.record(inputs[0].tape(), inputs); }, player_, Tape(mode));
    place->second.set_step(0);
    const std::vector<ArrayView> outputs = place->second(values);
    Store results;
    for (std::size_t i = 0; i < outputs.size(); ++i) results.add(model_.outputs()[i].name, Array(outputs[i]));
    return results;
  }

  void load_weights(const std::string& path) override {
    const Store arrays = load_arrays(path);
    for (const auto& [name, weight] : model_.weights())
      if (!arrays.has(name)) throw FileError("'" + path + "' has no array '" + name + "'");
    for (const auto& [name, array] : arrays) {
      const Array& weight = model_.weights().at(name);
      if (weight.shape() != array.shape() || weight.dtype() != array.dtype())
        throw FileError("'" + path + "': '" + name + "' is " + to_string(ValueType{array.dtype(), array.shape()}) +
                        ", not " + to_string(ValueType{weight.dtype(), weight.shape()}));
    }
    for (const auto& [name, array] : arrays) Array(model_.weights().at(name)).assign(array);
  }

  void save(const std::string& path, Options& options) const override {
    options.done();
    if (path.ends_with(".safetensors")) return save_arrays(path, model_.weights());
    save_onnx_weights(path, path_, model_.weights());
  }

 private:
  static void check(const std::string& function) {
    if (!function.empty()) throw Error("a model from an ONNX file has one function, NULL, and no '" + function + "'");
  }

  /// The sizes of an input, of which dynamic ones are given by name.
  static Shape shape(const OnnxValue& input, const NamedSizes& sizes) {
    if (!input.ranked)
      throw Error("the file does not say how many axes input '" + input.name + "' has: record it by xtape_input");
    Shape shape;
    for (std::size_t i = 0; i < input.sizes.size(); ++i) {
      if (input.sizes[i] < 0 && input.names[i].empty())
        throw Error("axis " + std::to_string(i) + " of input '" + input.name +
                    "' has neither size nor name: record it by xtape_input");
      shape.push_back(input.sizes[i] < 0 ? sizes.at(input.names[i]) : input.sizes[i]);
    }
    return shape;
  }

  static Json json_of(const std::vector<OnnxValue>& values) {
    Json list = Json::array();
    for (const OnnxValue& value : values) {
      Json dims = Json::array();
      for (std::size_t i = 0; i < value.sizes.size(); ++i)
        dims.push_back(value.sizes[i] < 0 ? Json(value.names[i]) : Json(value.sizes[i]));
      list.push_back({{"name", value.name}, {"dtype", name_of(value.dtype)}, {"dims", value.ranked ? dims : Json()}});
    }
    return list;
  }

  OnnxModel model_;
  std::string path_;
  PlayerOptions player_;
  std::map<Mode, Compiled> compiled_;
};
}  // namespace

std::shared_ptr<ModelObject> open_onnx_model(const std::string& path, Options& options) {
  OnnxOptions how;
  PlayerOptions player;
  options.read_named("floats", how.floats, dtype_named);
  read_player_options(options, player);
  options.done();
  return std::make_shared<OnnxObject>(path, how, player);
}
#else
std::shared_ptr<ModelObject> open_onnx_model(const std::string&, Options&) {
  throw Error("this library was built without xtape-onnx (-Donnx)");
}
#endif

}  // namespace xtape::c

using namespace xtape::c;

xtape_status xtape_onnx_save(const xtape_tape* tape, const char* path, const char* const* names,
                             const xtape_var* outputs, size_t count, const char* options) noexcept {
  return guarded("xtape_onnx_save", [&] {
    const Used<TapeObject> object = use<TapeObject>(tape, "tape");
    Options given(options);
    const xtape::NamedVars named = object->named(names, outputs, count);
    std::int64_t opset = 18;
    given->read("opset", opset, {1, 1000});
    given.done();
    const std::string file = text_of(path, "path");
#if defined(XTAPE_WITH_ONNX)
    xtape::OnnxSaveOptions how;
    how.opset = opset;
    save_onnx(file, named, how);
#else
    throw xtape::Error("this library was built without xtape-onnx (-Donnx)");
#endif
  });
}
