// Canonical form: which expressions are one term, and which are not.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "rewrite/pattern.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Values {
  explicit Values(const Vars& vars) : x(vars[0]), y(vars[1]), row(vars[2]), n(vars[3]), m(vars[4]), w(vars[5]) {}
  static std::vector<ValueType> types() {
    return {{Dtype::float64, {3, 4}}, {Dtype::float64, {3, 4}}, {Dtype::float64, {4}},
            {Dtype::int64, {3, 4}},   {Dtype::boolean, {3, 4}}, {Dtype::float64, {4, 5}}};
  }
  static Vars on(Tape tape) {
    Vars vars;
    for (const ValueType& type : types())
      vars.push_back(tape.input("v" + std::to_string(vars.size()), type.shape, type.dtype));
    return vars;
  }
  Var x, y, row, n, m, w;
};
using Spelling = std::function<Var(const Values&)>;

/// Whether two expressions are one term: whether the first as a pattern matches the second, with the same values.
bool same(const Spelling& a, const Spelling& b) {
  const RulePattern pattern(
      {.name = "a", .op = &builtin_ops().at("tanh"), .inputs = Values::types(), .pattern = [&](const ExpandCall& call) {
         return Vars{a(Values(call.inputs))};
       }});
  Tape tape;
  const Vars vars = Values::on(tape);
  const Var root = b(Values(vars));
  const TapeSegment segment{tape, std::vector<bool>(tape.size(), true)};
  CanonicalForm form(segment);
  Binding binding;
  return may_match(pattern, form.terms, form.terms[form.of(root.id())]) &&
         match(pattern, form, form.of(root.id()), false, binding, [&] {
           for (std::size_t i = 0; i < vars.size(); ++i)
             if (binding.inputs[i] >= 0 && binding.inputs[i] != form.of(vars[i].id())) return false;
           return true;
         });
}
}  // namespace

TEST_CASE("operands in another order, moved literals and equivalent powers give one term") {
  CHECK(same([](const Values& v) { return v.x + v.y; }, [](const Values& v) { return v.y + v.x; }));
  CHECK(same([](const Values& v) { return v.x * v.y * v.row; }, [](const Values& v) { return v.row * (v.y * v.x); }));
  CHECK(same([](const Values& v) { return v.x / 4.0; }, [](const Values& v) { return 0.25 * v.x; }));
  CHECK(same([](const Values& v) { return v.x - v.y; }, [](const Values& v) { return -v.y + v.x; }));
  CHECK(same([](const Values& v) { return (v.x + v.y) * 2.0; }, [](const Values& v) { return 2.0 * v.y + 2.0 * v.x; }));
  CHECK(same([](const Values& v) { return v.x * v.x; }, [](const Values& v) { return square(v.x); }));
  CHECK(same([](const Values& v) { return pow(v.x, 3.0); }, [](const Values& v) { return v.x * square(v.x); }));
  CHECK(same([](const Values& v) { return 1.0 / sqrt(v.x); }, [](const Values& v) { return rsqrt(v.x); }));
  CHECK(same([](const Values& v) { return v.y / sqrt(v.x + 1.0); },
             [](const Values& v) { return rsqrt(1.0 + v.x) * v.y; }));
}

TEST_CASE("equivalent reductions, masks and reshapes give one term") {
  CHECK(same([](const Values& v) { return mean(v.x, {1}, true); },
             [](const Values& v) { return expand_dims(mean(v.x, {-1}), -1); }));
  CHECK(same([](const Values& v) { return variance(v.x, {-1}, true); },
             [](const Values& v) { return mean(square(v.x - mean(v.x, {-1}, true)), {1}, true); }));
  CHECK(same(
      [](const Values& v) { return variance(v.x, {-1}, true); },
      [](const Values& v) { return mean((v.x - mean(v.x, {1}, true)) * (v.x - mean(v.x, {1}, true)), {1}, true); }));
  CHECK(same([](const Values& v) { return masked_fill(v.x, v.m, -infinity); },
             [](const Values& v) { return where(v.m, -infinity, v.x); }));
  CHECK(same([](const Values& v) { return masked_fill(v.x, ~v.m, -infinity); },
             [](const Values& v) { return where(v.m, v.x, -infinity); }));
  CHECK(same([](const Values& v) { return masked_fill(v.x / 2.0, v.m, -infinity); },
             [](const Values& v) { return masked_fill(v.x, v.m, -infinity) * 0.5; }));
  CHECK(same([](const Values& v) { return softmax(v.x, 1); }, [](const Values& v) { return softmax(v.x); }));
  CHECK(same(
      [](const Values& v) {
        return reshape(reshape(v.x, {12}), {3, 4}) + v.y;
      },
      [](const Values& v) { return v.x + v.y; }));
  CHECK(same([](const Values& v) { return matmul(v.x, v.w); },
             [](const Values& v) { return einsum("kn,mk->mn", v.w, v.x); }));
  CHECK(same([](const Values& v) { return matmul(v.x * 3.0, v.w); },
             [](const Values& v) { return matmul(v.x, v.w * 3.0); }));
  CHECK(same([](const Values& v) { return transpose(matmul(v.x, v.w)); },
             [](const Values& v) { return matmul(transpose(v.w), transpose(v.x)); }));
  CHECK(same(
      [](const Values& v) {
        return v.x - broadcast_to(v.row, {3, 4});
      },
      [](const Values& v) { return v.x - v.row; }));
}

TEST_CASE("expressions that are equal for some values only are different terms") {
  CHECK(!same([](const Values& v) { return sqrt(v.x) * sqrt(v.x); }, [](const Values& v) { return v.x * 1.0; }));
  CHECK(!same([](const Values& v) { return square(sqrt(v.x)); }, [](const Values& v) { return v.x * 1.0; }));
  CHECK(!same([](const Values& v) { return sqrt(square(v.x)); }, [](const Values& v) { return v.x * 1.0; }));
  CHECK(!same([](const Values& v) { return v.x / v.x * v.y; }, [](const Values& v) { return v.y * 1.0; }));
  CHECK(!same([](const Values& v) { return v.x - v.x + v.y; }, [](const Values& v) { return v.y * 1.0; }));
  CHECK(!same([](const Values& v) { return sqrt(v.x * -2.0); }, [](const Values& v) { return sqrt(v.x) * 2.0; }));
  CHECK(!same([](const Values& v) { return masked_fill(v.x / 2.0, v.m, 1.0); },
              [](const Values& v) { return masked_fill(v.x, v.m, 1.0) / 2.0; }));
}

TEST_CASE("integers wrap, so their calls are not rewritten") {
  CHECK(!same([](const Values& v) { return v.n + v.n * 2; }, [](const Values& v) { return v.n * 2 + v.n; }));
  CHECK(same([](const Values& v) { return v.n * v.n; }, [](const Values& v) { return v.n * v.n; }));
}

TEST_CASE("terms of n nested sums have a total size linear in n") {
  Tape tape;
  const Values values(Values::on(tape));
  Var total = values.x;
  for (int i = 0; i < 100000; ++i) total = total + values.y;
  const TapeSegment segment{tape, std::vector<bool>(tape.size(), true)};
  const CanonicalForm form(segment);
  std::size_t parts = 0;
  for (std::size_t i = 0; i < form.terms.size(); ++i) parts += form.terms[static_cast<TermId>(i)].parts.size();
  CHECK(parts < 400000);
}
