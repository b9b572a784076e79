// Tapes saved to files and loaded again.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "folders.hpp"
#include "tape/tape_json.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using test::Folder;
namespace fs = std::filesystem;

namespace {
std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

std::string text_after(const Tape& tape, const NamedVars& outputs = {}) {
  const Folder folder;
  const std::string path = folder / "tape";
  tape.save(path, outputs);
  const SavedTape saved = Tape::load(path);
  return text_of(saved.tape, saved.outputs).text;
}

template <class T>
std::uint64_t bits(T number) {
  std::uint64_t found = 0;
  std::memcpy(&found, &number, sizeof number);
  return found;
}

Attribute again(const Attribute& value) {
  return attribute_of(JsonNode(json_of(value).dump(), "text", JsonErrors::file));
}

/// An LSTM-like recurrence with dropout, a checkpoint and a tied weight.
struct Example {
  Tape tape;
  Var x, w, loss;
  Example() {
    x = tape.input("x", {2, 5, 3});
    w = tape.parameter("w", Array(xt::xarray<float>{{0.5f, -1.f, 2.f}, {1.f, 0.25f, 0.f}, {-0.5f, 1.f, 1.5f}}));
    const auto guard = tape.in_scope(std::make_shared<const Scope>(Scope{"h.0", "net.json, block 'cell'"}), 12);
    const ScanFunction cell = [&](const Vars& in, const Vars& states) {
      const Var next = dropout(tanh(matmul(in[0], w) + matmul(states[0], w)), 0.25);
      return std::pair(Vars{next * next}, Vars{next});
    };
    const Scanned scanned = scan(cell, {x}, {zeros(tape, {2, 3})});
    const Var y = checkpoint([](const Vars& in) { return Vars{dropout(exp(in[0]), 0.5)}; }, {scanned.outputs[0]})[0];
    const Var table = tape.constant(xt::xarray<float>{{1, 2, 3}});
    const Var hidden = masked_fill(y, y > 2.f, -std::numeric_limits<double>::infinity());
    loss = mean(y * table) + mean(where(hidden > 0.f, y, 0.f));
  }
};

std::vector<float> played(const Tape& tape, const Var& x, const Var& y, int threads) {
  PlayerOptions options;
  options.threads = threads;
  options.seed = 3;
  Player player(tape, {y}, options);
  xt::xarray<float> values = xt::xarray<float>::from_shape({2, 5, 3});
  for (std::size_t i = 0; i < values.size(); ++i) values.flat(i) = std::sin(static_cast<float>(i));
  player.play({{x, values}}, 8);
  const xt::xarray<float> found = player.value<float>(y);
  return {found.begin(), found.end()};
}
}  // namespace

TEST_CASE("attributes keep their type and every bit") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double payload = nan;
  const std::uint64_t odd = 0xfff0000000000123;
  std::memcpy(&payload, &odd, sizeof payload);
  for (const double number : {0.0, -0.0, 1.0, 0.1, 1.0 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
                              9007199254740993.0, 1e22, HUGE_VAL, -HUGE_VAL, nan, -nan, payload}) {
    CAPTURE(number);
    REQUIRE(std::holds_alternative<double>(again(number)));
    CHECK(bits(std::get<double>(again(number))) == bits(number));
  }
  for (const std::int64_t integer : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()})
    CHECK(again(integer) == Attribute(integer));
  const std::vector<Attribute> others = {true,
                                         false,
                                         std::string(),
                                         std::string("inf"),
                                         std::string("a \"b\"\n\0c \xC3\xA4", 11),
                                         std::vector<std::int64_t>{},
                                         std::vector<std::int64_t>{3, -9223372036854775807 - 1},
                                         Dtype::bfloat16,
                                         Dtype::float16,
                                         Dtype::boolean,
                                         NamedSizes{},
                                         NamedSizes{{"dtype", 2}, {"b", -1}}};
  for (const Attribute& other : others) CHECK(again(other) == other);
}

TEST_CASE("elements of constants keep every bit, in every dtype") {
  const auto same = [](const Array& array) {
    const Array back = element_of(JsonNode(json_of_element(array).dump(), "text", JsonErrors::file), array.dtype());
    return std::memcmp(back.data(), array.data(), array.bytes()) == 0;
  };
  for (const std::uint32_t pattern : {0U, 0x80000000U, 1U, 0x3dcccccdU, 0x7f7fffffU, 0x7f800000U, 0xff800000U,
                                      0x7fc00000U, 0x7f800001U, 0xffc12345U}) {
    Array single(Dtype::float32, {});
    std::memcpy(single.data(), &pattern, 4);
    CHECK(same(single));
  }
  for (const Dtype dtype : {Dtype::bfloat16, Dtype::float16}) {
    int wrong = 0;
    for (std::uint32_t pattern = 0; pattern < 1 << 16; ++pattern) {
      Array half(dtype, {});
      std::memcpy(half.data(), &pattern, 2);
      wrong += !same(half);
    }
    CHECK(wrong == 0);
  }
  for (const std::int64_t number : {-128, -1, 0, 1, 127}) {
    Array array(Dtype::int8, {});
    *array.as<std::int8_t>() = static_cast<std::int8_t>(number);
    CHECK(same(array));
  }
  CHECK(same(Array(xt::xarray<double>(1e-310))));
  CHECK(same(Array(xt::xarray<std::int64_t>(std::numeric_limits<std::int64_t>::min()))));
  CHECK(same(Array(xt::xarray<std::int32_t>(std::numeric_limits<std::int32_t>::max()))));
  CHECK(same(Array(xt::xarray<bool>(true))));
}

TEST_CASE("a loaded tape plays the same bits on any number of threads, and records the same gradients") {
  Example example;
  const Folder folder;
  const std::string path = folder / "tape";
  example.tape.save(path, {{"loss", example.loss}});
  SavedTape saved = Tape::load(path);
  REQUIRE(saved.inputs.names() == std::vector<std::string>{"x"});
  REQUIRE(saved.parameters.names() == std::vector<std::string>{"w"});
  REQUIRE(saved.outputs.names() == std::vector<std::string>{"loss"});
  CHECK(text_of(saved.tape, saved.outputs).text == text_of(example.tape, {{"loss", example.loss}}).text);
  std::ostringstream recorded, loaded;
  recorded << example.tape;
  loaded << saved.tape;
  CHECK(recorded.str() == loaded.str());
  Vars gradients;
  for (const auto& [loss, w] :
       {std::pair(example.loss, example.w), std::pair(saved.outputs.at("loss"), saved.parameters.at("w"))})
    gradients.push_back(grad(loss, {w})[0]);
  CHECK(text_of(saved.tape, {}).text == text_of(example.tape, {}).text);
  const std::vector<float> truth = played(example.tape, example.x, gradients[0], 1);
  CHECK(std::isfinite(truth[0]));
  for (const int threads : {1, 2, 3}) CHECK(played(saved.tape, saved.inputs.at("x"), gradients[1], threads) == truth);
  CHECK(played(saved.tape, saved.inputs.at("x"), saved.outputs.at("loss"), 2) ==
        played(example.tape, example.x, example.loss, 1));
}

TEST_CASE("calls recorded after loading get the sites that they get without") {
  Tape tape;
  const Var x = tape.input("x", {4});
  dropout(x, 0.5);
  scan([](const Vars& in, const Vars&) { return std::pair(Vars{dropout(in[0], 0.5)}, Vars{}); }, {x}, {},
       {0, false, {}});
  const Folder folder;
  const std::string path = folder / "tape";
  tape.save(path);
  SavedTape saved = Tape::load(path);
  const Var before = dropout(x, 0.5), after = dropout(saved.inputs.at("x"), 0.5);
  CHECK(before.node().site.key == after.node().site.key);
  CHECK(before.node().site.occurrence == after.node().site.occurrence);
}

TEST_CASE("parameters: one array for shared memory, distinct names, weights of the caller") {
  Tape tape;
  const Array first(xt::xarray<float>{1, 2}), second(xt::xarray<float>{3, 4});
  const Var a = tape.parameter("w", first), b = tape.parameter("w", second), c = tape.parameter("w#0", second.clone());
  const Var d = tape.constant(first), e = tape.parameter("", first.clone());
  const TapeText written = text_of(tape, {});
  CHECK(written.arrays.size() == 5);
  const Folder folder;
  const std::string path = folder / "tape";
  tape.save(path, {{"y", a + b + c + d + e}});
  const SavedTape saved = Tape::load(path);
  CHECK(saved.parameters.size() == 4);
  CHECK(saved.parameters.has("w#1"));
  CHECK(value<float>(saved.outputs.at("y")) == xt::xarray<float>{9, 14});
  const Array other(xt::xarray<float>{10, 20});
  const SavedTape with = Tape::load(path, {{"w#1", Array(other)}});
  CHECK(with.parameters.at("w#1").node().storage.data() == other.data());
  CHECK(value<float>(with.outputs.at("y")) == xt::xarray<float>{16, 30});
  CHECK_THROWS_WITH_AS(Tape::load(path, {{"w#1", Array(Dtype::float32, {3})}}),
                       doctest::Contains("the array is float32 (3,), the node float32 (2,)"), FileError);
}

TEST_CASE("tapes in mode predict keep their past, capacity and states") {
  Tape tape(Mode::predict);
  tape.set_default_dtype(Dtype::float64);
  const Var tokens = tape.input("tokens", {2, 3}, Dtype::int64), past = tape.input("past", {2}, Dtype::int64);
  tape.set_past(tokens, past, 7);
  const Var y = cache(cast(tokens, Dtype::float64));
  const Folder folder;
  const std::string path = folder / "tape";
  tape.save(path, {{"y", y}});
  SavedTape saved = Tape::load(path);
  CHECK(saved.tape.mode() == Mode::predict);
  CHECK(saved.tape.default_dtype() == Dtype::float64);
  CHECK(saved.tape.capacity() == 7);
  REQUIRE(saved.tape.states().size() == 1);
  CHECK(saved.tape.states()[0].input.id() == tape.states()[0].input.id());
  CHECK(saved.tape.past_of(saved.outputs.at("y")).id() == past.id());
  CHECK(text_of(saved.tape, saved.outputs).text == text_of(tape, {{"y", y}}).text);
}

TEST_CASE("nodes keep the array of an op's many outputs, and outputs of them") {
  Tape tape;
  const Var x = tape.input("x", {4, 3});
  const Vars parts = split(x, {1, 3}, 0);
  CHECK(text_after(tape, {{"second", parts[1]}}).find("\"outputs\": {\"second\":[1,1]}") != std::string::npos);
}

TEST_CASE("saving replaces a saved tape and nothing else") {
  const Folder folder;
  const std::string path = folder / "tape";
  Tape small;
  small.input("x", {1});
  small.save(path);
  Tape large;
  large.input("y", {2});
  large.save(path + "/");
  CHECK(Tape::load(path).inputs.has("y"));
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
  CHECK(is_saved_tape(path));
  CHECK(!is_saved_tape(folder.path()));
  CHECK(!is_saved_tape(folder / "none"));
  CHECK_THROWS_WITH_AS(small.save(folder.path()), doctest::Contains("exists and is not a saved tape"), FileError);
  std::ofstream(path + "/notes.txt") << "mine";
  CHECK_THROWS_WITH_AS(small.save(path), doctest::Contains("exists and also has 'notes.txt'"), FileError);
  CHECK(Tape::load(path).inputs.has("y"));
  CHECK_THROWS_WITH_AS(small.save(folder / "no/tape"), doctest::Contains("cannot make"), FileError);
  CHECK_THROWS_WITH_AS(Tape::load(folder.path()), doctest::Contains("is not a saved tape"), FileError);
}

TEST_CASE("weights for a loaded tape must be its parameters") {
  const Folder folder;
  const std::string path = folder / "tape";
  Tape tape;
  const Var y = tape.parameter("weight", xt::xarray<float>{1, 2}) * 2;
  tape.save(path, {{"y", y}});
  Store right, wrong;
  right.add("weight", Array(ArrayView(xt::xarray<float>{3, 4})));
  wrong.add("weigth", Array(ArrayView(xt::xarray<float>{3, 4})));
  CHECK(value<float>(Tape::load(path, right).outputs.at("y")) == xt::xarray<float>{6, 8});
  right.add("weight of another function", Array(Dtype::float32, {7}));
  CHECK(value<float>(Tape::load(path, right).outputs.at("y")) == xt::xarray<float>{6, 8});
  CHECK_THROWS_WITH_AS(Tape::load(path, wrong), doctest::Contains("no parameter 'weigth'; did you mean 'weight'?"),
                       FileError);
}

TEST_CASE("what cannot be saved is an error") {
  const Folder folder;
  const std::string path = folder / "tape";
  Tape tape, other;
  const Var x = other.input("x", {1});
  CHECK_THROWS_WITH_AS(tape.save(path, {{"x", x}}), doctest::Contains("output 'x': its var is of another tape"),
                       HandleError);
  tape.input("na\xffme", {2});
  CHECK_THROWS_WITH_AS(tape.save(path), doctest::Contains("is not UTF-8"), Error);
  static const Op own{.name = "own",
                      .doc = "Of a user.",
                      .inputs = {{"x"}},
                      .shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; },
                      .expand = [](const ExpandCall& call) { return Vars{call.inputs[0] + 1.f}; }};
  const Var y = apply(own, {x})[0];
  CHECK_THROWS_WITH_AS(other.save(path), doctest::Contains("op 'own' of node #1 is not in the tape's op table"), Error);
  CHECK(!fs::exists(path));
  OpTable table = builtin_ops();
  table.add(own);
  other.set_ops(table);
  other.save(path, {{"y", y}});
  CHECK_THROWS_WITH_AS(Tape::load(path), doctest::Contains("unknown op 'own'"), FileError);
  const SavedTape saved = Tape::load(path, {}, &table);
  CHECK(saved.tape.ops() == &table);
}

TEST_CASE("an attribute that the version of a tape did not have has its default") {
  const Example example;
  const Folder folder;
  const std::string path = folder / "tape";
  example.tape.save(path, {{"loss", example.loss}});
  write(path + "/tape.json", replaced(read(path + "/tape.json"), ",\"condition\":-1", ""));
  const SavedTape saved = Tape::load(path);
  CHECK(text_of(saved.tape, saved.outputs).text == text_of(example.tape, {{"loss", example.loss}}).text);
}

TEST_CASE("a damaged file is one error with its line") {
  Example example;
  const Folder folder;
  const std::string path = folder / "tape", file = path + "/tape.json";
  example.tape.save(path, {{"loss", example.loss}});
  const std::string text = read(file);
  const auto refused = [&](const std::string& from, const std::string& to) {
    write(file, replaced(text, from, to));
    try {
      Tape::load(path);
    } catch (const FileError& error) {
      return std::string(error.what());
    }
    return std::string("loaded");
  };
  const auto is_error = [&](const std::string& from, const std::string& to, const std::string& error) {
    const std::string what = refused(from, to);
    CAPTURE(what);
    CHECK(what.find(file + ", ") == 0);
    CHECK(what.find("line ") != std::string::npos);
    CHECK(what.find(error) != std::string::npos);
  };
  is_error("\"xtape tape\"", "\"onnx\"", "this is not a saved tape");
  is_error("\"version\": 1", "\"version\": 2", "line 3: the format has version 2; this xtape reads versions up to 1");
  is_error("\"version\": 1", "\"version\": 1, \"more\": 3", "the key \"more\" is not known here");
  is_error("\"op\":\"parameter\"", "\"op\":\"paramter\"", "unknown op 'paramter'");
  is_error("\"op\":\"checkpoint\"", "\"op\":\"checkpoints\"", "unknown op 'checkpoints'");
  is_error("\"keepdims\":false", "\"keepdim\":false", "has no attribute 'keepdim'; did you mean 'keepdims'?");
  is_error("\"keepdims\":false", "\"keepdims\":0", "attribute 'keepdims' takes true or false, not 0");
  is_error("\"keepdims\":false", "\"keepdims\":false,\"more\":1", "has no attribute 'more'");
  is_error("\"mode\": \"train\"", "\"mode\": \"trian\"", "unknown mode 'trian'");
  is_error("\"default_dtype\": \"float32\"", "\"default_dtype\": \"int64\"", "the default dtype is float32 or float64");
  is_error("\"dtype\":\"float32\"", "\"dtype\":\"float3\"", "unknown dtype 'float3'");
  is_error("\"shape\":[2,5,3]", "\"shape\":[2,-5,3]", "an integer from 0");
  is_error("\"shape\":[2,5,3]", "\"shape\":[1,1,1,1,1,1,1,1,1,1,1]", "at most 10 axes");
  is_error("\"shape\":[2,5,3]", "\"shape\":[4611686018427387904,5,3]", "line 5");
  is_error("\"shape\":[2,5,3]", "\"shape\":[2,6,3]", "by the op's shape rule, not float32 (5, 2, 3)");
  is_error("\"inputs\":[[0,0]", "\"inputs\":[[99,0]", "there is no node 99 before this one");
  is_error("\"inputs\":[[0,0]", "\"inputs\":[[0,1]", "node 0 has 1 outputs, so no output 1");
  is_error("\"inputs\":[[0,0]", "\"inputs\":[[0]", "a value belongs here");
  is_error("\"node\":1,", "\"node\":2,", "this is node 1 of its tape");
  is_error("\"array\":\"w\"", "\"array\":\"v\"", "has no array 'v'");
  is_error("\"key\":\"", "\"key\":\"X", "16 lower-case hexadecimal digits");
  is_error("\"loss\":[", "\"loss\":[999,0],\"other\":[", "there is no node 999");
  is_error("\"length\":5", "\"length\":6", "must have 6 steps along axis 0");
  is_error("\"states\":1", "\"states\":0", "its body does not have the inputs and results");
  is_error("\"number\":\"-inf\"", "\"number\":\"-Inf\"", "\"inf\" or \"-inf\" belongs here");
  is_error("\n]", "\n", "line ");
  write(file, text.substr(0, text.size() / 2));
  CHECK_THROWS_WITH_AS(Tape::load(path), doctest::Contains("line "), FileError);
  write(file, "");
  CHECK_THROWS_WITH_AS(Tape::load(path), doctest::Contains("is empty"), FileError);
  write(file, text);
  const std::string arrays = read(path + "/arrays.safetensors");
  write(path + "/arrays.safetensors", arrays.substr(0, arrays.size() - 3));
  CHECK_THROWS_WITH_AS(Tape::load(path), doctest::Contains("arrays.safetensors"), FileError);
  fs::remove(path + "/arrays.safetensors");
  CHECK_THROWS_WITH_AS(Tape::load(path), doctest::Contains("arrays.safetensors"), FileError);
}

TEST_CASE("bodies may be nested, up to a limit that reader and writer share") {
  const auto nested = [](int depth) {
    Tape tape;
    std::function<Vars(const Vars&)> function = [](const Vars& in) { return Vars{tanh(in[0])}; };
    for (int i = 0; i < depth; ++i) function = [inner = function](const Vars& in) { return checkpoint(inner, in); };
    const Var x = tape.input("x", {2});
    return std::pair(tape, function({x})[0]);
  };
  const auto [tape, y] = nested(deepest_body);
  CHECK(text_after(tape, {{"y", y}}) == text_of(tape, {{"y", y}}).text);
  const auto deeper = nested(deepest_body + 1);
  CHECK_THROWS_WITH_AS(text_of(deeper.first, {}), doctest::Contains("nested more than 64 deep"), Error);
}
