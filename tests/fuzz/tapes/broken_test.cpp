// The fuzzer finds ops that are wrong on purpose, and shrinks what it finds.
#include <doctest/doctest.h>

#include <cmath>

#include "drawer.hpp"
#include "oracles.hpp"
#include "print.hpp"
#include "shrink.hpp"
#include "xtape/ops.hpp"

using namespace xtape;
using namespace xtape::fuzz;

namespace {
/// sin(x), computed by a tile.
Op sine(const char* name) {
  Op op;
  op.name = name;
  op.doc = "sin(x).";
  op.inputs = {{"x", Accept::floating}};
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
  op.lowering.tile = [](const KernelCall& call) -> TileFunction {
    const bool single = call.dtype(0) == Dtype::float32;
    return [single](const Tile& tile) {
      for (std::int64_t i = 0; i < tile.count; ++i)
        if (single)
          static_cast<float*>(tile.out[0])[i] = std::sin(static_cast<const float*>(tile.in[0])[i]);
        else
          static_cast<double*>(tile.out[0])[i] = std::sin(static_cast<const double*>(tile.in[0])[i]);
    };
  };
  op.gradient = [](const GradientCall& call) { return Vars{call.cotangent() * cos(call.inputs[0])}; };
  op.expand = [](const ExpandCall& call) { return Vars{sin(call.inputs[0])}; };
  return op;
}

/// A tile that is wrong from the ninth element of a tile on.
const Op& wrong_tile() {
  static const Op entry = [] {
    Op op = sine("broken_tile");
    op.lowering.tile = [right = op.lowering.tile](const KernelCall& call) -> TileFunction {
      return [tile = right(call), single = call.dtype(0) == Dtype::float32](const Tile& part) {
        tile(part);
        for (std::int64_t i = 8; i < part.count; ++i)
          if (single)
            static_cast<float*>(part.out[0])[i] += 1;
          else
            static_cast<double*>(part.out[0])[i] += 1;
      };
    };
    return op;
  }();
  return entry;
}

const Op& wrong_gradient() {
  static const Op entry = [] {
    Op op = sine("broken_gradient");
    op.gradient = [](const GradientCall& call) { return Vars{call.cotangent() * cos(call.inputs[0]) * 0.75}; };
    return op;
  }();
  return entry;
}

/// Says that it may write over its operand, and reads it afterwards.
const Op& wrong_overwrite() {
  static const Op entry = [] {
    Op op = sine("broken_overwrite");
    op.lowering.tile = nullptr;
    op.lowering.kernel = [](const KernelCall& call) {
      return Kernel{[count = count_of(call.shape(0)),
                     single = call.dtype(0) == Dtype::float32](const KernelArguments& arguments) {
        const auto all = [&](auto scalar) {
          using T = decltype(scalar);
          const T* x = static_cast<const T*>(arguments.in[0]);
          T* y = static_cast<T*>(arguments.out[0]);
          for (std::int64_t i = 0; i < count; ++i) y[i] = 0;
          for (std::int64_t i = 0; i < count; ++i) y[i] = std::sin(x[i]);
        };
        single ? all(float{}) : all(double{});
      }};
    };
    op.lowering.overwrites = {0};
    return op;
  }();
  return entry;
}

/// The first disagreement that the checks find in programs that call the op often, shrunk.
Shrunk found(const Op& op, const std::function<std::vector<Check>(std::uint64_t seed)>& checks) {
  const OpsGuard guard({&op});
  DrawOptions options;
  options.focus = op.name;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = draw(seed, options);
    const auto failure = first_failure(recipe_of(program), checks(seed));
    if (!failure) continue;
    const Shrunk shrunk = shrink(program, *failure);
    INFO(failure->check << ": " << failure->what << "\n" << as_cpp(shrunk.program, {}));
    CHECK(calls_in(shrunk.program.steps) <= 4);  // the call, and those through which its error shows
    CHECK(ops_in(shrunk.program.steps).count(op.name) == 1);
    return shrunk;
  }
  FAIL("nothing was found");
  return {};
}
}  // namespace

TEST_CASE("tapes: a wrong tile is found, and shrunk to its call") {
  CHECK(found(wrong_tile(), checks_for).failure.what != "");
}

TEST_CASE("tapes: a wrong gradient is found by finite differences, and shrunk") {
  const auto by_differences = [](std::uint64_t /*seed*/) { return std::vector<Check>{finite_differences()}; };
  CHECK(found(wrong_gradient(), by_differences).failure.check == "finite differences");
}

TEST_CASE("tapes: an op that reads what it has overwritten is found, and shrunk") {
  CHECK(found(wrong_overwrite(), checks_for).failure.what != "");
}
