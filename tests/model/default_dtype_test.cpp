// In a model of float64 nothing passes through float32, and integers stay exact.
#include <doctest/doctest.h>

#include "definitions.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::error_of;
using xtape::test::f;
using Row = xt::xtensor<double, 1>;

namespace {
const xt::xarray<double> row = xt::xtensor<double, 2>{{1, 2, 3}};

Dtype dtype_in(Dtype model_dtype, const std::string& result) {
  ModelOptions options;
  options.dtype = model_dtype;
  const Model model = Model::parse(xtape::test::one_function({}, result), options);
  Tape tape(Mode::eval);
  return model.record(tape, "f", model.inputs(tape, "f", {{"b", 1}, {"t", 3}}))[0].value.dtype();
}
}  // namespace

TEST_CASE("where of literals, division, means and roots of integers have the model's dtype") {
  for (const char* result :
       {"where(x > 0, 1.0, 0.0)", "iota((t,)) / 2", "mean(iota((t,)))", "iota((t,)) / 3", "relu(2.5)",
        "sqrt(iota((t,)))", "full((t,), 1)", "one_hot(iota((t,)), 3)", "uniform((t,))", "eye(3)", "iota((t,)) * 0.5"}) {
    CAPTURE(result);
    CHECK(dtype_in(Dtype::float32, result) == Dtype::float32);
    CHECK(dtype_in(Dtype::float64, result) == Dtype::float64);
  }
}

TEST_CASE("a float64 model loses no digit of integers") {
  CHECK(f({}, "iota((t,)) / 3", row) == Row{0, 1.0 / 3, 2.0 / 3});
  CHECK(f({}, "sqrt(full((1,), 4503599761588225, 'int64'))", row) == Row{67108865});
  CHECK(f({}, "mean(full((1,), 4503599761588225, 'int64'), keepdims=true)", row) == Row{4503599761588225.0});
  CHECK(f({}, "where(x[0] > 1, 0.1, 0.2)", row) == Row{0.2, 0.1, 0.1});
}

TEST_CASE("'//' divides arrays, rounding down, and integers stay integers") {
  CHECK(dtype_in(Dtype::float64, "iota((t,)) // 2") == Dtype::int64);
  CHECK(f({}, "(iota((t,)) - 2) // 2", row) == Row{-1, -1, 0});
  CHECK(f({}, "x[0] // 1.5", row) == Row{0, 1, 2});
  CHECK(f({}, "-7 // (iota((t,)) + 1)", row) == Row{-7, -4, -3});
}

TEST_CASE("a number that an integer array cannot hold is an error at its place") {
  for (const char* call :
       {"full((t,), 3000000000, 'int32')", "full((t,), 2.5, 'int32')", "pad(iota((t,)), 1, 1, 0.5)",
        "shift_right(iota((t,)), 0, 0.5)", "masked_fill(iota((t,)), x[0] > 1, 0.5)", "clip(iota((t,)), 0.5, 2)"}) {
    const std::string error = error_of([&] { f({}, call, row); });
    CAPTURE(call);
    CAPTURE(error);
    CHECK(error.find("does not fit int") != std::string::npos);
    CHECK(error.find("line 10") != std::string::npos);
  }
}
