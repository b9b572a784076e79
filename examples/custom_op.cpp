// An op of one's own, through the same row that the library's ops have: used from C++, checked, differentiated twice,
// and called from a definition.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>

using namespace xtape;

namespace {

template <class T>
TileFunction tile_of(double limit) {
  return [limit = static_cast<T>(limit)](const Tile& tile) {
    const T* x = static_cast<const T*>(tile.in[0]);
    T* y = static_cast<T*>(tile.out[0]);
    for (std::int64_t i = 0; i < tile.count; ++i) y[i] = limit * std::tanh(x[i] / limit);
  };
}

const Op& soft_clip_op() {
  static const Op entry = [] {
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
      return call.dtype(0) == Dtype::float32 ? tile_of<float>(call.number("limit"))
                                             : tile_of<double>(call.number("limit"));
    };
    // dy/dx = 1 - (y / limit)^2
    op.gradient = [](const GradientCall& call) {
      const double limit = call.attributes().get<double>("limit");
      return Vars{call.cotangent() * (1 - square(call.outputs[0] / limit))};
    };
    // The meaning in simpler ops: what the fast path is compared with.
    op.expand = [](const ExpandCall& call) {
      const double limit = call.attributes().get<double>("limit");
      return Vars{limit * tanh(call.inputs[0] / limit)};
    };
    op.lowering.overwrites = {0};
    return op;
  }();
  return entry;
}

// An Argument is a Var that notes from where it is handed over, so that errors name the caller's line.
Var soft_clip(const Argument& x, double limit) {
  return apply(soft_clip_op(), {x}, {{"limit", limit}}, x.caller())[0];
}

const char* const clipping = R"json({
  "xtape": 2, "name": "clipping", "hyper": {"bound": 2},
  "model": {"functions": {"clip": {"inputs": {"x": "float [n]"}, "result": "soft_clip(x, limit=bound)"}}}
})json";

bool say(const char* what, bool right) {
  std::cout << what << ": " << (right ? "yes" : "NO") << '\n';
  return right;
}

}  // namespace

int main() {
  const xt::xarray<double> points = {-3.0, -0.5, 0.0, 0.7, 9.0};

  Tape tape;
  const Var x = tape.input("x", {5}, Dtype::float64);
  const Var y = soft_clip(x, 2);
  Player player(tape, {y});
  player.play({{x, points}});
  std::cout << tape << player.value<double>(y)(4) << " is what 9 becomes\n";
  bool right = say("within the limit", std::fabs(player.value<double>(y)(4)) < 2);
  // `value` plays by the reference path, which replaces ops by their expansions.
  right &= say("as its expansion", std::fabs(value<double>(y, {{x, points}})(3) - player.value<double>(y)(3)) < 1e-12);

  const auto function = [](const Vars& vars) { return Vars{soft_clip(vars[0], 2)}; };
  GradcheckOptions second;
  second.second = true;
  right &= say("gradient", gradcheck(function, {points}).passed);
  right &= say("second gradient", gradcheck(function, {points}, second).passed);

  OpTable table = builtin_ops();
  table.add(soft_clip_op());
  ModelOptions options;
  options.ops = &table;
  options.dtype = Dtype::float64;
  Model model = Model::parse(clipping, options);
  const Store results = model.play("clip", {{"x", points}});
  right &= say("called from a definition", results.at("clip").as<double>()[4] == player.value<double>(y)(4));
  return right ? 0 : 1;
}
