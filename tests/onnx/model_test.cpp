// ONNX files written here: versions of operators, what must be known while recording, weights, places, damage.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "onnx/messages.hpp"
#include "source_root.hpp"
#include "written.hpp"
#include "xtape/grad.hpp"
#include "xtape/onnx.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("a model has inputs, outputs and weights by name, and records its operators") {
  const Scratch scratch;
  const OnnxModel model = scratch.open({13,
                                        {node("MatMul", {"x", "w"}, {"h"}), node("Add", {"h", "b"}, {"y"})},
                                        {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}), floats("b", {3}, {10, 20, 30})},
                                        {value("x", Integers{-1, 2}), value("w", Integers{2, 3})},
                                        {value("y", Integers{-1, 3})}});
  REQUIRE(model.inputs().size() == 1);  // w has a value
  CHECK(model.inputs()[0].name == "x");
  CHECK(model.inputs()[0].sizes == Integers{-1, 2});
  CHECK(model.outputs()[0].name == "y");
  CHECK(model.opset() == 13);
  CHECK(model.weights().names() == std::vector<std::string>{"w", "b"});
  CHECK(played<float>(model, {{1, 0}, {2, 1}}) == xt::xarray<float>{{11, 22, 33}, {16, 29, 42}});
}

TEST_CASE("tapes share the weights of a model, which have gradients") {
  const Scratch scratch;
  const OnnxModel model = scratch.open({13, {node("MatMul", {"x", "w"}, {"y"})}, {floats("w", {2, 2}, {1, 2, 3, 4})}});
  Tape tape;
  const Var x = tape.input("x", {1, 2});
  const Var loss = sum(model.record(tape, {x})[0]);
  const Var gradient = grad(loss, {model.weights(tape).at("w")})[0];
  Player player(tape, {loss, gradient});
  player.play({{x, xt::xarray<float>{{5, 7}}}});
  CHECK(player.scalar(loss) == 5 * (1 + 2) + 7 * (3 + 4));
  CHECK(player.value<float>(gradient) == xt::xarray<float>{{5, 5}, {7, 7}});
  Array weight(model.weights().at("w"));
  weight.as<float>()[0] = 2;
  player.play({{x, xt::xarray<float>{{5, 7}}}});
  CHECK(player.scalar(loss) == 5 * (2 + 2) + 7 * (3 + 4));
}

TEST_CASE("the document's example plays, and the document lists the operators") {
  const Scratch scratch;
  scratch.open({13, {node("MatMul", {"x", "w"}, {"y"})}, {floats("w", {3, 1}, {1, 2, 3})}});
  const std::string path = scratch.folder + "/model.onnx";
  const OnnxModel model = open_onnx(path);
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const Vars y = model.record(tape, {x});
  Player player(tape, y);
  player.play({{x, xt::xarray<float>{{1, 2, 3}, {4, 5, 6}}}});
  CHECK(player.value<float>(y[0])(0, 0) == 14);
  CHECK(player.value<float>(y[0])(1, 0) == 32);

  std::ifstream document(source_root() + "/docs/how_to/onnx.md");
  std::set<std::string> listed;
  for (std::string line; std::getline(document, line);)
    if (line.rfind("| ", 0) == 0)
      for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
        const std::size_t end = line.find('`', at + 1);
        CHECK_MESSAGE(listed.insert(line.substr(at + 1, end - at - 1)).second, "listed twice in " << line);
        at = end;
      }
  const std::vector<std::string> operators = onnx_operators();
  CHECK(listed == std::set<std::string>(operators.begin(), operators.end()));
}

TEST_CASE("the floats of a model become float64") {
  const Scratch scratch;
  const OnnxModel model =
      scratch.open({13, {node("Mul", {"x", "w"}, {"y"})}, {floats("w", {1}, {0.5F})}}, {Dtype::float64});
  CHECK(model.weights().at("w").dtype() == Dtype::float64);
  CHECK(played<double>(model, {3}) == xt::xarray<double>{1.5});
  CHECK_THROWS_WITH_AS(open_onnx("model.onnx", {Dtype::int32}),
                       "the floats of a model are float32 or float64, not int32", Error);
}

TEST_CASE("halves of a model stay, and normalisations square them in float32") {
  const Scratch scratch;
  constexpr int float16_element = 10;
  for (const std::string op : {"MeanVarianceNormalization", "LRN"}) {
    CAPTURE(op);
    const std::vector<std::string> size = op == "LRN" ? std::vector{attribute("size", 1)} : std::vector<std::string>{};
    const Written written{13,
                          {node(op, {"x"}, {"y"}, size)},
                          {},
                          {value("x", Integers{2, 1, 1, 2}, float16_element)},
                          {value("y", std::nullopt, float16_element)}};
    const auto outputs = [&](const OnnxModel& model, const Array& x) {
      Tape tape;
      const Var y = model.record(tape, {tape.constant(x)})[0];
      CHECK(y.dtype() == x.dtype());
      return evaluate(cast(y, Dtype::float64)).to<double>();
    };
    const OnnxModel halves = scratch.open(written), wide = scratch.open(written, {Dtype::float32});
    for (const std::vector<float>& given : {std::vector<float>{900, -900, 600, 300}, std::vector<float>{5, 5, 5, 5}}) {
      Array narrow(Dtype::float16, {2, 1, 1, 2}), floats(Dtype::float32, {2, 1, 1, 2});
      for (std::size_t i = 0; i < 4; ++i) narrow.as<float16>()[i] = float16(floats.as<float>()[i] = given[i]);
      const auto found = outputs(halves, narrow), expected = outputs(wide, floats);
      for (std::size_t i = 0; i < 4; ++i) CHECK(found.flat(i) == doctest::Approx(expected.flat(i)).epsilon(0x1p-10));
    }
  }
}

TEST_CASE("axes are an attribute in older versions and an input in newer ones") {
  const Scratch scratch;
  const xt::xarray<float> x = {{1, 2}, {3, 4}}, sums = {4, 6};
  const std::string drop = attribute("keepdims", 0);
  CHECK(played(scratch.open({12, {node("ReduceSum", {"x"}, {"y"}, {attribute("axes", Integers{0}), drop})}}), x) ==
        sums);
  CHECK(played(scratch.open({13, {node("ReduceSum", {"x", "axes"}, {"y"}, {drop})}, {integers("axes", {0})}}), x) ==
        sums);
}

TEST_CASE("shapes that are computed from shapes are known while recording") {
  const Scratch scratch;
  // reshape(x, concat(shape(x)[0:1], [-1])), as exporters write flattening
  const OnnxModel model = scratch.open(
      {13,
       {node("Shape", {"x"}, {"shape"}), node("Gather", {"shape", "zero"}, {"rows"}),
        node("Concat", {"rows", "rest"}, {"sizes"}, {attribute("axis", 0)}), node("Reshape", {"x", "sizes"}, {"y"})},
       {integers("zero", {0}), integers("rest", {-1})}});
  const xt::xarray<float> x = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}};
  CHECK(played(model, x) == xt::xarray<float>{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}});
}

TEST_CASE("what decides a shape but depends on an input is an error, and nothing stays recorded") {
  const Scratch scratch;
  const OnnxModel model = scratch.open({13, {node("Tile", {"x", "x"}, {"y"}, {}, "repeat")}});
  Tape tape;
  const Var x = tape.input("x", {1});
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(model.record(tape, {x}),
                       "repeat (model.onnx, Tile): Tile: input 1 ('x') must be known while recording, but depends on "
                       "the values of the model's inputs",
                       Error);
  CHECK(tape.size() == size);
}

TEST_CASE("nodes have their names in the file as sites, and errors name them") {
  const Scratch scratch;
  const OnnxModel model = scratch.open({13, {node("Exp", {"x"}, {"h"}), node("MatMul", {"h", "h"}, {"y"}, {}, "mix")}});
  Tape tape;
  CHECK(to_string(model.record(tape, {tape.input("x", {2, 2})})[0].node().site) == "mix (model.onnx, MatMul)");
  const Var wide = tape.input("wide", {2, 3});
  try {
    model.record(tape, {wide});
    FAIL("recorded");
  } catch (const ShapeError& error) {
    CHECK(std::string(error.what()).find("mix (model.onnx, MatMul): ") == 0);
  }
}

TEST_CASE("inputs that the file does not take are errors") {
  const Scratch scratch;
  const OnnxModel model = scratch.open({13, {node("Exp", {"x"}, {"y"})}, {}, {value("x", Integers{-1, 3})}});
  Tape tape;
  CHECK_THROWS_WITH_AS(model.record(tape, {}), "model.onnx: the model has 1 inputs (x), not 0", Error);
  CHECK_THROWS_WITH_AS(model.record(tape, {tape.input("a", {2, 4})}),
                       "model.onnx: input 'x' has the shape (n, 3), not (2, 4)", ShapeError);
  CHECK_THROWS_WITH_AS(model.record(tape, {tape.input("b", {2, 3}, Dtype::int64)}),
                       "model.onnx: input 'x' is float32, not int64", DtypeError);
  CHECK(model.record(tape, {tape.input("c", {0, 3})})[0].shape() == Shape{0, 3});
}

TEST_CASE("one error lists all operators that are missing; attributes, inputs and outputs are never ignored") {
  const Scratch scratch;
  const auto recorded = [&](const std::string& each) {
    Tape tape;
    try {
      scratch.open({13, {each}}).record(tape, {tape.input("x", {2})});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(scratch.error(
            Written{13, {node("Foo", {"x"}, {"h"}, {}, "first"), node("Exp", {"h"}, {"i"}), node("Bar", {"i"}, {"y"})}}
                .bytes()) == "xtape lacks the operators of these nodes: Foo (node 'first'), Bar (node 'y')");
  CHECK(recorded(node("Exp", {"x"}, {"y"}, {attribute("base", 2)})) ==
        "y (model.onnx, Exp): Exp: attribute 'base' is not supported");
  CHECK(recorded(node("Exp", {"x", "x"}, {"y", "z"})) ==
        "y (model.onnx, Exp): Exp: input 1, output 1 are not supported");
  CHECK(recorded(node("Exp", {}, {"y"})) == "y (model.onnx, Exp): Exp: input 0 is missing");
  CHECK(recorded(node("Exp", {"z"}, {"y"})) == "y (model.onnx, Exp): Exp: there is no value 'z' at this node");
  CHECK(recorded(node("Exp", {"x"}, {"x"})) == "x (model.onnx, Exp): Exp: there is a value 'x' already");
  CHECK(recorded(node("Exp", {"x"}, {"z"})) == "model.onnx: there is no value 'y'");
  CHECK(recorded(node("ReduceSum", {"x"}, {"y"}, {attribute("keepdims", Integers{1})})) ==
        "y (model.onnx, ReduceSum): ReduceSum: attribute 'keepdims' has type 7, not 2");
  for (const std::int64_t flag : {-1, 2})
    CHECK(recorded(node("ReduceSum", {"x"}, {"y"}, {attribute("keepdims", flag)})) ==
          "y (model.onnx, ReduceSum): ReduceSum: attribute 'keepdims' is " + std::to_string(flag) + ", not 0 or 1");
  CHECK(scratch.error(Written{24, {node("Exp", {"x"}, {"y"})}}.bytes()) ==
        "the model uses version 24 of ONNX's operators; xtape reads 1 to 23");
  CHECK(onnx_operators().size() > 100);
}

TEST_CASE("external data is read from the folder of the model, and from no other") {
  const Scratch scratch;
  const std::vector<float> numbers = {0, 1, 2, 3};
  std::ofstream(scratch.folder + "/weights", std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()), sizeof(float) * 4);
  const auto written = [&](const std::string& location, const std::string& offset, const std::string& length) {
    const auto entry = [&](const std::string& key, const std::string& text) {
      return message([&](pbf_writer& to) {
        to.add_string(1, key);
        to.add_string(2, text);
      });
    };
    return Written{13, {node("Add", {"x", "w"}, {"y"})}, {message([&](pbf_writer& to) {
                     to.add_int64(1, 2);
                     to.add_int32(2, 1);
                     to.add_string(8, "w");
                     to.add_message(13, entry("location", location));
                     to.add_message(13, entry("offset", offset));
                     to.add_message(13, entry("length", length));
                     to.add_int32(14, 1);
                   })}}
        .bytes();
  };
  CHECK(played<float>(scratch.open(written("weights", "8", "8")), {0, 0}) == xt::xarray<float>{2, 3});
  CHECK(scratch.error(written("weights", "12", "8")) == "'weights' ends before the 8 bytes at 12");
  CHECK(scratch.error(written("weights", "8", "12")) == "external data has 12 bytes, not 8");
  CHECK(scratch.error(written("weights", "-8", "8")) ==
        "external data has the offset or length '-8', which is no number");
  CHECK(scratch.error(written("../weights", "8", "8")) ==
        "external data '../weights' is not in the folder of the model");
  CHECK(scratch.error(written("/weights", "8", "8")) == "external data '/weights' is not in the folder of the model");
  CHECK(scratch.error(written(std::string("weights\0x", 9), "8", "8")).find("is not in the folder") !=
        std::string::npos);
  CHECK(scratch.error(written("absent", "8", "8")).find("No such file") != std::string::npos);

  // Symbolic links may lead to another place in the folder, but not out of it.
  namespace fs = std::filesystem;
  fs::create_directory(scratch.folder + "/inner");
  fs::create_symlink("../weights", scratch.folder + "/inner/link");
  CHECK(played<float>(scratch.open(written("inner/link", "8", "8")), {0, 0}) == xt::xarray<float>{2, 3});
  const Scratch other(".other");
  fs::rename(scratch.folder + "/weights", other.folder + "/weights");
  fs::create_symlink(other.folder + "/weights", scratch.folder + "/file");
  fs::create_directory_symlink(other.folder, scratch.folder + "/folder");
  for (const std::string path : {"file", "folder/weights", "inner/link"})
    CHECK(scratch.error(written(path, "8", "8")).find(path == "inner/link" ? "No such file" : "is not in the folder") !=
          std::string::npos);
  // In a cache of downloads, the model and its data are links to files of another folder.
  const std::string linked = scratch.folder + "/linked.onnx";
  std::ofstream(other.folder + "/blob", std::ios::binary) << written("file", "8", "8");
  fs::create_symlink(other.folder + "/blob", linked);
  CHECK(played<float>(open_onnx(linked), {0, 0}) == xt::xarray<float>{2, 3});
}

TEST_CASE("element types are read as the dtypes that hold them") {
  const auto read = [](std::int32_t type, std::size_t bytes, std::uint64_t bits) {
    return onnx::read_tensor(message([&](pbf_writer& to) {
             to.add_int32(2, type);
             to.add_bytes(9, reinterpret_cast<const char*>(&bits), bytes);
           }))
        .array;
  };
  CHECK(*read(2, 1, 0xFF).as<std::int32_t>() == 255);
  CHECK(*read(3, 1, 0xFF).as<std::int8_t>() == -1);
  CHECK(*read(5, 2, 0xFFFF).as<std::int32_t>() == -1);
  CHECK(*read(12, 4, 0xFFFFFFFF).as<std::int64_t>() == 0xFFFFFFFF);
  CHECK(*read(9, 1, 1).as<bool>());
  CHECK(static_cast<float>(*read(10, 2, 0xC500).as<float16>()) == -5);
  CHECK(static_cast<float>(*read(16, 2, 0x3FC0).as<bfloat16>()) == 1.5F);
  CHECK_THROWS_AS(read(13, 8, std::uint64_t{1} << 63), DtypeError);
  CHECK_THROWS_AS(read(8, 1, 0), DtypeError);
  CHECK_THROWS_AS(read(14, 8, 0), DtypeError);
  CHECK_THROWS_AS(read(1, 3, 0), FileError);
}

TEST_CASE("a damaged file gives one clear error") {
  const Scratch scratch;
  const std::string whole = Written{13, {node("Add", {"x", "w"}, {"y"})}, {floats("w", {2}, {1, 2})}}.bytes();
  REQUIRE(scratch.error(whole).empty());
  CHECK(scratch.error("") == "it has no graph, so it is not an ONNX model");
  CHECK(scratch.error("{\"json\": 1}").find("it is damaged, or no ONNX file") == 0);
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK_FALSE(scratch.error(whole.substr(0, size)).empty());
  CHECK(scratch.error(Written{13, {}, {floats("w", {3}, {1, 2})}}.bytes()) ==
        "array 'w' of shape (3,) has 8 bytes, not 12");
  CHECK(scratch.error(Written{13, {}, {floats("w", {-1, 2}, {})}}.bytes()) ==
        "array 'w' cannot have the shape (-1, 2)");
  CHECK(scratch.error(Written{13, {}, {floats("w", {1LL << 40, 1LL << 40}, {})}}.bytes()).find("array 'w' cannot") ==
        0);
  CHECK(scratch.error(Written{13, {}, {floats("w", {1}, {1}), floats("w", {1}, {1})}}.bytes()) ==
        "there are two initialisers 'w'");
}

TEST_CASE("operators hold at the edges that ONNX's data does not try") {
  const Scratch scratch;
  const auto result = [&](const std::vector<std::string>& nodes, const std::vector<std::string>& initialisers,
                          const Shape& shape) {
    Tape tape;
    const Var x = tape.constant(Array(Dtype::float32, shape));
    const OnnxModel model = scratch.open({13, nodes, initialisers});
    return evaluate(model.record(tape, {x})[0]);
  };
  const auto error = [&](const std::string& each, const std::vector<std::string>& initialisers, const Shape& shape) {
    try {
      result({each}, initialisers, shape);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  // Quotients of integers whose product is beyond int64.
  const Array quotient =
      result({node("Div", {"a", "b"}, {"y"})},
             {integers("a", {4000000001, -4000000001}), integers("b", {4000000000, 4000000000})}, {1});
  CHECK(quotient.as<std::int64_t>()[0] == 1);
  CHECK(quotient.as<std::int64_t>()[1] == -1);
  // From the front to the end with a negative step: nothing.
  const std::int64_t end = std::numeric_limits<std::int64_t>::max();
  CHECK(result({node("Slice", {"x", "start", "end", "axis", "step"}, {"y"})},
               {integers("start", {0}), integers("end", {end}), integers("axis", {0}), integers("step", {-1})}, {4})
            .shape() == Shape{0});
  // No window begins in the padding at the end.
  const Array pooled =
      result({node("MaxPool", {"x"}, {"y"},
                   {attribute("kernel_shape", Integers{2, 2, 2}), attribute("strides", Integers{3, 3, 3}),
                    attribute("pads", Integers{1, 1, 1, 1, 1, 1}), attribute("ceil_mode", 1)})},
             {}, {1, 1, 4, 4, 4});
  CHECK(pooled.shape() == Shape{1, 1, 2, 2, 2});
  for (std::int64_t i = 0; i < 8; ++i) CHECK(pooled.as<float>()[i] == 0);
  CHECK(error(node("Conv", {"x", "w"}, {"y"}, {attribute("kernel_shape", Integers{3})}),
              {floats("w", {1, 1, 2}, {1, 2})}, {1, 1, 4})
            .find("kernel_shape is not the spatial shape of the weights") != std::string::npos);
  CHECK(error(node("RNN", {"x", "w", "r"}, {"y"}, {attribute("hidden_size", 5)}),
              {floats("w", {1, 1, 1}, {1}), floats("r", {1, 1, 1}, {1})}, {2, 1, 1})
            .find("hidden_size is not the last size of R, 1") != std::string::npos);
  CHECK(error(node("Range", {"a", "b"}, {"y"}), {integers("a", {0}), integers("b", {4})}, {2})
            .find("Range: input 2 is missing") != std::string::npos);
  CHECK(error(node("Unsqueeze", {"x", "axes"}, {"y"}), {integers("axes", {1, 1})}, {2}).find("an axis occurs twice") !=
        std::string::npos);
}
