// Mistakes in definitions: the exact texts that users read.
#include <doctest/doctest.h>

#include "definitions.hpp"

using namespace xtape;
using xtape::test::error_of;
using xtape::test::one_function;

namespace {
/// The error of a definition whose one function has this line (line 9 of the file).
std::string error_of_line(const std::string& line) {
  return error_of([&] {
    const Model model = Model::parse(one_function({line}, "x"), {}, "small.json");
    Tape tape(Mode::eval);
    model.record(tape, "f", model.inputs(tape, "f", {{"b", 2}, {"t", 3}}));
  });
}

/// The error of loading a definition.
std::string load_error(const std::string& text) {
  return error_of([&] { Model::parse(text, {}, "small.json"); });
}

/// A definition of these blocks with a model of one part `p`, which function `f` applies to x (float [b, t]).
std::string with_blocks(const std::string& blocks, const std::string& part, const std::string& result = "p(x)") {
  return "{\n\"xtape\": 2,\n\"name\": \"small\",\n\"hyper\": {\"n\": 4},\n\"blocks\": {\n" + blocks +
         "\n},\n\"model\": {\n\"modules\": {\"p\": " + part +
         "},\n\"functions\": {\"f\": {\"inputs\": {\"x\": \"float [b, t]\"}, \"result\": \"" + result + "\"}}\n}\n}\n";
}
}  // namespace

TEST_CASE("a line that cannot be parsed is shown with a caret") {
  CHECK(error_of_line("y = (x + 1") ==
        "small.json, function 'f', line 9: ')' belongs here, not the end of the line\n"
        "    y = (x + 1\n"
        "              ^");
  CHECK(error_of_line("y = x + * 2") ==
        "small.json, function 'f', line 9: an expression belongs here, not '*'\n"
        "    y = x + * 2\n"
        "            ^");
  CHECK(error_of_line("y = x ? 1") ==
        "small.json, function 'f', line 9: an operator or the end of the line belongs here, not '?': a if c else b "
        "chooses\n"
        "    y = x ? 1\n"
        "          ^");
  CHECK(error_of_line("y = gelu(x, 'tanh)") ==
        "small.json, function 'f', line 9: this string has no end\n"
        "    y = gelu(x, 'tanh)\n"
        "                ^");
  CHECK(error_of_line("x + 1 = y") ==
        "small.json, function 'f', line 9: only names can be assigned to\n"
        "    x + 1 = y\n"
        "      ^");
  CHECK(error_of_line("y = 1 < n < 3").find("comparisons do not chain: join two with 'and'") != std::string::npos);
  CHECK(error_of_line("y = sum(axis=1, x)").find("positional arguments must come before named ones") !=
        std::string::npos);
  CHECK(error_of_line("y = " + std::string(5000, '(') + "x").find("nested more than 200 deep") != std::string::npos);
  CHECK(error_of_line("y = " + std::string(5000, '-') + "x").find("nested more than 200 deep") != std::string::npos);
  CHECK(error_of_line("y = 99999999999999999999").find("this integer is too large") != std::string::npos);
  CHECK(error_of_line("y = x if true") ==
        "small.json, function 'f', line 9: 'else' of 'a if c else b' belongs here, not the end of the line\n"
        "    y = x if true\n"
        "                 ^");
  CHECK(error_of_line("y = if true").find("an expression belongs here") != std::string::npos);
}

TEST_CASE("a condition is a flag that is known while recording") {
  CHECK(error_of_line("y = x if x > 0 else -x") ==
        "small.json, function 'f', line 9: a condition must be known while recording, and this is an array: "
        "where(c, a, b) chooses element by element\n"
        "    y = x if x > 0 else -x\n"
        "               ^");
  CHECK(error_of_line("y = x if 1 else x").find("a condition is true or false, not ") != std::string::npos);
}

TEST_CASE("the caret counts characters, not bytes") {
  CHECK(error_of_line("y = gelu(x, 'é') + zzzz") ==
        "small.json, function 'f', line 9: unknown name 'zzzz'\n"
        "    y = gelu(x, 'é') + zzzz\n"
        "                       ^");
}

TEST_CASE("an unknown name comes with the nearest one") {
  CHECK(error_of_line("y = x * raet") ==
        "small.json, function 'f', line 9: unknown name 'raet'; did you mean 'rate'?\n"
        "    y = x * raet\n"
        "            ^");
  CHECK(error_of_line("y = sofmax(x)") ==
        "small.json, function 'f', line 9: there is no module, function or op 'sofmax'; did you mean 'softmax'?\n"
        "    y = sofmax(x)\n"
        "        ^");
  CHECK(error_of_line("y = softmax(x, axs=1)") ==
        "small.json, function 'f', line 9: op 'softmax' has no attribute 'axs'; did you mean 'axis'?\n"
        "    y = softmax(x, axs=1)\n"
        "                   ^");
}

TEST_CASE("an unknown dtype is found when the definition is read, also in a block that nothing uses") {
  for (const char* line : {"y = cast(x, 'floot')", "y = cast(x, dtype='floot')"}) {
    const std::string definition = R"json({"xtape": 2, "name": "small",
      "blocks": {"unused": {"inputs": ["x"], "do": [")json" +
                                   std::string(line) + R"json("], "result": "y"}},
      "model": {"functions": {"f": {"inputs": {"x": "float [b]"}, "result": "cast(x, 'float')"}}}})json";
    CHECK_THROWS_WITH_AS(
        Model::parse(definition, {}, "small.json"),
        doctest::Contains("small.json, block 'unused', line 2: unknown dtype 'floot': use float32, float64"),
        DefinitionError);
  }
}

TEST_CASE("an op's own error gets the line and what it was called with") {
  CHECK(
      error_of_line("y = x + zeros(shape=(2, 4))") ==
      "small.json, function 'f', line 9: add: shapes (2, 3) and (2, 4) do not broadcast: counted from the back, sizes "
      "must be equal or 1\n"
      "    y = x + zeros(shape=(2, 4))\n"
      "          ^");
  const std::string softmax = error_of_line("y = softmax(x, axis=5)");
  CHECK(softmax.find("small.json, function 'f', line 9: softmax: ") == 0);
  CHECK(softmax.find("\n    y = softmax(x, axis=5)\n        ^\n    called with (float32 (2, 3), axis=5)") !=
        std::string::npos);
}

TEST_CASE("arguments without a place are named") {
  CHECK(error_of_line("y = softmax(x, 1, 2)").find("op 'softmax' cannot take 2 here: it takes (x, axis=)") !=
        std::string::npos);
  CHECK(error_of_line("y = softmax()").find("op 'softmax' needs its input 'x'") != std::string::npos);
  CHECK(error_of_line("y = softmax(x, axis=1.5)").find("axis") != std::string::npos);
  CHECK(error_of_line("y = softmax(x, axis=x)").find("attribute 'axis' of op 'softmax' takes") != std::string::npos);
  CHECK(error_of_line("y = layer_norm(x, none, x)").find("op 'layer_norm' cannot take 'bias' without 'weight'") !=
        std::string::npos);
}

TEST_CASE("sizes divide exactly, or say so") {
  CHECK(error_of_line("y = x / (n / 3)") ==
        "small.json, function 'f', line 9: 4 / 3 is not an integer: '//' rounds down, and 1.0 * size is a number\n"
        "    y = x / (n / 3)\n"
        "               ^");
  CHECK(error_of_line("y = x * (n // 0)").find("division by zero") != std::string::npos);
  CHECK(error_of_line("y = x * 10 ** 40").find("too large for an integer") != std::string::npos);
  CHECK(error_of_line("y = x * 'a'").find("'*' cannot combine float32 (2, 3) and 'a'") != std::string::npos);
}

TEST_CASE("assignments fit their values") {
  CHECK(error_of_line("a, b = x, x, x").find("2 names on the left, but the value is 3 values") != std::string::npos);
  CHECK(error_of_line("a, b = x").find("2 names on the left, but the value is float32 (2, 3)") != std::string::npos);
  CHECK(error_of_line("softmax(x)").find("a line must assign its value to a name") != std::string::npos);
  CHECK(error_of_line("require(t > 3, 'too short')") ==
        "small.json, function 'f', line 9: too short (t = 3)\n"
        "    require(t > 3, 'too short')\n"
        "              ^");
  CHECK(error_of_line("require(t == 3, 'too short')") == "");
}

TEST_CASE("JSON that is none is shown with a caret") {
  CHECK(load_error("{\n  \"xtape\": 2,\n  \"name\" \"small\"\n}") ==
        "small.json, line 3, column 10: ':' belongs here after the key \"name\", not a string\n"
        "      \"name\" \"small\"\n"
        "             ^");
  CHECK(load_error("{\"xtape\": 2,\n\"hyper\": {\"n\": 1,\n\"n\": 2}}") ==
        "small.json, line 3, column 1: the key \"n\" appears twice in one object, first in line 2\n"
        "    \"n\": 2}}\n"
        "    ^");
}

TEST_CASE("unknown and missing keys") {
  CHECK(load_error("{\"xtape\": 2,\n\"hypr\": {}}") ==
        "small.json, line 2: the key \"hypr\" is not known here; did you mean 'hyper'?\n"
        "    \"hypr\": {}}\n"
        "    ^");
  CHECK(load_error("{\"name\": \"small\"}") ==
        "small.json, line 1: the key \"xtape\" is missing\n"
        "    {\"name\": \"small\"}\n"
        "    ^");
  CHECK(load_error("{\"xtape\": 3}") ==
        "small.json, line 1: this program reads definitions of version 2\n"
        "    {\"xtape\": 3}\n"
        "              ^");
  CHECK(load_error("{\"xtape\": 1}") ==
        "small.json, line 1: a definition of version 1 is not read: write \"xtape\": 2, \"modules\" in place of "
        "\"parts\", and in scan 'valid' and 'non_sequences' in place of 'real' and 'alike'\n"
        "    {\"xtape\": 1}\n"
        "              ^");
  CHECK(load_error("{\"xtape\": 2}") == "small.json has no \"model\": it is only for use by other definitions");
  CHECK(load_error(with_blocks("\"a\": {\"inputs\": [\"x\"], \"results\": \"x\"}", "{\"block\": \"a\"}")) ==
        "small.json, block 'a', line 6: the key \"results\" is not known here; did you mean 'result'?\n"
        "    \"a\": {\"inputs\": [\"x\"], \"results\": \"x\"}\n"
        "                           ^");
}

TEST_CASE("blocks, modules and parameters by their names") {
  const std::string a = "\"a\": {\"hyper\": {\"width\": null}, \"inputs\": [\"x\"], \"result\": \"x * width\"}";
  CHECK(load_error(with_blocks(a, "{\"block\": \"b2\"}")) ==
        "small.json, model, line 9: there is no block 'b2'\n"
        "    \"modules\": {\"p\": {\"block\": \"b2\"}},\n"
        "                               ^");
  CHECK(load_error(with_blocks(a, "{\"block\": \"a\"}")) ==
        "small.json, model, line 9: block 'a' needs its parameter 'width'\n"
        "    \"modules\": {\"p\": {\"block\": \"a\"}},\n"
        "                     ^");
  CHECK(load_error(with_blocks(a, "{\"block\": \"a\", \"widht\": 3}")) ==
        "small.json, model, line 9: block 'a' has no parameter 'widht'; did you mean 'width'?\n"
        "    \"modules\": {\"p\": {\"block\": \"a\", \"widht\": 3}},\n"
        "                                             ^");
  CHECK(load_error(with_blocks(a, "{\"block\": \"a\", \"width\": 3}", "x")) ==
        "small.json, model, line 9: module 'p' is never used: no line mentions it\n"
        "    \"modules\": {\"p\": {\"block\": \"a\", \"width\": 3}},\n"
        "                     ^");
  CHECK(load_error(with_blocks(a, "{\"block\": \"n\", \"width\": 3}")) ==
        "small.json, model, line 9: the name of a block belongs here, not 4\n    n\n    ^");
}

TEST_CASE("a weight that no line uses, and an initialiser that does not exist") {
  const auto block = [](const std::string& weight) {
    return "\"a\": {\"weights\": {\"w\": " + weight + "},\n\"inputs\": [\"x\"], \"result\": \"x\"}";
  };
  CHECK(load_error(with_blocks(block("{\"shape\": [\"n\"], \"init\": \"zeros\"}"), "{\"block\": \"a\"}")) ==
        "small.json, block 'a', line 6: weight 'p.w' is never used: no line mentions it\n"
        "    \"a\": {\"weights\": {\"w\": {\"shape\": [\"n\"], \"init\": \"zeros\"}},\n"
        "                           ^");
  CHECK(load_error(with_blocks(block("{\"shape\": [2], \"init\": \"normel\"}"), "{\"block\": \"a\"}")) ==
        "small.json, block 'a', line 6: there is no initialiser 'normel'; did you mean 'normal'?\n"
        "    \"a\": {\"weights\": {\"w\": {\"shape\": [2], \"init\": \"normel\"}},\n"
        "                                                  ^");
  CHECK(load_error(with_blocks(block("{\"shape\": [2], \"init\": \"normal\", \"sdt\": 1}"), "{\"block\": \"a\"}")) ==
        "small.json, block 'a', line 6: the key \"sdt\" is not known here; did you mean 'std'?\n"
        "    \"a\": {\"weights\": {\"w\": {\"shape\": [2], \"init\": \"normal\", \"sdt\": 1}},\n"
        "                                                            ^");
  CHECK(load_error(with_blocks(block("{\"shape\": [\"n - 4\"], \"init\": \"zeros\"}"), "{\"block\": \"a\"}")) ==
        "small.json, block 'a', line 6: a size is at least 1, not 0\n    n - 4\n      ^\n"
        "    from small.json, model, line 10: module 'p'");
}

TEST_CASE("modules and functions in a circle") {
  const std::string a =
      "\"a\": {\"modules\": {\"q\": {\"block\": \"b\"}}, \"inputs\": [\"x\"], \"result\": \"q(x)\"},\n";
  const std::string b = "\"b\": {\"modules\": {\"r\": {\"block\": \"a\"}}, \"inputs\": [\"x\"], \"result\": \"r(x)\"}";
  CHECK(load_error(with_blocks(a + b, "{\"block\": \"a\"}")) ==
        "small.json, block 'a', line 6: module 'q' contains itself, through block 'a'\n"
        "    \"a\": {\"modules\": {\"q\": {\"block\": \"b\"}}, \"inputs\": [\"x\"], \"result\": \"q(x)\"},\n"
        "                           ^\n"
        "    from small.json, block 'b', line 7: module 'p.q.r'\n"
        "    from small.json, block 'a', line 6: module 'p.q'\n"
        "    from small.json, model, line 10: module 'p'");
  const Model model = Model::parse(one_function({}, "f(x)"));
  Tape tape;
  CHECK(error_of([&] {
          model.record(tape, "f", model.inputs(tape, "f", {{"b", 1}, {"t", 1}}));
        }).find("function 'f' calls itself") != std::string::npos);
  CHECK(tape.size() == 1);  // the input alone: what a failed call recorded is gone
}

TEST_CASE("hyper-parameters and their overrides") {
  const auto hyper_error = [](const std::string& hyper, const std::vector<std::pair<std::string, std::string>>& set) {
    return error_of([&] {
      ModelOptions options;
      options.hyper = set;
      Model::parse(
          "{\"xtape\": 2, \"hyper\": {" + hyper +
              "},\n\"model\": {\"functions\": {\"f\": {\"inputs\": {\"x\": \"float []\"}, \"result\": \"x\"}}}}",
          options, "small.json");
    });
  };
  CHECK(hyper_error("\"n\": 4", {{"m", "3"}}) == "small.json has no hyper-parameter 'm'; it has n");
  CHECK(hyper_error("\"n\": 4", {{"n", "2.5"}}) ==
        "hyper-parameter 'n' of small.json is an integer, and cannot be 2.5");
  CHECK(hyper_error("\"n\": 4", {{"n", "2 *"}}) ==
        "override of hyper-parameter 'n': an expression belongs here, not the end of the line\n    2 *\n       ^");
  CHECK(hyper_error("\"n\": \"m + 1\", \"m\": \"n\"", {}) ==
        "small.json, hyper, line 1: 'n' depends on itself\n"
        "    {\"xtape\": 2, \"hyper\": {\"n\": \"m + 1\", \"m\": \"n\"},\n"
        "                                ^");
  CHECK(hyper_error("\"n\": null", {}) ==
        "small.json, hyper, line 1: hyper-parameter 'n' has no default and must be given: --set n=…, or "
        "ModelOptions::hyper\n"
        "    {\"xtape\": 2, \"hyper\": {\"n\": null},\n"
        "                                ^");
  CHECK(hyper_error("\"n\": null", {{"n", "3"}}) == "");
}

TEST_CASE("inputs that do not fit a function") {
  const Model model = Model::parse(one_function({}, "x"));
  Tape tape;
  CHECK(error_of([&] { model.inputs(tape, "f", {{"b", 1}}); }) == "function 'f' needs the size 't'");
  CHECK(error_of([&] { model.inputs(tape, "f", {{"b", 1}, {"s", 1}}); }) == "function 'f' has no size 's'");
  CHECK(error_of([&] { model.signature("g"); }) == "model 'small' has no function 'g'");
  CHECK(error_of([&] {
          model.record(tape, "f", {{"x", tape.input("one", {3})}});
        }) == "function 'f': input 'x' is float32 (3,), declared float [b, t]: it has 1 axis, not 2");
  CHECK(error_of([&] {
          model.record(tape, "f", {{"x", tape.input("two", {3, 1}, Dtype::int64)}});
        }) == "function 'f': input 'x' is int64 (3, 1), declared float [b, t] (the model is float32)");
  CHECK(error_of([&] { model.record(tape, "f", {}); }) == "function 'f': takes (x), but 'x' is missing");
}

TEST_CASE("sizes that a block declares are checked where it is called") {
  const std::string a =
      "\"a\": {\"hyper\": {\"width\": 5}, \"inputs\": {\"x\": \"float [..., width]\"}, \"result\": \"x * width\"}";
  const Model model = Model::parse(with_blocks(a, "{\"block\": \"a\"}"), {}, "small.json");
  Tape tape;
  model.record(tape, "f", {{"x", tape.input("right", {2, 5})}});
  CHECK(error_of([&] {
          model.record(tape, "f", {{"x", tape.input("wrong", {2, 3})}});
        }) ==
        "small.json, function 'f', line 10: block 'a' (module p): input 'x' is float32 (2, 3), declared float [..., "
        "width]: axis 1 should be width = 5\n    p(x)\n    ^");
}

TEST_CASE("a definition with a byte-order mark is read; NUL bytes, no text and deep nesting are one error each") {
  CHECK(load_error("\xEF\xBB\xBF" + one_function({}, "x")) == "");
  CHECK(load_error(one_function({}, "x") + std::string(1, '\0') + "\"").find("a NUL byte is not allowed") !=
        std::string::npos);
  CHECK(load_error("") == "small.json: the text is empty: JSON text must contain a value");
  CHECK(load_error(std::string(50000, '[')).find("nested more than 256 deep") != std::string::npos);
  CHECK(load_error("{\"xtape\": 2, \"hyper\": {\"a\": 1e400}}").find("the number 1e400 is out of range") !=
        std::string::npos);
}
