#include <doctest/doctest.h>

#include <map>

#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// The sum over every label, term by term. `explicit_equation` has a result and no ellipsis; axes of size 1 broadcast.
Doubles naive(const std::string& explicit_equation, const std::vector<Doubles>& operands) {
  const std::size_t arrow = explicit_equation.find("->");
  std::vector<std::string> terms(1);
  for (char c : explicit_equation.substr(0, arrow))
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  const std::string result = explicit_equation.substr(arrow + 2);
  std::map<char, std::int64_t> sizes;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t axis = 0; axis < terms[k].size(); ++axis) {
      const std::int64_t size = shape_of(operands[k])[axis];
      if (size != 1 || sizes.count(terms[k][axis]) == 0) sizes[terms[k][axis]] = size;
    }
  std::string letters;
  Shape all, result_shape;
  for (const auto& [letter, size] : sizes) {
    letters += letter;
    all.push_back(size);
  }
  for (char letter : result) result_shape.push_back(sizes.at(letter));
  Doubles y = made_from(result_shape, [](const Shape&) { return 0.0; });
  for_each_index(all, [&](const Shape& index) {
    double term = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      Shape at;
      for (std::size_t axis = 0; axis < terms[k].size(); ++axis)
        at.push_back(index[letters.find(terms[k][axis])] % shape_of(operands[k])[axis]);
      term *= element(operands[k], at);
    }
    std::int64_t flat = 0;
    for (char letter : result) flat = flat * sizes.at(letter) + index[letters.find(letter)];
    y.data()[flat] += term;
  });
  return y;
}

struct Example {
  std::string equation, explicit_equation;
  std::vector<Shape> shapes;
};
const std::vector<Example> examples = {
    {"ij,jk->ik", "ij,jk->ik", {{3, 4}, {4, 2}}},
    {"ij,jk", "ij,jk->ik", {{3, 4}, {4, 2}}},
    {"ba", "ba->ab", {{2, 3}}},
    {"ij,kj->ki", "ij,kj->ki", {{3, 4}, {2, 4}}},
    {"bqhe,bkhe->bhqk", "bqhe,bkhe->bhqk", {{2, 3, 2, 4}, {2, 5, 2, 4}}},
    {"bhqk,bkhe->bqhe", "bhqk,bkhe->bqhe", {{2, 2, 3, 5}, {2, 5, 2, 4}}},
    {"i,i", "i,i->", {{5}, {5}}},
    {"i,j->ij", "i,j->ij", {{3}, {2}}},
    {"i,j->ji", "i,j->ji", {{3}, {2}}},
    {"ij,ij->ij", "ij,ij->ij", {{3, 2}, {3, 2}}},
    {"ij->", "ij->", {{3, 2}}},
    {"ij->j", "ij->j", {{3, 2}}},
    {"ii->i", "ii->i", {{3, 3}}},
    {"ii", "ii->", {{3, 3}}},
    {"iji->ji", "iji->ji", {{3, 2, 3}}},
    {"iii->i", "iii->i", {{2, 2, 2}}},
    {"iijj->ji", "iijj->ji", {{2, 2, 3, 3}}},
    {"ii,ij->j", "ii,ij->j", {{3, 3}, {3, 2}}},
    {"ijk,j->i", "ijk,j->i", {{2, 3, 4}, {3}}},
    {"ij,kl->jl", "ij,kl->jl", {{2, 3}, {4, 2}}},
    {",ij->ij", ",ij->ij", {{}, {2, 3}}},
    {"ij,jk,kl->il", "ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
    {"a,b,c->cab", "a,b,c->cab", {{2}, {3}, {2}}},
    {"bi,bj,bk,ijk->b", "bi,bj,bk,ijk->b", {{3, 2}, {3, 3}, {3, 2}, {2, 3, 2}}},
    {"...ij,...jk->...ik", "abij,abjk->abik", {{2, 3, 2, 4}, {2, 3, 4, 2}}},
    {"...ij,...jk->...ik", "abij,bjk->abik", {{2, 3, 2, 4}, {3, 4, 2}}},
    {"...ij,...jk->...ik", "abij,abjk->abik", {{2, 1, 2, 4}, {1, 3, 4, 2}}},
    {"i...j,j->i...", "iabj,j->iab", {{2, 3, 2, 4}, {4}}},
    {"...,...", "ab,b->ab", {{2, 3}, {3}}},
    {"b...,b...->...", "bxy,by->xy", {{2, 3, 2}, {2, 2}}},
    {"...ii->...i", "aii->ai", {{2, 3, 3}}},
    {"ij,ij->ij", "ij,ij->ij", {{1, 3}, {2, 3}}},
    {"ij,jk->ik", "ij,jk->ik", {{2, 3}, {1, 4}}},
    {"ij,kj->", "ij,kj->", {{2, 1}, {2, 3}}},
    {"ii,ij,jk->ik", "ii,ij,jk->ik", {{1, 1}, {3, 2}, {1, 4}}},
    {"ij,ij,i->j", "ij,ij,i->j", {{1, 1}, {2, 1}, {1}}},
    {" i j , j -> i ", "ij,j->i", {{2, 3}, {3}}},
};

Recording recording(const std::string& equation) {
  return [equation](const Vars& x) { return Vars{einsum(equation, x)}; };
}
std::vector<Doubles> points_of(const Example& example) {
  std::vector<Doubles> points;
  for (const Shape& shape : example.shapes) points.push_back(numbers(shape, static_cast<unsigned>(points.size())));
  return points;
}
}  // namespace

TEST_CASE("op einsum: agrees with explicit loops") {
  for (const Example& example : examples) {
    CAPTURE(example.equation);
    const std::vector<Doubles> points = points_of(example);
    CHECK(near(played(recording(example.equation), points)[0], naive(example.explicit_equation, points), 1e-12));
  }
}

TEST_CASE("op einsum: first and second gradients") {
  for (const Example& example : examples) {
    CAPTURE(example.equation);
    check_gradients(recording(example.equation), points_of(example));
  }
}

TEST_CASE("op einsum: operands with any strides") {
  const Doubles a = numbers({4, 3, 2}), b = numbers({5, 4, 2}, 1);
  const auto record = [](const Vars& x) {
    return Vars{transpose(einsum("hqe,hke->qkh", transpose(x[0], {2, 1, 0}), transpose(x[1], {2, 0, 1})))};
  };
  const Doubles expected = naive("eqh,keh->hkq", {a, b});
  CHECK(near(played(record, {a, b})[0], expected, 1e-12));
  check_gradients(record, {a, b});
}

TEST_CASE("op einsum: axes of size 0 sum to zeros") {
  CHECK(played_one([](const Vars& x) { return einsum("ij,jk->ik", x); }, {numbers({2, 0}), numbers({0, 3})}) ==
        made_from({2, 3}, [](const Shape&) { return 0.0; }));
  CHECK(played_one([](const Vars& x) { return einsum("ij,jk->ik", x); }, {numbers({0, 2}), numbers({2, 3})}).size() ==
        0);
}

TEST_CASE("op einsum: integers multiply exactly") {
  Tape tape;
  const xt::xarray<std::int64_t> a{{1, 2}, {3, 1'000'000'007}}, b{{5, -6}, {7, 8}};
  const Var product = einsum("ij,jk->ik", tape.constant(a), tape.constant(b));
  CHECK(product.dtype() == Dtype::int64);
  CHECK(value<std::int64_t>(product) == xt::xarray<std::int64_t>{{19, 10}, {7'000'000'064, 8'000'000'038}});
}

TEST_CASE("op einsum: integers keep their dtype if a label is in one operand only") {
  Tape tape;
  const Var a = tape.parameter("a", xt::xarray<std::int32_t>{{2147483647, 1}, {5, -7}});
  const Var b = tape.parameter("b", xt::xarray<std::int32_t>{3, 4});
  CHECK(evaluate(einsum("ab,c->bc", Vars{a, b})).to<std::int32_t>() ==
        xt::xarray<std::int32_t>{{-2147483636, 16}, {-18, -24}});  // wraps, as in NumPy
  CHECK(evaluate(einsum("ab->a", Vars{a})).to<std::int32_t>() == xt::xarray<std::int32_t>{-2147483647 - 1, -2});
  CHECK(einsum("ab,ac,a->cb", Vars{a, a, b}).dtype() == Dtype::int32);
  const Var mask = tape.input("mask", {2, 3}, Dtype::boolean);
  CHECK(einsum("ab->ba", Vars{mask}).dtype() == Dtype::boolean);
  CHECK_THROWS_WITH_AS(einsum("ab->a", Vars{mask}), "einsum: cannot sum bool arrays: cast them to numbers", DtypeError);
}

TEST_CASE("op einsum: many operands are multiplied in a cheap order") {
  Tape tape;
  const Var a = tape.input("a", {100, 100}), b = tape.input("b", {100, 100}), c = tape.input("c", {100});
  const std::size_t before = tape.size();
  einsum("ij,jk,k->i", a, b, c);
  REQUIRE(tape.size() == before + 2);
  CHECK(tape.node(before).outputs[0].shape ==
        Shape{100});  // the vector is multiplied first, so no product of two matrices is made
}

TEST_CASE("op einsum: axis labels may be words") {
  Tape tape;
  const auto numbers = [&](const char* name, const Shape& shape) { return tape.input(name, shape, Dtype::float64); };
  const Var q = numbers("q", {2, 3, 4, 5}), k = numbers("k", {2, 6, 4, 5}), v = numbers("v", {5});
  const auto equation_of = [](const Var& y) { return y.node().attributes.get<std::string>("equation"); };
  CHECK(einsum("b query head d, b key head d -> b head query key", q, k).shape() == Shape{2, 4, 3, 6});
  CHECK(equation_of(einsum("b query head d, b key head d -> b head query key", q, k)) ==
        equation_of(einsum("bqhd,bkhd->bhqk", q, k)));
  CHECK(einsum("... width, width -> ...", q, v).shape() == Shape{2, 3, 4});
  CHECK(einsum("b same say d, b sum say d -> sum same", q, k).shape() ==
        Shape{6, 3});                                                      // names with the same first letter
  CHECK(einsum("bqhd, bkhd -> bhqk", q, k).shape() == Shape{2, 4, 3, 6});  // letters, with spaces
  CHECK_THROWS_WITH_AS(einsum("b query head d, b key head d", q, k),
                       doctest::Contains("has words as axis labels, so it needs '->'"), ShapeError);
  CHECK_THROWS_WITH_AS(einsum("b query head d, b key head 2 -> b", q, k),
                       doctest::Contains("'2' is not a valid name of an axis"), ShapeError);
  CHECK_THROWS_WITH_AS(einsum("b key head d, b key head d -> b head", q, k), doctest::Contains("; k is key, h is head"),
                       ShapeError);
}

TEST_CASE("op einsum: errors name the mistake") {
  Tape tape;
  const Var a = tape.input("a", {2, 3}), b = tape.input("b", {4, 5}), m = tape.input("m", {2, 3}, Dtype::boolean);
  CHECK_THROWS_WITH_AS(einsum("ij,jk->ik", a, b),
                       "einsum: equation 'ij,jk->ik': axis 'j' has size 3 and size 4 in operands of shapes (2, 3) and "
                       "(4, 5)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(einsum("ijk->i", a), "einsum: equation 'ijk->i': 'ijk' names 3 axes, operand 0 has shape (2, 3)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(einsum("ij,jk->ik", a), "einsum: equation 'ij,jk->ik': names 2 operands, got 1", ShapeError);
  CHECK_THROWS_WITH_AS(einsum("ij->iz", a), "einsum: equation 'ij->iz': 'z' of the result is not in any operand",
                       ShapeError);
  CHECK_THROWS_WITH_AS(einsum("ij->ii", a), "einsum: equation 'ij->ii': 'i' occurs twice in the result", ShapeError);
  CHECK_THROWS_WITH_AS(einsum("i2->i", a),
                       "einsum: equation 'i2->i': '2' is not a letter; axes are letters a-z and A-Z, and '...'",
                       ShapeError);
  CHECK_THROWS_AS(einsum("i...j...->i", a), ShapeError);
  CHECK_THROWS_WITH_AS(einsum("...j->j", a),
                       "einsum: equation '...j->j': the result lacks '...': sum over those axes first, or name them",
                       ShapeError);
  CHECK_THROWS_WITH_AS(einsum("ii->i", a),
                       "einsum: equation 'ii->i': axis 'i' has size 2 and size 3 in operands of shapes (2, 3)",
                       ShapeError);
  CHECK_THROWS_AS(einsum("ii->i", tape.input("c", {1, 3})), ShapeError);  // only different operands broadcast
  CHECK_THROWS_WITH_AS(einsum("ij,ij->ij", m, m), "einsum: cannot multiply bool arrays: cast them to numbers",
                       DtypeError);
  CHECK(tape.size() == 4);
}

TEST_CASE("op einsum_add: adds a product to an array") {
  const auto record = [](const Vars& x) {
    return apply(builtin_ops().at("einsum_add"), {x[0], x[1], x[2]}, {{"equation", std::string("ij,kj->ki")}});
  };
  const std::vector<Doubles> points{numbers({3, 4}), numbers({2, 4}, 1), numbers({2, 3}, 2)};
  CHECK(near(played(record, points)[0], points[2] + naive("ij,kj->ki", points), 1e-12));
  check_gradients(record, points);
  // If the addend must not be overwritten, it keeps its values.
  const auto both = [&](const Vars& x) {
    const Var addend = exp(x[2]);
    return Vars{record({x[0], x[1], addend})[0], addend};
  };
  const Doubles kept = made_from({2, 3}, [&](const Shape& i) { return std::exp(element(points[2], i)); });
  CHECK(near(played(both, points)[1], kept, 1e-12));
  Tape tape;
  const Var a = tape.input("a", {3, 4}), b = tape.input("b", {4, 2});
  CHECK_THROWS_WITH_AS(
      apply(builtin_ops().at("einsum_add"), {a, b, a}, {{"equation", std::string("ij,jk->ik")}}),
      "einsum_add: the addend is float32 (3, 4), the product float32 (3, 2): their types must be equal", ShapeError);
  CHECK_THROWS_AS(apply(builtin_ops().at("einsum_add"), {a, b, a}, {{"equation", std::string("ij,kl->il")}}),
                  ShapeError);
}

TEST_CASE("op einsum: sums of products are computed in place") {
  const auto record = [](const Vars& x) { return Vars{x[2] * 2.0 + einsum("ij,jk->ik", x[0], x[1])}; };
  const std::vector<Doubles> points{numbers({3, 4}), numbers({4, 2}, 1), numbers({3, 2}, 2)};
  CHECK(near(played(record, points)[0], 2 * points[2] + naive("ij,jk->ik", points), 1e-12));
}
