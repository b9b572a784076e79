// Ops in ONNX files: what is read back plays the same numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>

#include "base/system/files.hpp"
#include "blocks.hpp"
#include "op_files.hpp"
#include "op_samples.hpp"
#include "round_trip.hpp"
#include "source_root.hpp"
#include "xtape/index.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/ops/elementwise.hpp"
#include "xtape/scan.hpp"

using namespace xtape;

TEST_CASE("every op for which there are operators is written and read back") {
  const round_trip::Folder written;
  std::set<std::string> kept;
  int others = 0;
  // The float32 inputs of the samples also as other dtypes, where the op takes them.
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::int64, Dtype::int32, Dtype::boolean})
    for (const auto& entry : builtin_ops().ops()) {
      const auto& [name, op] = entry;
      CAPTURE(entry.first);
      CAPTURE(name_of(dtype));
      const bool first = dtype == Dtype::float32;
      const op_samples::Sample sample = op_samples::sample_of(*op);
      Tape tape(Mode::eval);
      NamedVars inputs, outputs;
      std::vector<Operand> operands;
      bool changed = first;
      for (ValueType type : sample.inputs) {
        const std::string input = "x" + std::to_string(operands.size());
        changed = changed || type.dtype == Dtype::float32;
        if (type.dtype == Dtype::float32) type.dtype = dtype;
        if (is_block(type.dtype))  // only weights have blocks
          operands.emplace_back(tape.parameter(input, rounded_to_blocks(type.dtype, type.shape, [](std::int64_t i) {
                                                 return std::sin(0.7F * static_cast<float>(i));
                                               })));
        else
          operands.emplace_back(inputs.add(input, tape.input(input, type.shape, type.dtype)));
      }
      if (!changed) continue;
      try {
        for (const Var& result : apply(tape, *op, operands, sample.attributes))
          outputs.add("y" + std::to_string(outputs.size()), result);
      } catch (const Error& error) {
        CHECK_MESSAGE(!first, std::string(error.what()));
        continue;
      }
      const std::string file = first ? "op_" + name : "op_" + name + "_" + name_of(dtype);
      try {
        const Store store = fed_to(name, dtype);
        const double tolerance = dtype == Dtype::float16 ? 2e-3 : 1e-5;
        const double found = written.part_of_largest(file, inputs, outputs, {}, store);
        CHECK(found < tolerance);
        if (first) kept.insert(name);
        others += !first;
      } catch (const Error& error) {
        CHECK_MESSAGE(!can_be_written(*op), std::string(error.what()));
      }
    }
  for (const auto& [name, op] : builtin_ops().ops()) CHECK((kept.count(name) == 1) == can_be_written(*op));
  CHECK(kept.size() > 230);
  CHECK(others > 1000);
}

TEST_CASE("the document's example of writing, and its list of ops that have operators") {
  const Scratch scratch;
  const std::string path = scratch.folder + "/model.onnx";
  Tape tape(Mode::eval);
  const Var x = tape.input("x", {2, 3}), w = tape.parameter("w", round_trip::numbers_for({Dtype::float32, {3, 4}}, 1));
  const Var y = softmax(matmul(x, w));
  save_onnx(path, {{"y", y}});
  CHECK(open_onnx(path).weights().names() == std::vector<std::string>{"w"});
  CHECK(open_onnx(path).outputs()[0].sizes == Integers{2, 4});

  const std::string tuned = scratch.folder + "/tuned.onnx";
  const OnnxModel model = open_onnx(path);
  // ... training changes the elements of model.weights() ...
  save_onnx_weights(tuned, path, model.weights());
  CHECK(played<float>(open_onnx(tuned), xt::ones<float>({2, 3})) == played<float>(model, xt::ones<float>({2, 3})));

  std::ifstream document(source_root() + "/docs/how_to/onnx.md");
  std::set<std::string> listed;
  for (std::string line; std::getline(document, line);) {
    if (line != "These ops are written by operators:") continue;
    while (std::getline(document, line) && (line.empty() || line.front() == '`'))
      for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
        const std::size_t end = line.find('`', at + 1);
        listed.insert(line.substr(at + 1, end - at - 1));
        at = end;
      }
  }
  const std::vector<std::string> ops = onnx_written_ops();
  CHECK(listed == std::set<std::string>(ops.begin(), ops.end()));
}

namespace {
/// What `compute` makes of x [b, t] and of its sizes.
using OfSizes = std::function<Var(const Var& x, std::int64_t b, std::int64_t t)>;

OnnxRecord recording(const OfSizes& compute) {
  return [compute](const NamedSizes& sizes) {
    const std::int64_t b = sizes.at("b"), t = sizes.at("t");
    SavedTape made{Tape(Mode::eval), {}, {}, {}};
    const Var x = made.tape.input("x", {b, t});
    made.inputs.add("x", x);
    made.outputs.add("y", compute(x, b, t));
    return made;
  };
}

std::string refusal(const std::vector<std::string>& open, const OnnxRecord& record, OnnxSaveOptions options = {}) {
  const Scratch scratch;
  const std::string path = scratch.folder + "/model.onnx";
  try {
    save_onnx(path, open, record, options);
  } catch (const Error& error) {
    CHECK(!std::filesystem::exists(path));
    return std::string(error.what()).substr(path.size() + 2);
  }
  return "";
}
}  // namespace

namespace {
using protozero::pbf_reader;

pbf_reader inside(pbf_reader message, std::uint32_t tag) {
  REQUIRE(message.next(tag));
  return message.get_message();
}

/// The values between the nodes of a file with the sizes that it states, such as "Add [b, 3]".
std::set<std::string> stated_sizes(const std::string& path) {
  std::set<std::string> stated;
  const std::string bytes = read_file(path);
  for (pbf_reader graph = inside(pbf_reader(bytes), 7); graph.next(13);) {
    const pbf_reader value = graph.get_message();
    pbf_reader name = value, type = inside(inside(value, 2), 1);
    REQUIRE((name.next(1) && type.next(1) && type.get_int32() == 1));  // a float32 array
    std::string text = name.get_string() + " [";
    for (pbf_reader shape = inside(type, 2); shape.next(1);) {
      pbf_reader size = shape.get_message();
      if (size.next()) text += size.tag() == 1 ? std::to_string(size.get_int64()) : size.get_string();
      text += ",";
    }
    stated.insert(text + "]");
  }
  return stated;
}
}  // namespace

TEST_CASE("a file states the types of the values between its nodes") {
  const Scratch scratch;
  const std::string path = scratch.folder + "/model.onnx";
  const OnnxRecord record = [](const NamedSizes& sizes) {
    SavedTape made{Tape(Mode::eval), {}, {}, {}};
    const Var x = made.tape.input("x", {sizes.at("b"), 5});
    const Var w = made.tape.parameter("w", xt::xarray<float>(xt::ones<float>({5, 4})));
    made.inputs.add("x", x);
    made.outputs.add("y", reshape(sqrt(exp(matmul(x, w))), {4 * sizes.at("b")}));
    return made;
  };
  save_onnx(path, record({{"b", 2}}).outputs);
  CHECK(stated_sizes(path) == std::set<std::string>{"MatMul [2,4,]", "Exp [2,4,]", "Sqrt [2,4,]", "Reshape [8,]"});
  save_onnx(path, {"b"}, record);
  CHECK(stated_sizes(path) == std::set<std::string>{"MatMul [b,4,]", "Exp [b,4,]", "Sqrt [b,4,]", "Reshape [,]"});
}

TEST_CASE("the document's example of open sizes") {
  const Scratch scratch;
  const std::string path = scratch.folder + "/model.onnx";
  const OnnxRecord record = [](const NamedSizes& sizes) {
    SavedTape made{Tape(Mode::eval), {}, {}, {}};
    const Var x = made.tape.input("x", {sizes.at("b"), sizes.at("t")});
    made.inputs.add("x", x);
    made.outputs.add("y", reshape(x, {sizes.at("b") * sizes.at("t")}));
    return made;
  };
  save_onnx(path, {"b", "t"}, record);
  const OnnxModel model = open_onnx(path);
  CHECK(model.outputs()[0].sizes == Integers{-1});
  CHECK(played<float>(model, xt::ones<float>({2, 3})) == xt::ones<float>({6}));
  CHECK(played<float>(model, xt::ones<float>({4, 1})) == xt::ones<float>({4}));
}

TEST_CASE("a file with open sizes computes shapes, ranges and bounds from the shapes of its inputs") {
  const round_trip::Folder folder;
  const std::vector<std::pair<std::string, OfSizes>> cases = {
      {"shape",
       [](const Var& x, std::int64_t b, std::int64_t t) {
         return reshape(x, {b * t, 1}) * 2;
       }},
      {"range",
       [](const Var& x, std::int64_t b, std::int64_t t) {
         return x + iota(x.tape(), {b, t}, 1);
       }},
      {"column",
       [](const Var& x, std::int64_t b, std::int64_t t) {
         return x + iota(x.tape(), {b, t}, 0);
       }},
      {"zeros",
       [](const Var& x, std::int64_t b, std::int64_t t) {
         return concat({x, zeros(x.tape(), {b, 2 * t})}, 1);
       }},
      {"bounds",
       [](const Var& x, std::int64_t b, std::int64_t t) {
         return slice(x, {0, t - 2}, {b, t - 1});
       }},
      {"windows", [](const Var& x, std::int64_t, std::int64_t) { return max_pool1d(expand_dims(x, 1), 3, 1); }},
      {"both",
       [](const Var& x, std::int64_t b, std::int64_t t) {
         return reshape(slice(x, {0, 1}), {b * (t - 1)});
       }},
      {"formulas",
       [](const Var& x, std::int64_t, std::int64_t) {
         return erfc(x) + floor_divide(x, 0.3) + atan2(x, -x) + cast(cast(x, Dtype::int64), Dtype::float32);
       }},
      {"flipped", [](const Var& x, std::int64_t, std::int64_t) { return flip(tril(x), 1); }},
      {"backwards",
       [](const Var& x, std::int64_t, std::int64_t) {
         return slice(x, {}, {open_end, 1}, {-1, -2});
       }},
      {"scan", [](const Var& x, std::int64_t b, std::int64_t) {
         const auto step = [](const Vars& slices, const Vars& states) -> std::pair<Vars, Vars> {
           const Var next = tanh(slices[0] + states[0]);
           return {{next}, {next}};
         };
         ScanOptions options;
         options.axis = 1;
         return scan(step, {x}, {zeros(x.tape(), {b})}, options).outputs[0];
       }}};
  for (const auto& each : cases) {
    const auto& [name, compute] = each;
    CAPTURE(each.first);
    const OnnxRecord record = recording(compute);
    save_onnx(folder.path("open_" + name), {"b", "t"}, record);
    CHECK(open_onnx(folder.path("open_" + name)).inputs()[0].names == std::vector<std::string>{"b", "t"});
    for (const std::int64_t more : {0, 4}) {
      const SavedTape now = record({{"b", 1 + more}, {"t", 5 + more}});
      CHECK(folder.part_of_file("open_" + name, now.inputs, now.outputs) < 1e-6);
    }
  }
}

TEST_CASE("open sizes that a file cannot have are errors, which name the size and the node") {
  const auto product = [](const Var& x, std::int64_t, std::int64_t t) {
    const auto scope = x.tape().in_scope(std::make_shared<const Scope>(Scope{"head", ""}), 0);
    return x * (1.0 / static_cast<double>(t));
  };
  CHECK(refusal({"b", "t"}, recording(product)) ==
        "node 'head/Mul' depends on the size t in a way that a file with open sizes cannot say: give it as a number");
  const auto half = [](const Var& x, std::int64_t b, std::int64_t) { return slice(x, {b / 2}); };
  CHECK(refusal({"b", "t"}, recording(half)).find("Slice' depends on the size b in") != std::string::npos);
  const auto deep = [](const Var& x, std::int64_t b, std::int64_t) {
    Var y = x;
    for (std::int64_t i = 0; i < b; ++i) y = tanh(y);
    return y;
  };
  CHECK(refusal({"b", "t"}, recording(deep)).find("' depends on the size b in") != std::string::npos);
  const auto same = [](const Var& x, std::int64_t, std::int64_t) { return tanh(x); };
  CHECK(refusal({"b"}, {}) == "the function that records the computation is empty");
  CHECK(refusal({}, recording(same)) == "a file has 1 to 4 open sizes, got 0");
  CHECK(refusal({"a", "b", "c", "d", "e"}, recording(same)) == "a file has 1 to 4 open sizes, got 5");
  CHECK(refusal({"t", "t"}, recording(same)) == "two open sizes are named 't'");
  const auto twice = [&](const NamedSizes& sizes) {
    return recording(same)({{"b", 2 * sizes.at("b")}, {"t", sizes.at("t")}});
  };
  CHECK(refusal({"b", "t"}, twice) == "no input of the file has the size b");
  const SavedTape given = recording(same)({{"b", 2}, {"t", 3}});
  OnnxSaveOptions options;
  options.inputs = given.inputs;
  CHECK(refusal({"b", "t"}, recording(same), options) ==
        "with open sizes, the inputs of the file are those that `record` returns");
}
