// Lists in lines: literals, comprehensions, `in`, and functions of tuples and numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "definitions.hpp"
#include "xtape/xtensor.hpp"

namespace xtape::lists_test {

using xtape::test::error_of;
using xtape::test::f;
using xtape::test::one_function;
using xtape::test::same;
using Array2 = xt::xarray<double>;
using Row = xt::xtensor<double, 1>;
using Table = xt::xtensor<double, 2>;

namespace {
const Array2 table = Table{{1, 2, 3}, {4, 5, 6}};

/// The value of a hyper-parameter with this default, which needs no tape.
std::string says(const std::string& expression) {
  return to_string(Model::parse(R"({"xtape": 2, "name": "l", "hyper": {"n": 4, "t": )" + expression +
                                R"(}, "model": {"functions": {"f": {"inputs": {"x": "float [1]"}, "result": "x"}}}})")
                       .hyper()
                       .at("t"));
}
std::string value(const std::string& expression) {
  return says('"' + expression + '"');
}

/// The error of a line of function `f`, in line 9 of small.json.
std::string error_of_line(const std::string& line, std::int64_t max_steps = ModelOptions{}.max_steps) {
  return error_of([&] {
    ModelOptions options;
    options.max_steps = max_steps;
    const Model model = Model::parse(one_function({line}, "x"), options, "small.json");
    Tape tape(Mode::eval);
    model.record(tape, "f", model.inputs(tape, "f", {{"b", 2}, {"t", 3}}));
  });
}

void check_errors(const std::vector<std::pair<std::string, std::string>>& mistakes) {
  for (const auto& each : mistakes) {
    const std::string &line = each.first, &text = each.second;
    CAPTURE(line);
    const std::string error = error_of_line(line);
    CHECK_MESSAGE(error.find(text) != std::string::npos, error);
    CHECK(error.find("small.json, function 'f', line 9: ") == 0);
    CHECK(error.find('^') != std::string::npos);
  }
}
}  // namespace

TEST_CASE("a list is a tuple") {
  CHECK(value("[1, 2.5, true]") == "(1, 2.5, true)");
  CHECK(value("[7]") == "(7,)");
  CHECK(value("[7,]") == "(7,)");
  CHECK(value("[]") == "()");
  CHECK(value("[1, 2] + (3,)") == "(1, 2, 3)");
  CHECK(value("[0] * 3") == "(0, 0, 0)");
  CHECK(value("[[1, 2], [3, 4]][1]") == "(3, 4)");
  CHECK(value("[5, 6, 7][::-1]") == "(7, 6, 5)");
  CHECK(value("[*(1, 2), 3, *[], *[4]]") == "(1, 2, 3, 4)");
  CHECK(value("*(1, 2), 3") == "(1, 2, 3)");
  CHECK(value("1 if [1, 2] == (1, 2) else 0") == "1");
  CHECK(says(R"([64, "2 * n", 0.5, true, "'a'"])") == "(64, 8, 0.5, true, 'a')");
  CHECK(says("[]") == "()");
  CHECK(same(f({"a, c = [x, 2 * x]"}, "concat([c - a, a], axis=0)", table), xt::concatenate(xt::xtuple(table, table))));
  CHECK(same(f({}, "sum(x, axis=[0, 1])", table), Array2(21.)));
}

TEST_CASE("a comprehension evaluates an expression for each element, as in Python") {
  CHECK(value("[2 ** i for i in range(1, 5)]") == "(2, 4, 8, 16)");
  CHECK(value("(i for i in (3, 1))") == "(3, 1)");
  CHECK(value("[i * j for i in (1, 2) for j in (10, 20, 30)]") == "(10, 20, 30, 20, 40, 60)");
  CHECK(value("[i for i in range(10) if i % 3 == 1]") == "(1, 4, 7)");
  CHECK(value("[10 * i + j for i in range(3) if i != 1 for j in range(3) if j > i]") == "(1, 2)");
  CHECK(value("[a - b for a, b in ((5, 2), (7, 9))]") == "(3, -2)");
  CHECK(value("[len([j for j in range(i)]) for i in range(4)]") == "(0, 1, 2, 3)");
  CHECK(value("[i for i in ()]") == "()");
  CHECK(value("sum(i * i for i in range(4))") == "14");
  CHECK(value("[n for n in (1, 2)] + [n]") == "(1, 2, 4)");  // the name of an element ends with its list
  CHECK(value("[[n for n in (n, 1)] for n in (8, 9)][1][0]") == "9");
  CHECK(value("[i if i > 1 else -i for i in range(4)]") == "(0, -1, 2, 3)");
  CHECK(value("[in for in in (1, 2) if in in (2, 3)]") == "(2,)");
  CHECK(same(f({"rows = [r * i for i, r in enumerate(unstack(x))]"}, "rows[0] + rows[1]", table), Row{4, 5, 6}));
  CHECK(same(f({"x = [x + i for i in range(3)][2]"}, "x", table), table + 2.));
}

TEST_CASE("a hyper-parameter may name its elements as itself") {
  CHECK(value("[t for t in (1, 2)]") == "(1, 2)");
}

TEST_CASE("in finds a value in a tuple") {
  const auto flag = [](const std::string& condition) { return value(condition) == "true"; };
  CHECK(flag("3 in (1, 2.5, 3)"));
  CHECK(flag("2.0 in [1, 2]"));
  CHECK(!flag("true in (1, 2)"));
  CHECK(flag("'b' in ('a', 'b') and 'c' not in ('a', 'b')"));
  CHECK(flag("(1, 2) in ((1, 2), 3)"));
  CHECK(flag("1 not in ()"));
  CHECK(flag("not 1 in (2, 3)"));
  CHECK(flag("none in (1, none) and none not in (1, 2)"));
  CHECK(same(f({}, "x if none in (none,) else 2 * x", table), table));
}

TEST_CASE("functions of tuples and numbers are those of Python") {
  CHECK(value("len((1, 2, 3)) + len('abcd') + len([])") == "7");
  CHECK(value("[sum((1, 2, 3.5)), sum(()), prod((2, 3)), prod([])]") == "(6.5, 0, 6, 1)");
  CHECK(value("[min((3, 1, 2)), max([3, 1, 2]), max(3, 7)]") == "(1, 3, 7)");
  CHECK(value("[any((false, true)), all((false, true)), any(()), all([])]") == "(true, false, false, true)");
  CHECK(value("[int(2.9), int(-2.9), int(true), int(7)]") == "(2, -2, 1, 7)");
  CHECK(value("[ceil(2.1), floor(-2.1), round(2.5), round(3.5), round(-0.6), ceil(3)]") == "(3, -3, 2, 4, -1, 3)");
  CHECK(value("float(n) / 3 == 4.0 / 3 and float(n) / 8 == 0.5") == "true");
  CHECK(value("range(3) + range(1, 3) + range(5, 0, -2)") == "(0, 1, 2, 1, 2, 5, 3, 1)");
  CHECK(value("[a * b for a, b in zip((1, 2), (3, 4))]") == "(3, 8)");
  CHECK(value("[10 * i + a for i, a in enumerate((7, 8))]") == "(7, 18)");
  CHECK(value("int(9223372036854775807)") == "9223372036854775807");
  CHECK(value("range(-9223372036854775807, 9223372036854775807, 4611686018427387904)") ==
        "(-9223372036854775807, -4611686018427387903, 1, 4611686018427387905)");
  CHECK(same(f({}, "x * len(x) + prod(x.shape)", table), 2. * table + 6.));
  CHECK(same(f({}, "sum([x, 2 * x, none, 1])", table), 3. * table + 1.));
  CHECK(same(f({}, "prod(unstack(x))", table), Row{4, 10, 18}));
  CHECK(same(f({}, "sum(x, axis=0) + max(x, 0) - min((2, 3))", table), Row{7, 10, 13}));
}

TEST_CASE("array makes an array of numbers or flags") {
  CHECK(same(f({}, "array([[1, 2], [3.5, -4]])", table), Table{{1, 2}, {3.5, -4}}));
  CHECK(same(f({}, "array([1, 2]) * 1.0", table), Row{1, 2}));
  CHECK(same(f({}, "where(array([true, false, true]), x, 0)", table), Table{{1, 0, 3}, {4, 0, 6}}));
  CHECK(same(f({}, "array([0.1 * i for i in range(3)])", table), Row{0, 0.1, 0.2}));
  CHECK(same(f({}, "take(x, array([2, 0]), axis=1)", table), Table{{3, 1}, {6, 4}}));
  CHECK(same(f({}, "x + array(3)", table), table + 3.));
  CHECK(same(f({}, "array(x)", table), table));
  CHECK(f({}, "array([[], []])", table).shape() == Array2::shape_type{2, 0});
  const auto dtype = [](const std::string& expression) {
    const Model model = Model::parse(one_function({}, expression));
    Tape tape;
    return model.record(tape, "f", model.inputs(tape, "f", {{"b", 2}, {"t", 3}}))[0].value.dtype();
  };
  CHECK(dtype("array([1, 2])") == Dtype::int64);
  CHECK(dtype("array([1, 2.0])") == Dtype::float32);
  CHECK(dtype("array([true])") == Dtype::boolean);
  CHECK(dtype("array([])") == Dtype::float32);
  CHECK(dtype("array([1, 2], dtype='float')") == Dtype::float32);
  CHECK(dtype("array([0.1], 'float64')") == Dtype::float64);
  CHECK(dtype("array([1.5], dtype='int32')") == Dtype::int32);
  CHECK(dtype("array(x, dtype='bool')") == Dtype::boolean);
}

TEST_CASE("mistakes in lists are errors at their place") {
  check_errors({
      {"y = [x, x", "']' belongs here, not the end of the line"},
      {"y = [x x]", "']' belongs here, not 'x'"},
      {"y = [x for]", "only names can be assigned to"},
      {"y = [i for i, in (1,)]", "'in' of 'for a in tuple' belongs here, not '('"},
      {"y = *x, 1", "'*' spreads a tuple or a repeated module, not float32 (2, 3)"},
      {"y = [*x for i in (1, 2)]", "this has no value here"},
      {"y = [i for 3 in (1, 2)]", "only names can be assigned to"},
      {"y = [i for none in (1, 2)]", "only names can be assigned to"},
      {"y = [i for i of (1, 2)]", "'in' of 'for a in tuple' belongs here, not 'of'"},
      {"y = [i for i in (1, 2) if]", "an expression belongs here, not ']'"},
      {"y = [i, 2 for i in (1, 2)]", "']' belongs here, not 'for'"},
      {"y = sum(x, i for i in (1, 2))", "',' or ')' belongs here, not 'for'"},
      {"y = i for i in (1, 2)", "an operator or the end of the line belongs here, not 'for': [f(a) for a in tuple]"},
      {"for = 3", "an expression belongs here, not 'for'"},
      {"y = [k for i in (1, 2)]", "unknown name 'k'"},
      {"y = [i for i in (1, 2)][0] + i", "unknown name 'i'"},
      {"y = [i for i in x]", "'for' goes over a tuple or a repeated module, not float32 (2, 3): unstack(x) gives"},
      {"y = [i for i in 3]", "'for' goes over a tuple or a repeated module, not 3"},
      {"y = [i for i in 'abc']", "'for' goes over a tuple or a repeated module, not 'abc'"},
      {"y = [i for i, j in (1, 2)]", "2 names on the left, but the value is 1"},
      {"y = [i for i in (1, 2) if i]", "a condition is true or false, not 1"},
      {"y = [i for i in (1, 2) if x > i]", "a condition must be known while recording"},
      {"y = 1 in 2 in 3", "comparisons do not chain"},
      {"y = 1 in x", "'in' looks for a value in a tuple, not in float32 (2, 3): any(x == value)"},
      {"y = x in (x, 1)", "arrays in tuples are not compared"},
      {"y = 0 if (x,) == (x,) else 1", "arrays in tuples are not compared"},
      {"y = 'b' in 'abc'", "'in' looks for a value in a tuple, not in 'abc'"},
      {"y = x + [1, 2, 3]", "'+' cannot combine float32 (2, 3) and (1, 2, 3): array(tuple) makes an array of numbers"},
      {"y = x[[0, 1]]", "an integer belongs here, not a tuple: take(x, array(tuple), axis=0)"},
      {"y = len(3)", "len takes a tuple, a text, or an array with axes, not 3"},
      {"y = len(sum(x))", "len takes a tuple, a text, or an array with axes, not float32 ()"},
      {"y = len((1,), (2,))", "len takes a tuple, a text, or an array with axes, not (1,), (2,)"},
      {"y = len()", "not nothing"},
      {"y = len(xs=(1, 2))", "len takes no named argument"},
      {"y = int(x)", "cast(x, 'int') converts an array"},
      {"y = int('3')", "int takes a number or a flag, not '3'"},
      {"y = int(1e19)", "int: 1e+19 is too large for an integer"},
      {"y = int(-inf)", "is too large for an integer"},
      {"y = int(inf - inf)", "int of "},
      {"y = range(2.5)", "range takes one to three integers, not 2.5"},
      {"y = range()", "range takes one to three integers, not nothing"},
      {"y = range(1, 2, 0)", "a step cannot be 0"},
      {"y = range(4611686018427387904)", "the tuple would have more than 1048576 elements"},
      {"y = range(-9223372036854775807, 9223372036854775807)", "the tuple would have more than 1048576 elements"},
      {"y = zip((1, 2), (3,))", "zip takes tuples of one length, not of 2 and 1 elements"},
      {"y = zip()", "zip takes tuples, not nothing"},
      {"y = zip((1, 2), 3)", "zip takes tuples, not (1, 2), 3"},
      {"y = enumerate((1,), (2,))", "enumerate takes one tuple, not (1,), (2,)"},
      {"y = min(())", "min of an empty tuple is not defined"},
      {"y = max((1, 'a'))", "max of a tuple takes numbers, not (1, 'a')"},
      {"y = max((x, x))", "maximum(a, b) compares arrays element by element"},
      {"y = sum((x, 'a'))", "sum of a tuple takes numbers and arrays, not 'a'"},
      {"y = sum(((1, 2), (3, 4)))", "sum of a tuple takes numbers and arrays, not (1, 2)"},
      {"y = sum((9223372036854775807, 1))", "the result of '+' is too large for an integer"},
      {"y = any((1, true))", "any of a tuple takes flags, not 1"},
      {"y = prod((x, x[:, :2]))", "do not broadcast"},
      {"y = array([[1, 2], [3]])", "(3,) does not fit shape (2, 2)"},
      {"y = array([1, [2]])", "(2,) does not fit shape (2,)"},
      {"y = array([[1], 2])", "2 does not fit shape (2, 1)"},
      {"y = array(['a'])", "array takes numbers or flags, not 'a'"},
      {"y = array([x, x])", "array takes numbers or flags, not float32 (2, 3): stack(tuple) joins arrays"},
      {"y = array([1, true])", "array takes either numbers or flags, not both"},
      {"y = array([1], dtype='floot')", "floot"},
      {"y = array([1], dtype=3)", "array: 'dtype' must be the name of a dtype, not 3"},
      {"y = array([1], axis=3)", "array takes (values, dtype=), not 'axis'"},
      {"y = array()", "array takes (values, dtype=)"},
      {"y = array([[[[[[[[[[[1]]]]]]]]]]])", "an array has at most 10 axes"},
  });
  const std::string sizes = error_of([] { value("array([1, 2])"); });
  CHECK(sizes.find("array gives an array: only sizes and numbers are allowed here") != std::string::npos);
  CHECK(error_of([] { says("[1, [2, null]]"); }).find("a list belongs here, not null") != std::string::npos);
  CHECK(error_of([] { says("[1, {}]"); }).find("definition, hyper, line 1") != std::string::npos);
}

TEST_CASE("an error shows the place in a comprehension") {
  CHECK(error_of_line("y = [x @ i for i in (1, 2)]") ==
        "small.json, function 'f', line 9: '@' cannot combine float32 (2, 3) and 1\n"
        "    y = [x @ i for i in (1, 2)]\n"
        "           ^");
  CHECK(error_of_line("y = [i for i in 3]") ==
        "small.json, function 'f', line 9: 'for' goes over a tuple or a repeated module, not 3\n"
        "    y = [i for i in 3]\n"
        "                    ^");
}

TEST_CASE("lists exhaust neither stack nor memory nor time") {
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  check_errors({{"y = " + std::string(5000, '['), "nested more than 200 deep"},
                {"y = " + repeated("[i for i in ", 5000), "nested more than 200 deep"},
                {"y = [1 " + repeated("for i in (1, 2) ", 5000) + "]", "nested more than 200 deep"},
                {"y = [1 " + repeated("for i in (1, 2) ", 60) + "]", "more than 2000000 steps"},
                {"y = [" + std::string(19, '9') + "9]", "this integer is too large"},
                {"y = [[i for i in range(2 ** 20)] for j in range(2 ** 20)]", "more than 2000000 steps"},
                {"y = sum([range(2 ** 9) for i in range(2 ** 9)])", "sum of a tuple takes numbers and arrays"}});
  const std::string hundred = "y = " + repeated("[", 150) + "1" + repeated("]", 150);
  CHECK(error_of_line(hundred) == "");
  CHECK(error_of_line("y = [i for i in range(100)]", 100).find("more than 100 steps") != std::string::npos);
}

TEST_CASE("a definition that is written as one text keeps its lists") {
  const Model model =
      Model::parse(R"json({"xtape": 2, "name": "l", "hyper": {"ks": [1, 2], "names": ["'a'"]}, "blocks": {
    "b": {"hyper": {"sizes": null}, "weights": {"w": {"shape": ["sum(sizes)"], "init": "ones"}},
          "inputs": ["x"], "result": "sum([x * w[i] for i in range(sum(sizes)) if i not in (1,)])"}},
    "model": {"modules": {"p": {"block": "b", "sizes": ["ks[1]", 3]}},
              "functions": {"f": {"inputs": {"x": "float [b, t]"}, "result": "p(x) if 'a' in names else x"}}}})json",
                   test::in_float64());
  CHECK(model.parameter_count() == 5);
  const Model again = Model::parse(model.definition_text(), test::in_float64());
  for (const Model& each : {std::cref(model), std::cref(again)})
    CHECK(same(test::play(each, "f", {{"b", 2}, {"t", 3}}, {ArrayView(table)})[0], 4. * table));
}

}  // namespace xtape::lists_test
