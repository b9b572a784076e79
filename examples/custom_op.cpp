// Defines a custom op with the same Op struct as the built-in ops. Uses it from C++, checks its gradients,
// differentiates it twice, and calls it from a definition.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

template <class T>
TileFunction tile_of(const KernelCall& call) {
  return [limit = static_cast<T>(call.number("limit"))](const Tile& tile) {
    for (std::int64_t i = 0; i < tile.count; ++i)
      static_cast<T*>(tile.out[0])[i] = limit * std::tanh(static_cast<const T*>(tile.in[0])[i] / limit);
  };
}

const Op soft_clip_op = [] {
  Op op;
  op.name = "soft_clip";
  op.doc = "Keeps every element within (-limit, limit), smoothly: limit * tanh(x / limit).";
  op.inputs = {{"x", Accept::floating, Arity::one}};
  op.attributes = {{"limit", AttributeType::number, "The bound; positive.", 1.0}};
  op.shape = [](const OpCall& call) {
    if (call.number("limit") <= 0) throw Error("soft_clip: limit must be positive");
    return std::vector<ValueType>{call.inputs[0]};
  };
  op.lowering.tile = [](const KernelCall& call) {
    return call.dtype(0) == Dtype::float32 ? tile_of<float>(call) : tile_of<double>(call);
  };
  op.gradient = [](const GradientCall& call) {  // dy/dx = 1 - (y / limit)^2
    return Vars{call.cotangent() * (1 - square(call.outputs[0] / call.number("limit")))};
  };
  return op;
}();

// An Argument is a Var that also records the line of its caller, so that errors name this line.
Var soft_clip(const Argument& x, double limit) {
  return apply(soft_clip_op, {x}, {{"limit", limit}}, x.caller())[0];
}

int main() try {
  const std::vector<double> points = {-3.0, -0.5, 0.0, 0.7, 9.0};
  Compiled clip([](Var x) { return soft_clip(x, 2); }, {}, Tape(Dtype::float64));
  std::cout << "9 becomes " << clip({points})[0](4) << '\n';
  GradcheckOptions second;
  second.second = true;
  const auto report = gradcheck([](const Vars& x) { return Vars{soft_clip(x[0], 2)}; }, {points}, second);
  std::cout << "error of the second gradient: " << report.worst << '\n';

  OpTable table = builtin_ops();
  table.add(soft_clip_op);
  ModelOptions options;
  options.ops = &table;
  options.dtype = Dtype::float64;
  Model model = Model::parse(R"json({"xtape": 2, "name": "clipping", "model": {"functions": {
      "clip": {"inputs": {"x": "float [n]"}, "result": "soft_clip(x, limit=2)"}}}})json",
                             options);
  const Store results = model.play("clip", {{"x", points}});
  std::cout << "9 becomes " << results.at("clip")(4) << " in a definition\n";
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
