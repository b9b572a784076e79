// Calls recorded from C++: their source locations, their literals, and code that must not compile.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
std::string place_of(const Var& var) {
  return to_string(var.node().site);
}

template <class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

template <class A, class B, class = void>
struct Multiplies : std::false_type {};
template <class A, class B>
struct Multiplies<A, B, std::void_t<decltype(std::declval<A>() * std::declval<B>())>> : std::true_type {};
template <class T, class = void>
struct Negates : std::false_type {};
template <class T>
struct Negates<T, std::void_t<decltype(!std::declval<T>())>> : std::true_type {};
template <class T, class = void>
struct Chooses : std::false_type {};
template <class T>
struct Chooses<T, std::void_t<decltype(std::declval<T>() ? 1 : 2)>> : std::true_type {};
template <class T, class = void>
struct Joins : std::false_type {};
template <class T>
struct Joins<T, std::void_t<decltype(std::declval<T>() && std::declval<T>())>> : std::true_type {};
}  // namespace

TEST_CASE("a var has no truth value: conditions of vars do not compile") {
  static_assert(!std::is_constructible_v<bool, Var>);
  static_assert(!Negates<Var>::value && !Chooses<Var>::value && !Joins<Var>::value);
  static_assert(Negates<bool>::value && Chooses<bool>::value && Joins<bool>::value);  // the checks detect each of these
  CHECK(Var().empty());
  Tape tape;
  CHECK_FALSE(tape.input("x", {0}).empty());  // empty() is about the handle, not the elements
}

TEST_CASE("numbers of every arithmetic type may be used with a var, on either side") {
  Tape tape;
  const Var x = tape.input("x", {2}, Dtype::int64);
  const Array two(Dtype::int64, {2});
  const auto works = [&](auto number) {
    using T = decltype(number);
    CAPTURE(typeid(T).name());
    CHECK((number + x).type() == (x + number).type());
    CHECK((number - x).type() == (x - number).type());
    CHECK((number * x).type() == (x * number).type());
    CHECK((number / x).type() == (x / number).type());
    for (const Var& y : {number == x, x == number, number != x, x != number,
                         number<x, x<number, number <= x, x <= number, number> x, x> number, number >= x, x >= number})
      CHECK(y.dtype() == Dtype::boolean);
    const bool whole = std::is_integral_v<T>;
    CHECK((number * x).dtype() == (whole ? Dtype::int64 : Dtype::float32));
  };
  works(std::int8_t{2});
  works(std::uint8_t{2});
  works(short{2});
  works(static_cast<unsigned short>(2));
  works(2);
  works(2U);
  works(2L);
  works(2UL);
  works(2LL);
  works(2ULL);
  works(std::size_t{2});
  works(std::int64_t{2});
  works(true);
  works(2.0F);
  works(2.0);
  works(2.0L);
  CHECK(value<std::int64_t>(std::size_t{3} - x, {{x, xt::xarray<std::int64_t>{1, 5}}}) ==
        xt::xarray<std::int64_t>{2, -2});
}

TEST_CASE("literals are recorded exactly") {
  Tape tape;
  const Var x = tape.input("x", {1}, Dtype::int64);
  const xt::xarray<std::int64_t> zero{0};
  for (const std::int64_t number : {(std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min(), std::int64_t{-9007199254740993}}) {
    CHECK(value<std::int64_t>(x + number, {{x, zero}})(0) == number);
    CHECK(evaluate(tape.constant(number, Dtype::int64)).as<std::int64_t>()[0] == number);
  }
  CHECK(evaluate(tape.constant(2147483647, Dtype::int32)).as<std::int32_t>()[0] == 2147483647);
  CHECK(evaluate(tape.constant(0.1, Dtype::float64)).as<double>()[0] == 0.1);
  CHECK(evaluate(tape.constant(3, Dtype::float32)).as<float>()[0] == 3);
  CHECK(evaluate(tape.constant(true, Dtype::int32)).as<std::int32_t>()[0] == 1);
}

TEST_CASE("literals that the dtype cannot hold are refused, and the error names them") {
  Tape tape;
  const Var x = tape.input("x", {1}, Dtype::int64), narrow = tape.input("narrow", {1}, Dtype::int32);
  const std::string range = ", which holds the integers from -2147483648 to 2147483647";
  CHECK_THROWS_WITH_AS(narrow + 3000000000,
                       ("add: the literal 3000000000 does not fit int32" + range + ": use int64").c_str(), DtypeError);
  CHECK_THROWS_WITH_AS(-2147483649 * narrow,
                       ("mul: the literal -2147483649 does not fit int32" + range + ": use int64").c_str(), DtypeError);
  CHECK_THROWS_WITH_AS(tape.constant(2.5, Dtype::int32),
                       ("the literal 2.5 does not fit int32" + range + ": use a float dtype").c_str(), DtypeError);
  CHECK_THROWS_AS(tape.constant(9223372036854775808.0, Dtype::int64), DtypeError);
  CHECK_THROWS_AS(tape.constant(std::numeric_limits<double>::quiet_NaN(), Dtype::int64), DtypeError);
  CHECK_THROWS_WITH_AS(x + std::uint64_t{18446744073709551615U},
                       "the literal 18446744073709551615 does not fit int64, the widest integer dtype", DtypeError);
  CHECK(tape.size() == 2);
}

TEST_CASE("the source location of a call is the program's line") {
  Tape tape;
  Caller at;
  const auto is_here = [&](const Var& var) {
    CHECK(to_string(at).compare(0, 21, "places_test.cpp, line") == 0);
    CHECK(place_of(var) == to_string(at));
  };
  at = Caller::here(), is_here(tape.input("i", {2, 2}));
  const Var x = tape.input("x", {2, 2});
  const Var b = tape.input("b", {2, 2}, Dtype::boolean);
  at = Caller::here(), is_here(tape.parameter("w", Array(Dtype::float32, {2})));
  at = Caller::here(), is_here(tape.constant(1, Dtype::float32));
  at = Caller::here(), is_here(tanh(x));
  at = Caller::here(), is_here(sum(x, {0}));
  at = Caller::here(), is_here(x + x);
  at = Caller::here(), is_here(2 * x);
  at = Caller::here(), is_here(x / 2);
  at = Caller::here(), is_here(-x);
  at = Caller::here(), is_here(x == 1);
  at = Caller::here(), is_here(b & ~b);
  at = Caller::here(), is_here(maximum(0.5, x));
  at = Caller::here(), is_here(where(b, x, 0));
  at = Caller::here(), is_here(concat({x, x}));
  at = Caller::here(), is_here(einsum("ij,jk->ik", x, x));
  at = Caller::here(), is_here(einsum("ij,jk->ik", {x, x}));
  at = Caller::here(), is_here(matmul(x, x));
  at = Caller::here(), is_here(zeros(tape, {2}));
  at = Caller::here(), is_here(ones_like(x));
  at = Caller::here(), is_here(uniform(tape, {2}));
  at = Caller::here(), is_here(split(x, 2)[1]);
  at = Caller::here(), is_here(top_k(x, 1).second);
  at = Caller::here(), is_here(cross_entropy_sum(x, argmax(x)).first);
}

TEST_CASE("a gradient's nodes have the source location of the forward call, or of the call of grad") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var y = exp(x);
  const Var z = sum(y * y);
  const std::size_t forward = tape.size();
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Vars gradients = grad(z, {x});
  for (std::size_t i = forward; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    const std::string place = to_string(node.site);
    if (node.op->inputs.empty())
      CHECK(place == to_string(at));  // the seed of the cotangents
    else
      CHECK((place == place_of(y) || place == place_of(z)));
  }
  CHECK(place_of(gradients[0]) == place_of(y));
}

TEST_CASE("calls in a cell or a checkpoint have their own source locations") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  Caller inside, outside;
  outside = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = checkpoint(
      [&](const Vars& in) {
        inside = Caller::here(__FILE__, __LINE__ + 1);
        return Vars{tanh(in[0])};
      },
      {x})[0];
  CHECK(place_of(y) == to_string(outside));
  const Tape& body = *y.node().body;
  CHECK(to_string(body.node(body.size() - 1).site) == to_string(inside));
  const ScanFunction cell = [&](const Vars& in, const Vars& states) {
    inside = Caller::here(__FILE__, __LINE__ + 1);
    const Var next = tanh(states[0] * in[0]);
    return std::make_pair(Vars{next}, Vars{next});
  };
  const Var first = zeros(tape, {2});
  outside = Caller::here(__FILE__, __LINE__ + 1);
  const Var steps = scan(cell, {x}, {first}).outputs[0];
  CHECK(place_of(steps) == to_string(outside));
  const Tape& step = *steps.node().body;
  CHECK(to_string(step.node(step.size() - 1).site) == to_string(inside));
  CHECK(std::string(step.node(step.size() - 1).site.op->name) == "tanh");
}

TEST_CASE("a site's key, which random numbers use, does not depend on the program's line") {
  const auto drawn = [](Tape& tape, bool elsewhere) {
    if (elsewhere) return uniform(tape, {4});
    return uniform(tape, {4});
  };
  Tape one, other;
  const Var a = drawn(one, false), b = drawn(other, true);
  CHECK(place_of(a) != place_of(b));
  CHECK(a.node().site.key == b.node().site.key);
  CHECK(value<float>(a) == value<float>(b));
}

TEST_CASE("a scope with its own location replaces the program's line") {
  Tape tape;
  const Var x = tape.input("x", {2});
  {
    const auto guard = tape.in_scope(std::make_shared<const Scope>(Scope{"h.0", "net.json, block 'mix'"}), 7);
    CHECK(place_of(tanh(x)) == "h.0 (net.json, block 'mix', line 7)");
    CHECK(error_of([&] { x + tape.input("y", {3}); }).find("add: ") != std::string::npos);
  }
  const auto guard = tape.in_scope(std::make_shared<const Scope>(Scope{"h.0", ""}), 0);
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = tanh(x);
  CHECK(place_of(y) == "h.0 (" + to_string(at) + ")");
}

TEST_CASE("an error while recording begins with the program's file and line") {
  Tape tape;
  const Var x = tape.input("x", {2}), y = tape.input("y", {3});
  Caller at;
  std::string error;
  const auto is = [&](const std::string& text) { CHECK(error == to_string(at) + ": " + text); };
  at = Caller::here(), error = error_of([&] { x + y; });
  is("add: shapes (2,) and (3,) do not broadcast: counted from the back, sizes must be equal or 1");
  at = Caller::here(), error = error_of([&] { tape.input("x", {1}); });
  is("the tape already has an input named 'x'");
  at = Caller::here(), error = error_of([&] { split(x, 5); });
  is("split: axis 0 of (2,) does not divide into 5 equal parts");
  at = Caller::here(), error = error_of([&] { tanh(Var()); });
  is("tanh: an empty var: it was never recorded");
  at = Caller::here(), error = error_of([&] { grad(x, {Tape().input("z", {1})}); });
  CHECK(error.find(to_string(at) + ": ") == 0);
  const std::string shapes =
      "add: shapes (2,) and (3,) do not broadcast: counted from the back, sizes must be equal or 1";
  // For a function that the program passes in, the error has the line inside it, once.
  Caller inside;
  error = error_of([&] {
    checkpoint(
        [&](const Vars& in) {
          inside = Caller::here(__FILE__, __LINE__ + 1);
          return Vars{in[0] + y};
        },
        {x});
  });
  CHECK(error == to_string(inside) + ": " + shapes);
  error = error_of([&] {
    scan(
        [&](const Vars& in, const Vars&) {
          inside = Caller::here(__FILE__, __LINE__ + 1);
          return std::make_pair(Vars{in[0] + x + y}, Vars{});
        },
        {x}, {}, ScanOptions{0, false, {}});
  });
  CHECK(error == to_string(inside) + ": " + shapes);
  at = Caller::here(), error = error_of([&] { checkpoint([](const Vars&) { return Vars(); }, {x}); });
  is("checkpoint: the function gives no result");
}
