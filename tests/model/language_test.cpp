// What lines of the expression language come to.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <utility>

#include "definitions.hpp"
#include "source_root.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::f;
using xtape::test::in_float64;
using xtape::test::one_function;
using xtape::test::same;
using Array2 = xt::xarray<double>;
using Row = xt::xtensor<double, 1>;
using Table = xt::xtensor<double, 2>;

namespace {
const Array2 table = Table{{1, 2, 3}, {4, 5, 6}};

/// A number worked out while recording, as an array of the shape of x.
double number(const std::string& expression) {
  return f({}, "0 * x + (" + expression + ")", table)(0, 0);
}
}  // namespace

TEST_CASE("sizes and numbers are worked out while recording") {
  CHECK(number("1 + 2 * 3") == 7);
  CHECK(number("(1 + 2) * 3") == 9);
  CHECK(number("2 ** 3 ** 2") == 512);
  CHECK(number("-2 ** 2") == -4);
  CHECK(number("2 ** -1") == 0.5);
  CHECK(number("12 / n") == 3);
  CHECK(number("7 // 2") == 3);
  CHECK(number("-7 // 2") == -4);
  CHECK(number("-7 % 3") == 2);
  CHECK(number("7.5 // 2") == 3);
  CHECK(number("1.0 * 7 / 2") == 3.5);
  CHECK(number("sqrt(16) + min(3, n, 9) + max(1, 2.5)") == 9.5);
  CHECK(number("floor(2.7) * 10 / 5") == 4);
  CHECK(number("1e-3 * .5 + 2.") == doctest::Approx(2.0005));
  CHECK(number("b * 100 + t") == 203);
  CHECK(number("x.shape[1] + x.rank") == 5);
  CHECK(std::isinf(number("-inf")));
}

TEST_CASE("tuples are joined, repeated and cut as in Python") {
  const auto says = [](const std::string& hyper) {
    return to_string(
        Model::parse(R"({"xtape": 2, "name": "tuples", "hyper": {"t": ")" + hyper +
                     R"("}, "model": {"functions": {"f": {"inputs": {"x": "float [1]"}, "result": "x"}}}})")
            .hyper()
            .at("t"));
  };
  CHECK(says("(('a', 'b') * 3)[:5]") == "('a', 'b', 'a', 'b', 'a')");
  CHECK(says("(1, 2.5, true, 4)[-3:-1]") == "(2.5, true)");
  CHECK(says("(1, 2)[1:]") == "(2,)");
  CHECK(says(R"(('it\\'s', 'a'))") == R"(('it\'s', 'a'))");
  CHECK(says("(1, 2)[2:1]") == "()");
  CHECK(says("(1, 2)[-5:7]") == "(1, 2)");
  CHECK(says("(1, 2) * 0 + (3,)") == "(3,)");
  CHECK_THROWS_WITH_AS(says("(1, 2) * -1"), doctest::Contains("a tuple cannot be repeated -1 times"), DefinitionError);
  CHECK_THROWS_WITH_AS(says("(1, 2) * 2 ** 40"), doctest::Contains("the tuple would have more than 1048576 elements"),
                       DefinitionError);
  CHECK(says("(1, 2, 3)[::2]") == "(1, 3)");
  CHECK_THROWS_WITH_AS(
      says("((1, 2), 3)"),
      doctest::Contains("a hyper-parameter is a number, a flag, a string or a tuple of these, not ((1, 2), "
                        "3)"),
      DefinitionError);
}

TEST_CASE("flags and strings choose attributes") {
  const Array2 tanh_form = f({}, "gelu(x, approximate=form)", table);
  CHECK(same(tanh_form, f({}, "gelu(x, 'tanh')", table)));
  CHECK(!same(tanh_form, f({}, "gelu(x, 'none')", table)));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=wide and n > 3)", table), Table{{6}, {15}}));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=not wide or n == 5)", table), Row{6, 15}));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=form == 'none')", table), Row{6, 15}));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=form != 'none')", table), Table{{6}, {15}}));
}

TEST_CASE("and and or look at the right side only where the left does not decide") {
  CHECK(same(f({}, "sum(x, axis=1, keepdims=n == 4 or n // 0 == 1)", table), Table{{6}, {15}}));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=n == 3 and n // 0 == 1)", table), Row{6, 15}));
}

TEST_CASE("a condition chooses while recording, and only what it chooses is evaluated") {
  CHECK(same(f({}, "x if n == 4 else x + n // 0", table), f({}, "x", table)));
  CHECK(same(f({}, "2 * x if n < 4 else x + 1 if n == 4 else x", table), f({}, "x + 1", table)));
  CHECK(same(f({}, "(2 * x if n < 4 else x) + 1", table), f({}, "x + 1", table)));
  CHECK(same(f({}, "sum(x, axis=1 if wide else 0)", table), Row{6, 15}));
  CHECK(same(f({"a, b = (x, 2 * x) if wide and n == 4 else (x, x)"}, "b - a", table), f({}, "x", table)));
}

TEST_CASE("a comment ends a line") {
  CHECK(same(f({"y = x + 1  # [b, t]"}, "y  # as it is", table), f({}, "x + 1", table)));
  CHECK(same(f({}, "sum(x, axis=1, keepdims=form == '#')  # '", table), Row{6, 15}));
}

TEST_CASE("training says whether the mode is train") {
  const Model model = Model::parse(one_function({}, "x + 1 if training else x"), in_float64());
  const NamedSizes sizes = {{"b", 2}, {"t", 3}};
  CHECK(same(test::play(model, "f", sizes, {ArrayView(table)}, Mode::train)[0], f({}, "x + 1", table)));
  CHECK(same(test::play(model, "f", sizes, {ArrayView(table)}, Mode::eval)[0], table));
  CHECK(same(f({"training = 2"}, "x * training", table), f({}, "x * 2", table)));
}

TEST_CASE("arithmetic and comparison of arrays record ops") {
  CHECK(same(f({}, "(2 * x - 1) / 4 + x ** 2", table), (2. * table - 1.) / 4. + table * table));
  CHECK(same(f({}, "-x % 4", table), Table{{3, 2, 1}, {0, 3, 2}}));
  CHECK(same(f({}, "where(x > 2 and not (x == 5), x, 0)", table), Table{{0, 0, 3}, {4, 0, 6}}));
  CHECK(same(f({}, "where(x <= 1 or x != x or 6 <= x, 1, x * 0)", table), Table{{1, 0, 0}, {0, 0, 1}}));
}

TEST_CASE("lines assign to one name or to several") {
  CHECK(same(f({"y = x + 1", "y = y * y"}, "y", table), (table + 1.) * (table + 1.)));
  CHECK(same(f({"a, c = split(x, (1, 2), axis=1)"}, "c - a", table), Table{{1, 2}, {1, 2}}));
  CHECK(same(f({"a, c = x + 1, x * 2", "(c, a) = a, c"}, "a - c", table), table - 1.));
  CHECK(same(f({"pair = (x, 3)"}, "pair[0] * pair[-1]", table), 3. * table));
  CHECK(same(f({"(only,) = (x,)"}, "only", table), table));
}

TEST_CASE("indexing and slicing follow NumPy") {
  CHECK(same(f({}, "x[0]", table), Row{1, 2, 3}));
  CHECK(same(f({}, "x[:, -1]", table), Row{3, 6}));
  CHECK(same(f({}, "x[..., 1:]", table), Table{{2, 3}, {5, 6}}));
  CHECK(same(f({}, "x[:, ::2]", table), Table{{1, 3}, {4, 6}}));
  CHECK(same(f({}, "x[1, :t - 1]", table), Row{4, 5}));
  CHECK(same(f({}, "x[:, -2:]", table), Table{{2, 3}, {5, 6}}));
  const Array2 fresh = f({}, "x[none, ..., none, 0]", table);
  CHECK(fresh.shape() == Array2::shape_type{1, 2, 1});
  CHECK(fresh(0, 1, 0) == 4);
}

TEST_CASE("steps may go backwards, as in NumPy") {
  CHECK(same(f({}, "x[::-1]", table), Table{{4, 5, 6}, {1, 2, 3}}));
  CHECK(same(f({}, "x[:, ::-2]", table), Table{{3, 1}, {6, 4}}));
  CHECK(same(f({}, "x[:, 1::-1]", table), Table{{2, 1}, {5, 4}}));
  CHECK(same(f({}, "x[0, :0:-1]", table), Row{3, 2}));
  CHECK(test::error_of([] { f({}, "x[::0]", table); }).find("a step cannot be 0") != std::string::npos);
}

TEST_CASE("@ is matmul") {
  CHECK(same(f({}, "x @ transpose(x, (1, 0))", table), Table{{14, 32}, {32, 77}}));
  CHECK(same(f({}, "2 * x @ transpose(x, (1, 0)) / 2", table), Table{{14, 32}, {32, 77}}));
  CHECK(test::error_of([] { f({}, "x * (2 @ 3)", table); }).find("'@'") != std::string::npos);
  CHECK(test::error_of([] { f({}, "x @ 3", table); }).find("'@'") != std::string::npos);
}

TEST_CASE("calls of ops take inputs in order, then attributes in order, or by name") {
  CHECK(same(f({}, "sum(x, 1)", table), Row{6, 15}));
  CHECK(same(f({}, "sum(x, (0, 1))", table), Array2(21.)));
  CHECK(same(f({}, "concat((x, 2 * x), axis=1)", table), f({}, "concat(x, 2 * x, axis=1)", table)));
  CHECK(same(f({}, "concat((x, x), 1)[:, 3:]", table), table));
  CHECK(same(f({}, "einsum('bt,ct->bc', x, x)", table), Table{{14, 32}, {32, 77}}));
  CHECK(f({}, "rearrange(x, 'b (t s) -> t b s', s=3)", table)(0, 1, 2) == 6);
  CHECK(same(f({}, "masked_fill(x, x > 4, -1)", table), Table{{1, 2, 3}, {4, -1, -1}}));
  CHECK(same(f({}, "maximum(x, 3)", table), Table{{3, 3, 3}, {4, 5, 6}}));
  CHECK(same(f({}, "layer_norm(x, epsilon=0.5)", table), f({}, "layer_norm(x, none, none, 0.5)", table)));
  CHECK(same(f({}, "cast(x > 3, 'float')", table), Table{{0, 0, 0}, {1, 1, 1}}));
  CHECK(same(f({}, "zeros(shape=(b, t)) + x", table), table));  // in the model's float64
}

TEST_CASE("a reduction names its axes: those that are not on the right are gone") {
  const Array2 sums = xt::sum(table, {0}), most = xt::amax(table, {1});
  CHECK(same(f({}, "sum(x, 'b t -> t')", table), sums));
  CHECK(same(f({}, "max(x, 'b t -> b')", table), most));
  CHECK(same(f({}, "sum(x, 'b t -> b', keepdims=true)", table), Array2(xt::sum(table, {1}, xt::keep_dims))));
  CHECK(same(f({}, "mean(x[:, none], '... t -> ...')[:, 0]", table), Array2(xt::mean(table, {1}))));
  CHECK(same(f({}, "min(x, '... -> ')", table), Array2(xt::amin(table))));
  CHECK(same(f({}, "logsumexp(x[none], 'one b t -> b t')", table), table));
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"sum(x, 'b t d -> b')", "'b t d' names 3 axes, not the 2 of float64 (2, 3)"},
      {"sum(x, 'b t d ... -> b')", "names at least 3 axes, not the 2"},
      {"sum(x, 'b t -> t b')", "'b' stands on the right, but not in this place of the left"},
      {"sum(x, 'b t -> n')", "'n' stands on the right"},
      {"sum(x, 'b b -> b')", "'b' stands twice on the left"},
      {"sum(x, 'b t -> b t')", "'b t -> b t' reduces no axis"},
      {"sum(x, 'b t -> b', axis=0)", "'axis' is given twice"},
      {"softmax(x, 'b t -> b')", "op 'softmax' cannot take 'b t -> b' here"}};
  for (const auto& each : mistakes) {
    CAPTURE(each.first);
    CHECK(test::error_of([&] { f({}, each.first, table); }).find(each.second) != std::string::npos);
  }
}

TEST_CASE("ranges of tuples, pi, comparisons with none, and modules chosen by a line") {
  CHECK(number("(1, 2, 3, 4)[1:3][0] * 10 + (1, 2, 3, 4)[:-1][-1]") == 23);
  CHECK(number("(1, 2, 3, 4)[::-1][0] + (1, 2, 3, 4)[3:0:-2][1]") == 6);
  CHECK(number("1 if x.shape[:1] + (3,) == x.shape else 0") == 1);
  CHECK(number("0 if (1, 2)[5:] == () else 1") == 0);
  CHECK(test::error_of([] { number("(1, 2)[::0][0]"); }).find("a step cannot be 0") != std::string::npos);
  CHECK(number("2 * pi") == 2 * std::acos(-1.0));
  CHECK(same(f({"pi = x * 3"}, "pi", table), 3 * table));
  CHECK(number("1 if x != none else 0") == 1);
  CHECK(number("1 if x == none or none != none else 0") == 0);
}

TEST_CASE("is_named says whether a module has one of several names") {
  const auto weights = [](const std::string& names) {
    std::string text = R"json({"xtape": 2, "name": "named", "blocks": {
      "line": {
        "hyper": {"wide": "is_named(NAMES)"},
        "weights": {"a": {"shape": ["3 if wide else 2"], "init": "ones"},
                    "b": {"shape": [1], "init": "ones", "when": "is_named(NAMES)"}},
        "inputs": ["x"],
        "result": "x * sum(a) * b if is_named(NAMES) else x * (a if b == none else b)"
      },
      "layer": {"modules": {"up, to_up": {"block": "line"}}, "inputs": ["x"], "result": "up(to_up(x))"}
    }, "model": {
      "modules": {"h": {"block": "layer", "repeat": 2}, "up": {"block": "line"}},
      "functions": {"f": {"inputs": {"x": "float [2]"}, "result": "up(h(x))"}}
    }})json";
    for (std::size_t at; (at = text.find("NAMES")) != std::string::npos;) text.replace(at, 5, names);
    Model model = Model::parse(text);
    std::string all;
    for (const std::string& name : model.weights().names())
      if (name.ends_with(".b")) all += (all.empty() ? "" : " ") + name;
    Array x(Dtype::float32, {2});
    x.as<float>()[0] = x.as<float>()[1] = 1;
    all += ":" + std::to_string(static_cast<int>(model.play("f", {{"x", x}})[0].value.as<float>()[0]));
    return all;
  };
  CHECK(weights("'up'") == "h.0.up.b h.1.up.b up.b:27");  // the sum of three ones for each
  CHECK(weights("'h.0.up', 'to_up'") == "h.0.up.b h.0.to_up.b h.1.to_up.b:27");
  CHECK(weights("('h.1.up',), ('to_up', 'up')") == "h.0.up.b h.0.to_up.b h.1.up.b h.1.to_up.b up.b:243");
  CHECK(weights("'0.to_up'") == "h.0.to_up.b:3");
  CHECK(weights("()") == ":1");
  const auto error = [&](const std::string& names) { return test::error_of([&] { weights(names); }); };
  CHECK(error("'to_op'").find("no module that asks this is named 'to_op'; did you mean 'to_up'?") != std::string::npos);
  CHECK(error("('up', 'o_up')").find("no module that asks this is named 'o_up'") != std::string::npos);
  for (const char* wrong : {"3", "('up', 4)", "''", "none", "x"})
    CHECK_MESSAGE(error(wrong).find("definition, block 'line'") != std::string::npos, error(wrong));
  CHECK(error("3").find("is_named takes names of modules, as texts or as tuples of them, not 3") != std::string::npos);
  CHECK(error("'up', axis=1").find("is_named takes no named argument") != std::string::npos);
  CHECK(test::error_of([] { number("1 if is_namd('up') else 0"); }).find("did you mean 'is_named'?") !=
        std::string::npos);
  CHECK(test::error_of([] {
          Model::parse(
              R"json({"xtape": 2, "name": "n", "hyper": {"a": "is_named('up')"}, "model": {"functions": {}}})json");
        }).find("there is no module, function or op 'is_named'") != std::string::npos);
}

TEST_CASE("an input of a type with ? may be none, and a mask that is none masks nothing") {
  const auto model = [](const std::string& call, const std::string& type = "bool? [b, t]") {
    return Model::parse(R"json({"xtape": 2, "name": "small", "hyper": {"both": true}, "blocks": {
      "masked": {"inputs": {"x": "float [b, t]", "mask": ")json" +
                            type + R"json("}, "result": "masked_fill(x, mask, 9)"},
      "twice": {"inputs": ["x", "mask"], "result": "2 * x"}},
      "model": {"modules": {"m": {"block": "masked"}, "n": {"block": "twice"}}, "functions": {
      "f": {"inputs": {"x": "float [b, t]"}, "do": ["chosen = m if both else n"],
            "result": {"y": ")json" +
                            call + R"json(", "count": "b", "half": "t / 2.0"}}}}})json",
                        in_float64());
  };
  const auto results = [&](const std::string& call) {
    return test::play(model(call), "f", {{"b", 2}, {"t", 3}}, {ArrayView(table)});
  };
  CHECK(same(results("m(x, none) + n(x, none)")[0], 3 * table));
  CHECK(same(results("m(x, x > 2) + 0 * n(x, none)")[0], xt::where(table > 2., 9., table)));
  // A line that chooses a module, and results that are numbers, which become arrays.
  const auto chosen = results("chosen(x, none)");
  CHECK(same(chosen[0], table));
  CHECK((chosen[1].dimension() == 0 && chosen[1]() == 2));
  CHECK((chosen[2].dimension() == 0 && chosen[2]() == 1.5));
  const auto error = [&](const std::string& call, const std::string& type = "bool? [b, t]") {
    return test::error_of([&] {
      const Model made = model(call, type);
      Tape tape;
      made.record(tape, "f", made.inputs(tape, "f", {{"b", 2}, {"t", 3}}));
    });
  };
  CHECK(error("m(x, none) + n(x, none)", "bool [b, t]").find("input 'mask' is none, declared bool [b, t]") !=
        std::string::npos);
  CHECK(error("m(x, x) + n(x, none)").find("input 'mask' is float64 (2, 3), declared bool? [b, t]") !=
        std::string::npos);
  CHECK(error("m(x, x[0] > 1) + n(x, none)").find("declared bool? [b, t]: it has 1 axis, not 2") != std::string::npos);
  CHECK(error("(x, none)").find("result 'y' is not an array or a number but (float64 (2, 3), none)") !=
        std::string::npos);
}
