// ONNX files as blocks of definitions.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/onnx.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
const std::string golden = source_root() + "/tests/golden/data/onnx/";

/// A definition whose function `y` is `result`, with the file's outputs, or others.
std::string definition(const std::string& file, const std::string& outputs = "", const std::string& result = "net(x)",
                       const std::string& modules = "net") {
  return R"({"xtape": 2, "name": "from_file", "blocks": {"network": {"onnx": ")" + golden + file + "\"" +
         (outputs.empty() ? "" : ", \"outputs\": " + outputs) + R"(}}, "model": {"modules": {")" + modules +
         R"(": {"block": "network"}}, "functions": {"y": {"inputs": {"x": "float [b, t, c]"}, "result": ")" + result +
         "\"}}}}";
}

Model parsed(const std::string& text, Dtype dtype = Dtype::float32) {
  read_onnx_blocks();
  ModelOptions options;
  options.dtype = dtype;
  return Model::parse(text, options);
}

/// y and its gradients by all weights.
Store played(const Model& model, const Array& x) {
  Tape tape(Mode::eval);
  const NamedVars inputs = model.inputs(tape, "y", {{"b", x.shape()[0]}, {"t", x.shape()[1]}, {"c", x.shape()[2]}});
  NamedVars found = model.record(tape, "y", inputs);
  const Var loss = sum(square(found[0].value));
  for (const auto& [name, weight] : model.weights(tape)) found.add(name, grad(loss, weight));
  Vars vars;
  for (const auto& [name, var] : found) vars.push_back(var);
  Player player(tape, vars);
  player.play({{inputs[0].value, x}});
  Store arrays;
  for (const auto& [name, var] : found) arrays.add(name, Array(player.view(var)));
  return arrays;
}

bool same(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

std::string error_of(const std::string& text) {
  try {
    parsed(text);
  } catch (const DefinitionError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("an ONNX file as a block computes what OnnxModel records, with weights under the module's path") {
  const Array x = load_arrays(golden + "encoder.safetensors").at("x");
  const OnnxModel file = open_onnx(golden + "encoder.onnx");
  const Model model = parsed(definition("encoder.onnx"));
  const Store found = played(model, x);
  Tape tape(Mode::eval);
  const Var input = tape.input("x", x.shape()), y = file.record(tape, {input})[0], loss = sum(square(y));
  Vars vars{y};
  for (const auto& [name, weight] : file.weights(tape)) vars.push_back(grad(loss, weight));
  Player player(tape, vars);
  player.play({{input, x}});
  REQUIRE(model.weights().size() == file.weights().size());
  CHECK(model.weights_from_files().size() == file.weights().size());
  CHECK(same(found.at("y"), Array(player.view(y))));
  std::size_t i = 0;
  for (const Store::Entry& weight : file.weights()) {
    CAPTURE(weight.name);
    CHECK(same(model.weights().at("net." + weight.name), weight.value));
    CHECK(same(found.at("net." + weight.name), Array(player.view(vars[++i]))));
  }
}

TEST_CASE("a definition that extends another changes the outputs of its ONNX block") {
  const test::Folder folder;
  folder.write("whole.json", definition("encoder.onnx"));
  const auto changed = [&](const std::string& change) {
    return R"({"xtape": 2, "name": "cut", "extends": ")" + (folder / "whole.json") +
           R"(", "blocks": {"network": {"change": )" + change + "}}}";
  };
  const Array x = load_arrays(golden + "encoder.safetensors").at("x");
  const std::string value = "/encoder/Relu_output_0";
  const Model cut = parsed(changed(R"({"outputs": [")" + value + "\"]}"));
  CHECK(cut.weights().size() < parsed(definition("encoder.onnx")).weights().size());
  Tape tape(Mode::eval);
  const Var input = tape.input("x", x.shape());
  const Var y = open_onnx(golden + "encoder.onnx").record(tape, {input}, {value})[0];
  Player player(tape, {y});
  player.play({{input, x}});
  CHECK(same(played(cut, x).at("y"), Array(player.view(y))));
  CHECK(contains(error_of(changed(R"({"outputs": ["Relu"]})")), "there is no value 'Relu'"));
  CHECK(contains(error_of(changed(R"({"result": "x"})")), "block 'network'"));
}

TEST_CASE("modules of one ONNX block have weights of their own, and the sites of nodes begin with their paths") {
  const Array x = load_arrays(golden + "encoder.safetensors").at("x");
  Model model = parsed(definition("encoder.onnx", "", "net(x) + twin(x)", "net, twin"));
  const Model once = parsed(definition("encoder.onnx"));
  CHECK(model.weights().size() == 2 * once.weights().size());
  const std::string name = once.weights()[0].name.substr(4);
  model.weight("twin." + name).as<float>()[0] += 1;
  CHECK(!same(model.weights().at("net." + name), model.weights().at("twin." + name)));
  CHECK(same(model.weights().at("net." + name), once.weights()[0].value));
  Tape tape(Mode::eval);
  const NamedVars inputs = model.inputs(tape, "y", {{"b", x.shape()[0]}, {"t", x.shape()[1]}, {"c", x.shape()[2]}});
  const Var y = model.record(tape, "y", inputs)[0].value;
  CHECK(contains(to_string(y.tape().var({y.id().node - 1}).node().site), "twin/"));
}

TEST_CASE("an ONNX block that is cut has the weights that its outputs need") {
  const OnnxModel file = open_onnx(golden + "encoder.onnx");
  // The input of the last norm: the output of the softmax is inside, too.
  const Model cut = parsed(definition("encoder.onnx", R"(["x"])", "2 * net(x)"));
  CHECK(cut.weights().empty());
  const Array x = load_arrays(golden + "encoder.safetensors").at("x");
  CHECK(played(cut, x).at("y").as<float>()[3] == 2 * x.as<float>()[3]);
  const std::string y = file.outputs()[0].name;
  const Model both = parsed(definition("encoder.onnx", "[\"" + y + "\", \"x\"]", "net(x)[0] + 0 * sum(net(x)[1])"));
  CHECK(both.weights().size() == file.weights().size());
}

TEST_CASE("the definition of a model with an ONNX block loads without the file") {
  const Array x = load_arrays(golden + "causal.safetensors").at("x");
  const std::string copy = (std::filesystem::temp_directory_path() / "xtape_onnx_block.safetensors").string();
  std::string text;
  Store expected;
  {
    const Model model = parsed(definition("causal.onnx"));
    text = model.definition_text();
    model.save_weights(copy);
    expected = played(model, x);
  }
  CHECK(text.size() < 20000);
  Model again = parsed(text);
  CHECK(again.definition_text() == text);
  again.load_weights(copy);
  std::filesystem::remove(copy);
  const Store found = played(again, x);
  for (const Store::Entry& each : expected) CHECK(same(found.at(each.name), each.value));
}

TEST_CASE("an ONNX block has the dtype of its model") {
  const Array x = load_arrays(golden + "encoder.safetensors").at("x");
  Array wide(Dtype::float64, x.shape());
  for (std::int64_t i = 0; i < x.count(); ++i) wide.as<double>()[i] = static_cast<double>(x.as<float>()[i]);
  const Store narrow = played(parsed(definition("encoder.onnx")), x),
              found = played(parsed(definition("encoder.onnx"), Dtype::float64), wide);
  REQUIRE(found.at("y").dtype() == Dtype::float64);
  for (std::int64_t i = 0; i < found.at("y").count(); ++i)
    CHECK(std::abs(found.at("y").as<double>()[i] - static_cast<double>(narrow.at("y").as<float>()[i])) < 1e-5);
}

TEST_CASE("errors of ONNX blocks name the definition's line") {
  CHECK(contains(error_of(definition("none.onnx")), "block 'network', line 1: "));
  CHECK(contains(error_of(definition("none.onnx")), "none.onnx"));
  CHECK(contains(error_of(definition("encoder.onnx", R"(["nothing"])")), "there is no value 'nothing'"));
  CHECK(contains(error_of(definition("encoder.safetensors")), "encoder.safetensors"));
  CHECK(contains(error_of(R"({"xtape": 2, "name": "a", "blocks": {"n": {"onnx": "a", "do": []}}})"),
                 "\"do\" is not known"));
  const auto recording_error = [](const std::string& result) -> std::string {
    const Model model = parsed(definition("encoder.onnx", "", result));
    Tape tape;
    try {
      model.record(tape, "y", model.inputs(tape, "y", {{"b", 1}, {"t", 2}, {"c", 3}}));
    } catch (const DefinitionError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(contains(recording_error("net(x, x)"), "takes (x), got 2 arguments"));
  CHECK(contains(recording_error("net(3) * sum(x)"), "input 'x' is an array, not 3"));
  CHECK(contains(recording_error("net(x)"),
                 "function 'y', line 1: encoder.onnx: input 'x' has the shape (b, t, 4), not (1, 2, 3)"));
}

TEST_CASE("texts with damaged ONNX blocks are one error") {
  std::string text = parsed(definition("encoder.onnx")).definition_text();
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string copy = text;
    const std::size_t place = copy.find(from);
    REQUIRE(place != std::string::npos);
    return copy.replace(place, from.size(), to);
  };
  CHECK(contains(error_of(replaced("\"graph\": \"", "\"graph\": \"%")), "this is no base64"));
  CHECK(contains(error_of(replaced("\"graph\": \"", "\"graph\": \"AAAA")), "encoder.onnx"));
  CHECK(contains(error_of(replaced("\"weights\": {", "\"weights\": {\"a\": [1099511627776, 2],")),
                 "the weight is too large"));
}
