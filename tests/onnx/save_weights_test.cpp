// Errors of writing, large files, and weights that go back into the file that they came from.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "blocks.hpp"
#include "round_trip.hpp"
#include "xtape/ops/elementwise.hpp"

using namespace xtape;

namespace {
std::string bytes_of(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

/// y = x w + b, with metadata, in a file.
std::string small_model() {
  const Written model{13,
                      {node("MatMul", {"x", "w"}, {"h"}, {}, "product"), node("Add", {"h", "b"}, {"y"})},
                      {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}), floats("b", {3}, {10, 20, 30})},
                      {value("x", Integers{-1, 2})},
                      {value("y", Integers{-1, 3})}};
  std::string bytes = model.bytes();
  pbf_writer to(bytes);
  to.add_string(6, "what the model is for");
  to.add_message(14, message([](pbf_writer& entry) {
                   entry.add_string(1, "author");
                   entry.add_string(2, "someone");
                 }));
  return bytes;
}
}  // namespace

TEST_CASE("one error lists all calls that cannot be written, with their places, and no file is made") {
  const Scratch scratch;
  const std::string path = scratch.folder + "/made.onnx";
  Tape tape;
  const Var x = tape.input("x", {2, 2}), first = xtape::lgamma(x), second = xtape::digamma(exp(first));
  try {
    save_onnx(path, {{"y", second}});
    FAIL("it was written");
  } catch (const Error& error) {
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(what.find(path + ": these calls cannot be written: lgamma at save_weights_test.cpp, line ") == 0);
    CHECK(what.find(", digamma at save_weights_test.cpp, line ") != std::string::npos);
  }
  CHECK(!std::filesystem::exists(path));
  Tape other;
  const Var elsewhere = other.input("x", {2});
  CHECK_THROWS_AS(save_onnx(path, {}), Error);
  CHECK_THROWS_AS(save_onnx(path, {{"y", x}, {"z", elsewhere}}), HandleError);
  CHECK_THROWS_AS(save_onnx(path, {{"y", x}}, {17, {}, 1000}), Error);
  CHECK_THROWS_AS(save_onnx(path, {{"y", x}}, {24, {}, 1000}), Error);
  CHECK_THROWS_AS(save_onnx(path, {{"x", x * 2}}), Error);  // an output with the name of an input
  CHECK_THROWS_AS(save_onnx(path, {{"", x}}), Error);
  const Var half = x * 0.5, sum = half + tape.input("more", {2, 2});
  CHECK_THROWS_WITH_AS(save_onnx(path, {{"y", sum}}, {18, {{"half", half}}, 1000}),
                       (path + ": input 'more' of the tape is not among the inputs of the file").c_str(), Error);
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("a file begins at any value, and an input may be an output") {
  const Scratch scratch;
  const std::string path = scratch.folder + "/made.onnx";
  Tape tape;
  const Var x = tape.input("x", {2}), h = exp(x), y = h * 3;
  save_onnx(path, {{"y", y}, {"same", h}}, {18, {{"h", h}}, 100000});
  const OnnxModel model = open_onnx(path);
  CHECK(model.inputs().size() == 1);
  CHECK(model.inputs()[0].name == "h");
  CHECK(played<float>(model, {1, 2}) == xt::xarray<float>{3, 6});
}

TEST_CASE("all versions of the operators are written") {
  const round_trip::Folder folder;
  for (std::int64_t opset = 18; opset <= 23; ++opset) {
    Tape tape;
    const Var x = tape.input("x", {2, 4}), w = tape.input("w", {4});
    const Var y = softmax(gelu(rms_norm(x, w)) + layer_norm(x, w));
    OnnxSaveOptions options;
    options.opset = opset;
    CHECK(folder.part_of_largest("opset_" + std::to_string(opset), {{"x", x}, {"w", w}}, {{"y", y}}, options) < 1e-5);
    CHECK(open_onnx(folder.path("opset_" + std::to_string(opset))).opset() == opset);
  }
}

TEST_CASE("weights in blocks are written as DequantizeLinear, and keep their numbers") {
  const round_trip::Folder folder;
  for (const Dtype dtype : {Dtype::q8_0, Dtype::q4_0, Dtype::q4_k, Dtype::q5_k, Dtype::q6_k})
    for (const std::int64_t opset : {18, 21}) {
      Tape tape;
      const auto number = [](std::int64_t i) { return std::sin(0.37F * static_cast<float>(i)); };
      const Var x = tape.input("x", {2, 256}), i = tape.input("i", {3}, Dtype::int64);
      const Var w = dequantize(tape.parameter("w", rounded_to_blocks(dtype, {4, 256}, number))),
                parts = dequantize(tape.parameter("parts", rounded_to_blocks(dtype, {4, 8, 24}, number)));
      OnnxSaveOptions options;
      options.opset = opset;
      const std::string file = std::string("blocks_") + name_of(dtype) + "_" + std::to_string(opset);
      CHECK(folder.part_of_largest(file, {{"x", x}}, {{"y", einsum("bi,oi->bo", {x, w})}}, options) < 1e-6);
      CHECK(folder.part_of_largest(file + "_numbers", {{"i", i}}, {{"w", take(w, i)}, {"parts", take(parts, i)}},
                                   options) == 0);
      const std::string bytes = bytes_of(folder.path(file));
      CHECK(bytes.find("DequantizeLinear") != std::string::npos);
      CHECK((bytes.find("block_size") != std::string::npos) == (opset == 21));
    }
}

TEST_CASE("large arrays are in a file beside the model") {
  const round_trip::Folder folder;
  Tape tape;
  const Var x = tape.input("x", {2, 40});
  const Var w = tape.parameter("w", round_trip::numbers_for({Dtype::float32, {40, 50}}, 1)),
            v = tape.parameter("v", round_trip::numbers_for({Dtype::float32, {50, 30}}, 2)),
            b = tape.parameter("b", round_trip::numbers_for({Dtype::float32, {30}}, 3));
  OnnxSaveOptions options;
  options.largest_file = 4000;
  CHECK(folder.part_of_largest("external", {{"x", x}}, {{"y", matmul(matmul(x, w), v) + b}}, options) < 1e-5);
  CHECK(std::filesystem::file_size(folder.path("external")) < 4000);
  CHECK(std::filesystem::file_size(folder.path("external") + ".data") == 8192 + 50 * 30 * 4);  // pages
  CHECK(open_onnx(folder.path("external")).weights().names() == std::vector<std::string>{"w", "v", "b"});

  // The same weights go into a file in another folder, in which all is inside again.
  const Scratch scratch;
  const std::string copy = scratch.folder + "/copy.onnx";
  save_onnx_weights(copy, folder.path("external"), {});
  CHECK(!std::filesystem::exists(copy + ".data"));
  const OnnxModel model = open_onnx(copy), before = open_onnx(folder.path("external"));
  const xt::xarray<float> fed = xt::ones<float>({2, 40});
  CHECK(played(model, fed) == played(before, fed));
}

TEST_CASE("a trained model goes back into the file that it came from") {
  const Scratch scratch;
  const std::string path = scratch.folder + "/model.onnx", tuned = scratch.folder + "/tuned.onnx";
  std::ofstream(path, std::ios::binary) << small_model();
  const OnnxModel model = open_onnx(path);
  save_onnx_weights(tuned, path, model.weights());
  const std::string same = bytes_of(tuned);
  CHECK(played<float>(open_onnx(tuned), {{1, 0}, {2, 1}}) == xt::xarray<float>{{11, 22, 33}, {16, 29, 42}});

  Array w(model.weights().at("w"));
  w.as<float>()[0] = 100;
  save_onnx_weights(path, path, {{"w", w}});  // over the original
  const std::string changed = bytes_of(path);
  CHECK(played<float>(open_onnx(path), {{1, 0}, {2, 1}}) == xt::xarray<float>{{110, 22, 33}, {214, 29, 42}});
  CHECK(changed.size() < bytes_of(tuned).size() + 16);
  for (const char* kept : {"what the model is for", "author", "someone", "product"})
    CHECK(changed.find(kept) != std::string::npos);

  const std::string before = bytes_of(path);
  CHECK_THROWS_WITH_AS(save_onnx_weights(path, path, {{"v", w}, {"u", w}}),
                       (path + ": the model has no initialisers 'v', 'u'").c_str(), Error);
  CHECK_THROWS_WITH_AS(save_onnx_weights(path, path, {{"b", w}}),
                       (path + ": initialiser 'b' has the shape (3,), the weight (2, 3)").c_str(), ShapeError);
  Array integers(Dtype::int64, {3});
  CHECK_THROWS_WITH_AS(save_onnx_weights(path, path, {{"b", integers}}),
                       (path + ": initialiser 'b' is float32, the weight int64").c_str(), DtypeError);
  CHECK(bytes_of(path) == before);
  std::ofstream(tuned, std::ios::binary) << "no model";
  CHECK_THROWS_AS(save_onnx_weights(path, tuned, {}), FileError);
  CHECK_THROWS_AS(save_onnx_weights(path, scratch.folder + "/none.onnx", {}), FileError);
}

TEST_CASE("the float initialisers of a file are read by name, whatever its operators are") {
  const Scratch scratch;
  const std::string path = scratch.folder + "/odd.onnx";
  const Written model{13,
                      {node("NoSuchOperator", {"x", "w", "sizes"}, {"y"})},
                      {floats("w", {2, 1}, {3, 4}), integers("sizes", {5, 6}), floats("b", {1}, {7})},
                      {value("x", Integers{-1, 2})},
                      {value("y", Integers{-1, 3})}};
  std::ofstream(path, std::ios::binary) << model.bytes();
  const Store weights = load_onnx_weights(path);
  CHECK(weights.names() == std::vector<std::string>{"w", "b"});
  CHECK(weights.at("w").shape() == Shape{2, 1});
  CHECK(weights.at("w").as<float>()[1] == 4);
  CHECK_THROWS_AS(open_onnx(path), Error);
  CHECK_THROWS_AS(load_onnx_weights(scratch.folder + "/none.onnx"), FileError);
}
