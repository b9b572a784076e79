// Functions, ops and modules as values; some repeats of a module; names that hide others; names of other libraries.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "definitions.hpp"
#include "model/definition/definition.hpp"
#include "model/language/synonyms.hpp"
#include "xtape/op/op.hpp"
#include "xtape/xtensor.hpp"

namespace xtape::references_test {

using xtape::test::error_of;
using xtape::test::same;
using Array2 = xt::xarray<double>;
using Row = xt::xtensor<double, 1>;
using Table = xt::xtensor<double, 2>;

namespace {
const Array2 table = Table{{1, 2, 3}, {4, 5, 6}};

/// A definition with function `f` of these lines, over blocks without weights and other functions.
std::string definition(const std::vector<std::string>& lines, const std::string& result) {
  std::string list;
  for (const std::string& line : lines) list += (list.empty() ? "\"" : ", \"") + line + "\"";
  return R"json({"xtape": 2, "name": "references", "blocks": {
    "affine": {"hyper": {"scale": null}, "inputs": {"x": "any", "*shift": "any"}, "result": "x * scale + sum(shift)"},
    "both": {"hyper": {"scale": null}, "inputs": ["x", "y"], "result": "x + scale * y, y - x"},
    "pair": {"inputs": ["state", "x"], "do": ["a, c = state"], "result": "(a + c * x, a), x"},
    "twice": {"inputs": ["g", "x"], "result": "g(g(x))"},
    "cell": {"inputs": ["x", "h", "g", "factor"], "do": ["h = g(h) + factor * x"], "result": "h, 2 * h"},
    "layer": {"hyper": {"width": 3}, "weights": {"gain": {"shape": ["width"], "init": "ones"}},
              "inputs": ["x"], "result": "x * gain"}},
"model": {"modules": {
    "h": {"block": "affine", "repeat": 3, "scale": "index + 2"},
    "two": {"block": "both", "repeat": 2, "scale": "index + 1"},
    "pairs": {"block": "pair", "repeat": 2},
    "absent": {"block": "affine", "when": false, "scale": 2},
    "double": {"block": "affine", "scale": 2}, "twice": {"block": "twice"}, "cell": {"block": "cell"}, "layers": {"block": "layer", "repeat": 2}},
  "functions": {
    "cube": {"inputs": {"x": "float [n]"}, "result": "x * x * x"},
    "total": {"inputs": {"x": "float [n]", "y": "float [n]"}, "result": "sum(x * x * y)"},
    "slope": {"inputs": {"x": "float [n]", "y": "float [n]"}, "result": "grad(total, (x, y))[0]"},
    "step": {"inputs": {"x": "float [b]", "s": "float [b]"}, "result": "x + s, x * s"},
    "uses": {"inputs": {"x": "float [b, t]"}, "result": "h(absent(x), 1), two(x, x)[0], pairs((x, x), x)[0][0], twice(sin, x), cell(x, x, sin, 1)[0], layers(x), double(x)"},
    "f": {"inputs": {"x": "float [b, t]"}, "do": [)json" +
         list + R"json(],
"result": ")json" +
         result + R"json("}}}})json";
}

Array2 f(const std::vector<std::string>& lines, const std::string& result, Mode mode = Mode::eval) {
  const Model model = Model::parse(definition(lines, result), test::in_float64());
  return test::play(model, "f", {{"b", 2}, {"t", 3}}, {ArrayView(table)}, mode)[0];
}

/// The error of a line of function `f`, in line 21 of small.json.
std::string error(const std::string& line, const std::string& result = "y") {
  return error_of([&] {
    const Model model = Model::parse(definition({line}, result), {}, "small.json");
    Tape tape;
    model.record(tape, "f", model.inputs(tape, "f", {{"b", 2}, {"t", 3}}));
  });
}
void check_error(const std::string& line, const std::string& text) {
  CAPTURE(line);
  const std::string found = error(line);
  CHECK_MESSAGE(found.find(text) != std::string::npos, found);
  CHECK_MESSAGE(found.find("small.json, function 'f', line 2") != std::string::npos, found);
  CHECK(found.find('^') != std::string::npos);
}

std::vector<std::string> warnings(const std::string& text) {
  std::vector<std::string> found;
  model::check_names(*model::parse_definition(text, "small.json"), builtin_ops(), true, &found);
  return found;
}
}  // namespace

TEST_CASE("ops, functions and modules are values") {
  const Array2 sine = xt::sin(table), row = test::item(table, 0);
  CHECK(same(f({"act = sin if b == 2 else cos"}, "act(x)"), sine));
  CHECK(same(f({}, "twice(sin, x)"), xt::sin(sine)));
  CHECK(same(f({"y = twice(cube, x[0])"}, "y"), xt::pow(row, 9.0)));
  CHECK(same(f({"y = twice(twice, sin) if false else twice(g=sin, x=x)"}, "y"), xt::sin(sine)));
  CHECK(same(f({"y = sum([g(x) for g in (sin, abs)])"}, "y"), sine + table));
  CHECK(same(f({"y = [sum, mean][0](x, axis=1)"}, "y"), Row{6, 15}));
  CHECK(same(f({"low = [min, max][0]"}, "x * low(3, 2)"), 2. * table));
  CHECK(same(f({}, "x if sin == sin and sin != cos and sin in (cos, sin) and cube == cube and h[0] != h[1] else 0 * x"),
             table));
  CHECK(same(f({"sin = x"}, "sin(sin)"), sine));  // a name that is no function is not called
  CHECK(same(f({"sin = cos"}, "sin(x)"), xt::cos(table)));
  CHECK(same(f({"lambda = 2"}, "(lambda if lambda in (2,) else 0) * x[lambda - 2:] * twice(int, 3.5)"), 6. * table));
  CHECK(same(f({"g = len"}, "x * g(x) * g((1, 2, 3))"), 6. * table));
}

TEST_CASE("functions and ops in scan and vmap") {
  // step(x, s) gives x + s and the next state x * s.
  const Array2 scanned = f({"ys, last = scan(step, x, init=x[:, 0])"}, "concat([ys, last[:, none]], axis=1)");
  Array2 expected = Array2::from_shape({2, 4});
  for (std::size_t row = 0; row < 2; ++row) {
    double state = table(row, 0);
    for (std::size_t t = 0; t < 3; ++t) {
      expected(row, t) = table(row, t) + state;
      state *= table(row, t);
    }
    expected(row, 3) = state;
  }
  CHECK(same(scanned, expected));
  CHECK(same(f({}, "scan(sin, x)"), xt::sin(table)));
  CHECK(same(f({}, "vmap(cube, x)"), table * table * table));
  CHECK(same(f({}, "vmap(total, x, x[0], in_axes=(0, none))"), Row{1 + 8 + 27, 16 + 25 * 2 + 36 * 3}));
  CHECK(same(f({}, "vmap(sum, x)"), Row{6, 15}));
  CHECK(same(f({}, "vmap(twice, cube, x)"), xt::pow(table, 9.0)));
}

TEST_CASE("modules and functions as non-sequences of a scan") {
  // h = g(h) + factor * x, and the next state is 2 h.
  const auto expected = [](const auto& g) {
    Array2 all = Array2::from_shape({2, 3});
    for (std::size_t row = 0; row < 2; ++row) {
      double state = 1;
      for (std::size_t t = 0; t < 3; ++t) {
        all(row, t) = g(state) + 0.5 * table(row, t);
        state = 2 * all(row, t);
      }
    }
    return all;
  };
  const auto scanned = [](const std::string& g) {
    return f({"ys, last = scan(cell, x, init=ones((b,)), non_sequences=(" + g + ", 0.5))"}, "ys");
  };
  CHECK(same(scanned("sin"), expected([](double h) { return std::sin(h); })));
  CHECK(same(scanned("cube"), expected([](double h) { return h * h * h; })));
  CHECK(same(f({"ys, last = scan(cell, x, init=ones((b,)), non_sequences=[double, 0.5])"}, "ys"),
             expected([](double h) { return 2 * h; })));
}

TEST_CASE("a function in place of what is differentiated") {
  const Array2 row = test::item(table, 0);
  CHECK(same(f({"v = x[0]"}, "grad(total, (v, x[1]))[0]"), 2. * row * test::item(table, 1)));
  CHECK(same(f({"v = x[0]"}, "jvp(cube, v, x[1])"), 3. * row * row * test::item(table, 1)));
  CHECK(same(f({"v = x[0]"}, "jvp(outputs=cube, tangents=x[1], inputs=(v,))"), 3. * row * row * test::item(table, 1)));
  const Array2 diagonal = f({"v = x[0]"}, "jacobian(cube, v)");
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k = 0; k < 3; ++k) CHECK(diagonal(i, k) == doctest::Approx(i == k ? 3 * row(i) * row(i) : 0));
  CHECK(same(f({"v = x[0]"}, "hvp(sum, v, v)"), 0. * row));
  CHECK(f({"v = x[0]"}, "hessian(sum, v * v)").shape() == Array2::shape_type{3, 3});
  CHECK(same(f({}, "vmap(slope, x, x)"), 2. * table * table));
}

TEST_CASE("repeats run backwards, in part and in parallel") {
  // Repeat i computes x * (i + 2) + shift.
  const auto applied = [](const std::vector<int>& order) {
    Array2 y = table;
    for (const int i : order) y = y * (i + 2) + 1.0;
    return y;
  };
  CHECK(same(f({}, "h(x, 1)"), applied({0, 1, 2})));
  CHECK(same(f({}, "h[::-1](x, 1)"), applied({2, 1, 0})));
  CHECK(same(f({}, "h[1:](x, 1)"), applied({1, 2})));
  CHECK(same(f({}, "h[::-1][:2](x, 1)"), applied({2, 1})));
  CHECK(same(f({}, "h[::2][::-1](x, 1)"), applied({2, 0})));
  CHECK(same(f({}, "h[::-1][-1](x, 1)"), applied({0})));
  CHECK(same(f({}, "h[3:](x, 1)"), table));
  CHECK(same(f({"parts = h[:1]", "more = [*h[1:]]"}, "more[1](more[0](parts(x, 1), 1), 1)"), applied({0, 1, 2})));
  CHECK(same(f({}, "h[::-1].all(x, 1)[1]"), applied({2, 1})));
  CHECK(same(f({}, "sum([g(x, 1) for g in h])"), table * 9. + 3.));
  CHECK(same(f({}, "sum([g(x, i) for i, g in enumerate(h[::-1])])"), table * 9. + 3.));
  CHECK(same(f({}, "sum([g(a, 0) for g, a in zip(h[:2], unstack(x))])"), Row{2 + 12, 4 + 15, 6 + 18}));
  CHECK(same(f({}, "x * (len(h) + 10 * len(h[1:]) + 100 * len(h[5:]))"), 23. * table));
  CHECK(same(f({}, "x if h[0] in h and h[0] not in h[1:] and h[::-1][0] == h[2] else 0 * x"), table));
  CHECK(same(f({}, "sum([g.gain for g in layers]) * x"), 2. * table));
  CHECK(same(f({}, "sum(layers[::-1].all.gain) * x"), 2. * table));
  // two: (x, y) -> (x + (i + 1) y, y - x)
  const Array2 backwards = f({"a, c = two[::-1](x, 2 * x)"}, "stack([a, c])");
  CHECK(same(test::item(backwards, 0), 5. * table + (2. * table - table)));
  CHECK(same(test::item(backwards, 1), table - 5. * table));
}

TEST_CASE("a tuple is the state of repeats, and a left-out module gives its argument") {
  // (a, c) becomes (a + c x, a), twice.
  CHECK(same(f({"state, same = pairs((x, 3 * x), x)", "a, c = state"}, "stack([a, c])"),
             xt::stack(xt::xtuple(table + 4. * table * table, table + 3. * table * table))));
  CHECK(same(f({}, "absent(x)"), table));
}

TEST_CASE("mistakes with functions and repeats are errors at their place") {
  check_error("y = x + mean", "'+' cannot combine float32 (2, 3) and function 'mean'");
  check_error("y = relu(sin)", "function 'sin' is not an array: call it, or write a text in quotes");
  check_error("y = relu(cube)", "function 'cube' is not an array: call it");
  check_error("y = relu(layers[0])", "module 'layers' is not an array: call it, or name one of its weights");
  check_error("y = sin", "result 'f' is not an array or a number but function 'sin'");
  check_error("y = ((sin(x), none), x)", "result 'f.0' is not an array or a number but (float32 (2, 3), none)");
  check_error("y = (3)(x)", "3 cannot be called");
  check_error("y = x(x)", "'x' is float32 (2, 3), which cannot be called");
  check_error("y = twice(3, x)", "'g' is 3, which cannot be called");
  check_error("y = twice(cube, x)", "input 'x' is float32 (2, 3), declared float [n]");
  check_error("y = vmap(3, x)", "vmap: its first argument must be a module or a function");
  check_error("y = scan(h, x, init=x[:, 0])", "scan: 'h' must be one module: choose a repeat, h[0]");
  check_error("y = vmap(h[::-1], x)", "vmap: 'h' must be one module: choose a repeat, h[0]");
  check_error("y = vmap(absent, x)", "vmap: 'absent' must be one module, and it is left out");
  check_error("y = twice(scan, x)", "'scan' has no value: call it, scan(…)");
  check_error("y = cast(x, int)", "function 'int' is not an array: call it, or write a text in quotes");
  check_error("y = twice(lambda a: a, x)", "not 'lambda': a block or a function has the lines");
  check_error("y = h[none](x)", "module 'h' takes one integer as an index, or one range");
  check_error("y = concat([g(x, 1) for g in h[5:]])", "op 'concat' needs at least one array, got ()");
  check_error("y = torch.nn.functional.relu(x)", "unknown name 'torch'; an op has no prefix: relu(…)");
  check_error("y = scan(stpe, x)", "unknown name 'stpe'; did you mean 'step'?");
  check_error("y = grad(cube)", "grad needs 'inputs'");
  check_error("y = grad(cube, 3)", "input 'x' is 3, declared float [n]");
  check_error("y = grad(cube, x[0])", "must have one element");
  check_error("y = f(x)", "function 'f' calls itself");
  check_error("y = twice(f, x)", "function 'f' calls itself");
  check_error("y = h[5](x, 1)", "module 'h' has 3 repeats: there is no index 5");
  check_error("y = h[1:][2](x, 1)", "module 'h' has 2 repeats: there is no index 2");
  check_error("y = h[0, 1](x, 1)", "takes one integer as an index, or one range");
  check_error("y = h[::0](x, 1)", "a step cannot be 0");
  check_error("y = h[0][0](x, 1)", "module 'h' is not repeated here: it takes no index");
  check_error("y = h[::-1].gain", "'h' is repeated: choose one with h[0]");
  check_error("y = [g(x) for g in twice]", "'for' goes over a tuple or a repeated module, not module 'twice'");
  check_error("y = len(twice)", "len takes a tuple, a text, or an array with axes, not module 'twice'");
  check_error("y = h[::-1]()", "a repeated module needs its first argument without a name");
  check_error("y = [g() for g in h][0]", "'x' is missing");
  // A block that applies its argument to itself never ends.
  const std::string loop = error("y = twice(twice, twice)");
  CHECK(loop.find("small.json") == 0);
}

TEST_CASE("a line or an input may hide a module, a weight or a parameter, with a warning") {
  const auto text = [](const std::string& line, const std::string& result) {
    return R"json({"xtape": 2, "name": "hides", "blocks": {
"layer": {"hyper": {"scale": null}, "weights": {"w": {"shape": [1], "init": "ones"}}, "inputs": ["x"],
"do": [")json" +
           line + R"json("], "result": ")json" + result + R"json("}},
"model": {"modules": {"layer": {"block": "layer", "scale": 5}}, "functions": {
"f": {"inputs": {"x": "float [b, t]"}, "do": ["layer = layer(x)", "y = layer(layer)"], "result": "y"}}}})json";
  };
  const auto played = [&](const std::string& line, const std::string& result) {
    const Model model = Model::parse(text(line, result), test::in_float64());
    return test::play(model, "f", {{"b", 2}, {"t", 3}}, {ArrayView(table)})[0];
  };
  // A call of a name that holds no function means the module.
  CHECK(same(played("scale = scale + 2", "x * scale * w"), 49. * table));
  CHECK(same(played("w = 2 * w", "x * scale * w"), 100. * table));
  CHECK(same(played("y = sum([scale for scale in (1, 2)])", "x * y * w * scale"), 225. * table));
  const std::string hidden = "small.json, function 'f', line 5: 'layer' hides the module of this name";
  CHECK(
      warnings(text("scale = scale + 2", "x * scale * w")) ==
      std::vector<std::string>{"small.json, block 'layer', line 3: 'scale' hides the parameter of this name", hidden});
  CHECK(warnings(text("w = 2 * w", "x * scale * w"))[0] ==
        "small.json, block 'layer', line 3: 'w' hides the weight of this name");
  CHECK(warnings(text("y = sum([scale for scale in (1, 2)])", "x * y * w * scale"))[0] ==
        "small.json, block 'layer', line 3: 'scale' hides the parameter of this name");
  const std::string given = R"j({"x": "float [b, t]"}, "do": ["layer = layer(x)", "y = layer(layer)"])j";
  std::string input = text("y = x", "y * scale * w");
  input.replace(input.find(given), given.size(), R"j({"layer": "float [b, t]"}, "do": ["y = layer(layer)"])j");
  CHECK(warnings(input) == std::vector<std::string>{hidden});
  CHECK(same(test::play(Model::parse(input, test::in_float64()), "f", {{"b", 2}, {"t", 3}}, {ArrayView(table)})[0],
             5. * table));
}

TEST_CASE("a block may hide the block of a used file, which keeps its own") {
  const std::string text =
      R"json({"xtape": 2, "name": "hides", "use": ["lib"], "files": {"lib": {"xtape": 2, "blocks": {
"act": {"inputs": ["x"], "result": "x + 1"}, "outer": {"modules": {"act": {"block": "act"}}, "inputs": ["x"], "result": "act(x)"}}}},
"blocks": {"act": {"inputs": ["x"], "result": "10 * x"}},
"model": {"modules": {"own": {"block": "act"}, "outer": {"block": "outer"}}, "functions": {
"f": {"inputs": {"x": "float [b, t]"}, "result": "own(outer(x))"}}}})json";
  const Model model = Model::parse(text, test::in_float64(), "small.json");
  CHECK(same(test::play(model, "f", {{"b", 2}, {"t", 3}}, {ArrayView(table)})[0], 10. * (table + 1.)));
  CHECK(warnings(text) ==
        std::vector<std::string>{"small.json, block 'act', line 3: it hides the block of this name in lib"});
  const Model again = Model::parse(model.definition_text(), test::in_float64());
  CHECK(same(test::play(again, "f", {{"b", 2}, {"t", 3}}, {ArrayView(table)})[0], 10. * (table + 1.)));
  // A change of it holds there, too, and hides nothing.
  std::string changing = text;
  const std::string block = R"({"inputs": ["x"], "result": "10 * x"})";
  changing.replace(changing.find(block), block.size(), R"({"change": {"result": "10 * x"}})");
  CHECK(warnings(changing).empty());
  for (const std::string& each : {changing, Model::parse(changing).definition_text()})
    CHECK(same(test::play(Model::parse(each, test::in_float64()), "f", {{"b", 2}, {"t", 3}}, {ArrayView(table)})[0],
               100. * table));
}

TEST_CASE("names of other libraries are errors with what to write, and what they say to write works") {
  const Array2 square = Table{{1, 2, 3}, {4, 5, 6}, {7, 8, 10}};
  for (const model::Synonym& each : model::synonyms()) {
    std::istringstream names(each.names);
    for (std::string name; names >> name;) {
      CAPTURE(name);
      CHECK(builtin_ops().find(name) == nullptr);
      const std::string says = "'" + name + "' is " + each.library + "'s name; here it is " + each.form;
      const std::string function = test::error_of([&] { test::f({"y = " + name + "(x)"}, "y", square); });
      if (name != "float") CHECK_MESSAGE(function.find("line 9: " + says) != std::string::npos, function);
      const std::string method = test::error_of([&] { test::f({"y = x." + name + "(1)"}, "y", square); });
      CHECK_MESSAGE(method.find("line 9: " + says) != std::string::npos, method);
      const std::string prefixed = test::error_of([&] { test::f({"y = torch." + name + "(x)"}, "y", square); });
      if (name != "float") CHECK_MESSAGE(prefixed.find("unknown name 'torch'; " + says) != std::string::npos, prefixed);
    }
    CAPTURE(std::string(each.form));
    CHECK(test::error_of([&] { test::f({"y = x", std::string("out = ") + each.form}, "x", square); }) == "");
  }
}

TEST_CASE("named arguments of PyTorch, and methods of arrays, are errors with what to write") {
  const auto error = [](const std::string& line) { return test::error_of([&] { test::f({line}, "y", table); }); };
  CHECK(error("y = sum(x, dim=1)").find("op 'sum' has no attribute 'dim': 'dim' is PyTorch's name; here it is axis=") !=
        std::string::npos);
  CHECK(error("y = sum(x, axis=1, keepdim=true)").find("here it is keepdims=") != std::string::npos);
  CHECK(error("y = layer_norm(x, eps=1e-3)").find("here it is epsilon=") != std::string::npos);
  CHECK(error("y = transpose(x, dims=(1, 0))").find("here it is axes=") != std::string::npos);
  CHECK(error("y = relu(x, dim=1)").find("op 'relu' has no attribute 'dim'; it has x") != std::string::npos);
  CHECK(error("y = x.mean()").find("an array has no 'mean', only .shape and .rank: write mean(x)") !=
        std::string::npos);
  CHECK(error("y = x.foo").find("an array has no 'foo', only .shape and .rank\n") != std::string::npos);
  CHECK(error("y = act(x)").find("there is no module, function or op 'act'") != std::string::npos);
}

}  // namespace xtape::references_test
