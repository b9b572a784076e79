// The layers of models/blocks/recurrent.json against PyTorch's and Keras's (recurrent.py): outputs, last states, and
// the gradients of weights, inputs and first states, on rows of different lengths.
#include "fixture.hpp"
#include "source_root.hpp"

using namespace xtape;
using test::numbers;
using test::worst;

namespace {
/// A kind of layer, as a part says it, and how many states it has.
struct Kind {
  std::string name;
  std::string part;
  bool has_memory = false;
};

/// One layer, `layer`, that goes one way.
const std::string one_way = R"json({
  "xtape": 2,
  "name": "layer",
  "use": ["blocks/recurrent.json"],
  "model": {
    "modules": {"layer": {KIND, "units": 4, "in": 3}},
    "functions": {
      "all": {
        "inputs": {"x": "float [n, t, 3]", STATES, "lengths": "int [n]"},
        "do": ["a = scan(layer, layer.input(x), init=(BEFORE[0]), valid=iota(t) < lengths[:, none])"],
        "result": {"ys": "a[0]", "last_h": "a[1][none]", "last_c": "a[-1][none]"}
      }
    }
  }
})json";

/// Two layers in both directions, `forward` and `backward`.
const std::string both_ways = R"json({
  "xtape": 2,
  "name": "layers",
  "use": ["blocks/recurrent.json"],
  "model": {
    "modules": {
      "forward": {KIND, "units": 4, "in": "(3, 8)[index]", "repeat": 2},
      "backward": {KIND, "units": 4, "in": "(3, 8)[index]", "repeat": 2}
    },
    "functions": {
      "all": {
        "inputs": {"x": "float [n, t, 3]", STATES, "lengths": "int [n]"},
        "do": [
          "valid = iota(t) < lengths[:, none]",
          "p = scan(forward[0], forward[0].input(x), init=(BEFORE[0]), valid=valid)",
          "q = scan(backward[0], backward[0].input(x), init=(BEFORE[1]), valid=valid, reverse=true)",
          "x = concat(p[0], q[0], axis=2)",
          "r = scan(forward[1], forward[1].input(x), init=(BEFORE[2]), valid=valid)",
          "s = scan(backward[1], backward[1].input(x), init=(BEFORE[3]), valid=valid, reverse=true)"
        ],
        "result": {
          "ys": "concat(r[0], s[0], axis=2)",
          "last_h": "stack(p[1], q[1], r[1], s[1])",
          "last_c": "stack(p[-1], q[-1], r[-1], s[-1])"
        }
      }
    }
  }
})json";

/// The definition for layers of `kind`: those without memory have one state, h, which is last_c as well.
std::string of_kind(const Kind& kind, std::string text) {
  const auto replace = [&](const std::string& name, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), with);
  };
  const std::string h = R"("h": "float [layers, n, 4]")";
  replace("KIND", kind.part);
  replace("STATES", kind.has_memory ? h + R"(, "c": "float [layers, n, 4]")" : h);
  for (const std::string i : {"[0]", "[1]", "[2]", "[3]"})
    replace("BEFORE" + i, "h" + i + (kind.has_memory ? ", c" + i : ""));
  return text;
}

/// What the fixture holds of one case, without the case's name.
Store case_of(const Store& fixture, const std::string& name) {
  Store found;
  for (const Store::Entry& entry : fixture)
    if (entry.name.rfind(name + ".", 0) == 0) found.add(entry.name.substr(name.size() + 1), Array(entry.value));
  return found;
}

void check(const Kind& kind, bool is_both, const PlayerOptions& options) {
  const std::string name = kind.name + (is_both ? ".both_ways" : ".one_way");
  CAPTURE(name);
  const Store expected = case_of(test::golden("recurrent.safetensors"), name);
  ModelOptions made;
  made.dtype = Dtype::float64;
  made.initialise = false;
  const Model model =
      Model::parse(of_kind(kind, is_both ? both_ways : one_way), made, source_root() + "/models/layers.json");
  test::put_weights(model, expected);

  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "all", {{"n", 3}, {"t", 5}, {"layers", is_both ? 4 : 1}});
  NamedVars results;
  for (const auto& [name, var] : model.record(tape, "all", inputs))
    if (kind.has_memory || name != "last_c") results.add(name, var);
  Var total = tape.constant(0, Dtype::float64);
  for (const auto& [result, var] : results) total = total + sum(var * tape.constant(expected.at("by." + result)));
  NamedVars by = model.weights(tape);
  std::vector<Feed> feeds;
  for (const auto& input : inputs) {
    feeds.emplace_back(input.value, expected.at(input.name));
    if (input.name != "lengths") by.add(input.name, input.value);
  }
  Vars outputs;
  for (const auto& each : by) outputs.push_back(each.value);
  outputs = grad(total, outputs, {.materialize_grads = true});
  for (const auto& each : results) outputs.push_back(each.value);

  Player player(tape, outputs, options);
  player.play(feeds);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool is_weight = i < model.weights().size();
    const std::string what = is_weight       ? "grad." + by[i].name
                             : i < by.size() ? "input_grad." + by[i].name
                                             : results[i - by.size()].name;
    CAPTURE(what);
    CHECK(worst(numbers(player.view(outputs[i])), numbers(expected.at(what))) < 1e-13);
  }
}

void check_every_way(const Kind& kind, bool is_both) {
  check(kind, is_both, {});
  check(kind, is_both, test::by_reference());
}
}  // namespace

TEST_CASE("recurrent layers: PyTorch's outputs, last states and gradients, one layer, and two in both directions") {
  for (const bool is_both : {false, true}) {
    check_every_way({"torch.rnn", R"("block": "rnn_cell")"}, is_both);
    check_every_way({"torch.lstm", R"("block": "lstm_cell")", true}, is_both);
    check_every_way({"torch.gru", R"("block": "gru_cell")"}, is_both);
  }
}

TEST_CASE("recurrent layers: Keras's, with a mask") {
  const std::string stored = R"(, "matrix": "dense")";
  const std::string one_bias = stored + R"(, "recurrent_bias": false)";
  const std::string order = R"(, "order": "'z_r_n'")";
  check_every_way({"keras.rnn", R"("block": "rnn_cell")" + one_bias}, false);
  check_every_way({"keras.lstm", R"("block": "lstm_cell")" + one_bias, true}, false);
  check_every_way({"keras.gru", R"("block": "gru_cell")" + stored + order}, false);
  check_every_way({"keras.gru_reset_before", R"("block": "gru_cell", "reset_after": false)" + one_bias + order}, false);
}
