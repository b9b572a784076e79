// Errors of the expression language.
#include <doctest/doctest.h>

#include <array>
#include <utility>

#include "definitions.hpp"
#include "source_root.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::f;

namespace {
/// The error of a model of two layers, which scan a cell and apply a block of the library, with this line in the layer,
/// this result of the cell, and this line in the function that `loss` calls.
std::string layered_error(const std::string& line, const std::string& cell, const std::string& outer) {
  return test::error_of([&] {
    const Model model = Model::parse(R"json({"xtape": 2, "name": "small", "use": [")json" + source_root() +
                                         R"json(/models/blocks/linear.json"], "hyper": {"d": 4},
"blocks": {
"cell": {"inputs": {"x": "float [b, d]", "h": "float [b, d]"}, "result": ")json" +
                                         cell + R"json("},
"layer": {
"modules": {"fc": {"block": "linear", "in": "d", "out": "d"}, "cell": {"block": "cell"}},
"inputs": {"x": "float [b, t, d]"},
"do": ["ys, h = scan(cell, fc(x), init=x[:, 0])", ")json" +
                                         line + R"json("],
"result": "y"}},
"model": {
"modules": {"h": {"block": "layer", "repeat": 2, "checkpoint": true}},
"functions": {
"logits": {"inputs": {"x": "float [b, t, d]"}, "do": [")json" +
                                         outer + R"json("], "result": "y"},
"loss": {"inputs": {"x": "float [b, t, d]"}, "result": "sum(logits(x))"}}}})json",
                                     {}, "small.json");
    Tape tape(Mode::train);
    model.record(tape, "loss", model.inputs(tape, "loss", {{"b", 2}, {"t", 3}}));
  });
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}
}  // namespace

TEST_CASE("an error in a module, a cell or a function names all lines that lead to it") {
  const std::string callers =
      "\n    from small.json, function 'logits', line 12: y = h(x)"
      "\n    from small.json, function 'loss', line 13: sum(logits(x))";
  CHECK(layered_error("y = x + ys", "h + x, h", "y = h(x)") == "");
  CHECK(
      layered_error("y = fc(x[..., :3])", "h, h", "y = h(x)") ==
      "small.json, block 'layer' (module h.0), line 7: block 'linear' (module h.0.fc): input 'x' is float32 (2, 3, 3), "
      "declared float [..., in]: axis 2 should be in = 4\n    y = fc(x[..., :3])\n        ^" +
          callers);
  CHECK(layered_error("y = x + ys", "h + x[:, :3], h", "y = h(x)") ==
        "small.json, block 'cell' (module h.0.cell), line 3: add: shapes (2, 4) and (2, 3) do not broadcast: counted "
        "from "
        "the back, sizes must be equal or 1\n    h + x[:, :3], h\n      ^"
        "\n    from small.json, block 'layer' (module h.0), line 7: ys, h = scan(cell, fc(x), init=x[:, 0])" +
            callers);
  // The operands of a call stand below its line, which is shown once.
  CHECK(layered_error("y = softmax(ys, axis=5)", "h, h", "y = h(x)")
            .find("\n    y = softmax(ys, axis=5)\n        ^\n    called with (float32 (2, 3, 4), axis=5)" + callers) !=
        std::string::npos);
  CHECK(layered_error("y = x", "h", "y = h(x)")
            .find("2 names on the left, but the value is float32 (2, 4): scan gives "
                  "the outputs of its cell, then its last states") != std::string::npos);
  CHECK(layered_error("y = x", "h, h", "y = h(x[0])")
            .find("function 'logits', line 12: block 'layer' (module h.0): input 'x' is float32 (3, 4), declared float "
                  "[b, t, d]: "
                  "it has 2 axes, not 3") != std::string::npos);
  CHECK(layered_error("y = x", "h, h", "y = h(loss(x))").find("from small.json, function 'loss', line 13") !=
        std::string::npos);
}

TEST_CASE("what other languages write is an error that says what to write") {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"y = x ^ 2", "not '^': '**' is the power"},
      {"y = x && x", "not '&&': 'and' joins flags and bool arrays"},
      {"y = x || x", "not '||': 'or' joins"},
      {"y = !wide", "not '!': 'not' negates"},
      {"y = x if n = 4 else 0", "'else' of 'a if c else b' belongs here, not '=': '==' compares"},
      {"y += x", "an expression belongs here, not '=': '==' compares; 'name = expression' assigns"},
      {"y = x; z = y", "not ';': every line is a string of its own"},
      {"y = {x, x}", "not '{': a tuple is written (a, b)"},
      {"y = sum(x", "',' or ')' belongs here, not the end of the line"},
      {"y = x[0", "',' or ']' belongs here, not the end of the line"},
      {"y = None", "unknown name 'None'; did you mean 'none'?"},
      {"y = np.exp(x)", "unknown name 'np'; an op has no prefix: exp(…)"},
      {"y = sum(x, dim=1)", "op 'sum' has no attribute 'dim': 'dim' is PyTorch's name; here it is axis="},
      {"y = (x, x)[2]", "has 2 elements: there is no index 2"}};
  for (const auto& each : mistakes) {
    CAPTURE(each.first);
    const std::string error = test::error_of([&] { f({each.first}, "y", xt::zeros<double>({2, 3})); });
    CHECK(first_line(error).find(each.second) != std::string::npos);
    CHECK(first_line(error).find("function 'f', line 9: ") != std::string::npos);
  }
}

TEST_CASE("text without quotes, and misspelt keys and files, are errors with what to write") {
  const std::string blocks = source_root() + "/models/blocks/";
  const auto error = [&](const std::string& use, const std::string& module) {
    return test::error_of([&] {
      Model::parse(R"({"xtape": 2, "name": "small", "use": [")" + blocks + R"(linear.json", ")" + blocks + use +
                       R"("], "model": {"modules": {"p": )" + module +
                       R"json(}, "functions": {"f": {"inputs": {"x": "float [b, 2]"}, "result": "p(x)"}}}})json",
                   {}, "small.json");
    });
  };
  const auto module = [](const std::string& rest) { return R"({"block": "linear", "in": 2, )" + rest + "}"; };
  const std::string norm = "norm.json";
  const std::vector<std::array<std::string, 3>> mistakes = {
      {norm, module(R"("out": 2, "init": "normel")"), "unknown name 'normel'; did you mean 'normal'?"},
      {norm, module(R"("out": 2, "init": "zzz")"), "unknown name 'zzz'; write text in quotes: \"'zzz'\""},
      {norm, module(R"("out": 2, "init": "'normal'")"), "write normal in place of 'normal': a string is an expression"},
      {norm, module(R"("out": 2, "init": "'ones' if pi > 3 else 'he'")"),
       "write ones in place of 'ones': a string is an expression"},
      {norm, module(R"("out": "=1 + 1")"), "write 1 + 1 in place of =1 + 1: a string is an expression"},
      {norm, module(R"("out": 2, "zero": 3)"),
       "'linear' has no parameter 'zero'; it has in, out, with_bias, init, std"},
      {norm, R"({"blok": "linear"})", "the key \"block\" is missing; is 'blok' misspelt?"},
      {norm, R"("linear")", "a module is an object: {\"block\": \"linear\"}"},
      {"nrom.json", module(R"("out": 2)"), "is a file; did you mean 'norm.json'?"}};
  for (const auto& each : mistakes) {
    CAPTURE(each[2]);
    CHECK(first_line(error(each[0], each[1])).find(each[2]) != std::string::npos);
  }
}
