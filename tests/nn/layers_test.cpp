// The layers of namespace nn have the parameters, the initial values and the results of the blocks of models/blocks.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>

#include "error_of.hpp"
#include "same_bits.hpp"
#include "source_root.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;
using test::error_of;

namespace {
/// Numbers that are neither small integers nor symmetric.
Array numbers(const Shape& shape) {
  Array made(Dtype::float32, shape);
  for (std::int64_t i = 0; i < made.count(); ++i)
    made.as<float>()[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + 0.3));
  return made;
}
Array indices(const Shape& shape, std::int64_t below) {
  Array made(Dtype::int64, shape);
  for (std::int64_t i = 0; i < made.count(); ++i) made.as<std::int64_t>()[i] = i * i % below;
  return made;
}

/// A model with the module `layer` and a function of x.
struct Defined {
  std::string input = "float [b, t, n]", layer, others, result = "layer(x)";
  std::vector<std::string> lines = {};
};

Model model_of(const Defined& defined) {
  std::string lines;
  for (const std::string& line : defined.lines) lines += (lines.empty() ? "\"" : ", \"") + line + "\"";
  ModelOptions options;
  options.seed = 5;
  return Model::parse(R"({"xtape": 2, "name": "one",
    "use": ["blocks/linear.json", "blocks/norm.json", "blocks/convolution.json", "blocks/recurrent.json",
            "blocks/attention.json", "blocks/positions.json"],
    "model": {"modules": {"layer": )" +
                          defined.layer + defined.others + R"(},
      "functions": {"f": {"inputs": {"x": ")" +
                          defined.input + R"("}, "do": [)" + lines + R"(],
        "result": {"y": ")" +
                          defined.result + R"("}}}}})",
                      options, source_root() + "/models/one.json");
}

using Program = std::function<Var(const Parameters& p, const Var& x)>;

Array played(const Tape& tape, const Var& x, const Var& y, const Array& values) {
  Player player(tape, {y});
  player.play({{x, values}});
  return Array(player.view(y));
}

/// Checks that `program` makes the model's weights, with the same bits, and that it computes what the definition does
/// with other weights that it finds by name.
void check_layer(const Defined& defined, const Array& values, const Program& program, Mode mode = Mode::eval) {
  CAPTURE(defined.layer);
  Model model = model_of(defined);
  Tape first(mode);
  const Parameters made(first, 5);
  program(made, first.input("x", values.shape(), values.dtype()));
  std::vector<std::string> names = made.store().names(), expected = model.weights().names();
  std::sort(names.begin(), names.end());
  std::sort(expected.begin(), expected.end());
  REQUIRE(names == expected);
  for (const auto& weight : model.weights()) {
    CAPTURE(weight.name);
    CHECK(same_bits(made.store().at(weight.name), weight.value));
    Array changed(weight.value);  // so that each of them shows
    for (std::int64_t i = 0; i < changed.count(); ++i)
      changed.as<float>()[i] += 0.1F * std::cos(static_cast<float>(i) + static_cast<float>(weight.name.size()));
  }

  Tape tape(mode);
  const Parameters p(tape, model.weights());
  const Var x = tape.input("x", values.shape(), values.dtype());
  const Array y = played(tape, x, program(p, x), values);
  const Store wanted = model.play("f", {{"x", values}}, mode);
  CHECK(same_bits(y, wanted.at("y")));
  CHECK(y.count() > 0);
}

Defined of(const std::string& layer) {
  Defined defined;
  defined.layer = layer;
  return defined;
}
Defined image(const std::string& layer) {
  Defined defined = of(layer);
  defined.input = "float [b, c, h, w]";
  return defined;
}
/// A recurrent layer of 3 inputs and 4 units.
Defined recurrent(const std::string& cell, const std::string& states, const std::string& targets,
                  const std::string& more = "") {
  Defined defined = of("{\"block\": \"" + cell + "\", \"in\": 3, \"units\": 4" + more + "}");
  defined.input = "float [b, t, 3]";
  defined.lines = {targets + " = scan(layer, layer.input(x), init=" + states + ")"};
  defined.result = "concat((ys, h[:, none]), axis=1)";
  return defined;
}
Var all_of(const nn::Recurrence& run) {
  return concat({run.outputs, expand_dims(run.states[0], 1)}, 1);
}
}  // namespace

TEST_CASE("linear, dense and embedding are the blocks of these names") {
  check_layer(of(R"({"block": "linear", "in": 6, "out": 5})"), numbers({2, 3, 6}),
              [](const Parameters& p, const Var& x) { return nn::linear(p / "layer", x, 5); });
  check_layer(of(R"({"block": "linear", "in": 6, "out": 5, "with_bias": false, "init": "normal", "std": 0.3})"),
              numbers({2, 3, 6}), [](const Parameters& p, const Var& x) {
                return nn::linear(p / "layer", x, 5, false, init::normal(0.3));
              });
  check_layer(of(R"({"block": "dense", "in": 6, "out": 5})"), numbers({2, 3, 6}),
              [](const Parameters& p, const Var& x) { return nn::dense(p / "layer", x, 5); });
  Defined tokens = of(R"({"block": "embedding", "rows": 11, "width": 4})");
  tokens.input = "int [b, t]";
  check_layer(tokens, indices({3, 5}, 11),
              [](const Parameters& p, const Var& x) { return nn::embedding(p / "layer", x, 11, 4); });
}

TEST_CASE("norms are the blocks of these names") {
  check_layer(of(R"({"block": "layer_norm", "width": 6})"), numbers({2, 3, 6}),
              [](const Parameters& p, const Var& x) { return nn::layer_norm(p / "layer", x); });
  check_layer(of(R"({"block": "layer_norm", "width": 6, "with_bias": false, "epsilon": 0.1})"), numbers({2, 3, 6}),
              [](const Parameters& p, const Var& x) { return nn::layer_norm(p / "layer", x, 0.1, false); });
  check_layer(of(R"({"block": "rms_norm", "width": 6})"), numbers({2, 3, 6}),
              [](const Parameters& p, const Var& x) { return nn::rms_norm(p / "layer", x); });
  for (const Mode mode : {Mode::eval, Mode::train})
    check_layer(
        image(R"({"block": "batch_norm", "channels": 3})"), numbers({4, 3, 5, 2}),
        [](const Parameters& p, const Var& x) { return nn::batch_norm(p / "layer", x); }, mode);
}

TEST_CASE("batch_norm updates its statistics as the block does") {
  Model model = model_of(image(R"({"block": "batch_norm", "channels": 3, "momentum": 0.25})"));
  const Array values = numbers({4, 3, 5, 2});
  Tape defined(Mode::train), tape(Mode::train);
  RecordedLines lines;
  const NamedVars inputs = model.inputs(defined, "f", {{"b", 4}, {"c", 3}, {"h", 5}, {"w", 2}});
  model.record(defined, "f", inputs, &lines);
  const Var new_mean = lines.updates.at("layer.running_mean"), new_variance = lines.updates.at("layer.running_var");
  Player expected(defined, {new_mean, new_variance});
  expected.play({{inputs[0].value, values}});

  Parameters p(tape, 1);
  const Var x = tape.input("x", {4, 3, 5, 2});
  nn::batch_norm(p / "layer", x, 1e-5, 0.25);
  CHECK(p.vars().names() == std::vector<std::string>{"layer.weight", "layer.bias"});
  Vars outputs;
  for (const auto& update : p.updates()) outputs.push_back(update.value);
  Player player(tape, outputs);
  player.play({{x, values}});
  p.update(player);
  CHECK(same_bits(p.store().at("layer.running_mean"), expected.view(new_mean)));
  CHECK(same_bits(p.store().at("layer.running_var"), expected.view(new_variance)));
  CHECK(p.store().at("layer.running_mean")(0) != 0);
}

TEST_CASE("convolutions are the blocks of these names") {
  Defined line = of(R"({"block": "convolution_1d", "in": 4, "out": 6, "stride": 2, "padding": 1, "groups": 2})");
  line.input = "float [b, c, n]";
  check_layer(line, numbers({2, 4, 9}),
              [](const Parameters& p, const Var& x) { return nn::conv1d(p / "layer", x, 6, 3, 2, 1, 1, 2); });
  check_layer(image(R"({"block": "convolution_2d", "in": 3, "out": 5, "size": 3, "padding": 1})"),
              numbers({2, 3, 6, 7}),
              [](const Parameters& p, const Var& x) { return nn::conv2d(p / "layer", x, 5, 3, 1, 1); });
  check_layer(image(R"({"block": "convolution_2d", "in": 3, "out": 5, "size": 2, "dilation": 2, "with_bias": false})"),
              numbers({2, 3, 6, 7}),
              [](const Parameters& p, const Var& x) { return nn::conv2d(p / "layer", x, 5, 2, 1, 0, 2, 1, false); });
}

TEST_CASE("transposed convolutions are the ops with parameters of their own") {
  Tape tape;
  const Parameters p(tape, 1);
  const Var x = tape.input("x", {2, 4, 5, 6}), line = tape.input("line", {2, 4, 5});
  const Var y = nn::conv_transpose2d(p / "up", x, 6, {2, 3}, 2, 0, 1, 2);
  CHECK(p.store().at("up.weight").shape() == Shape{4, 3, 2, 3});
  CHECK(p.store().at("up.bias").shape() == Shape{6});
  CHECK(y.shape() == conv_transpose2d(x, p.vars().at("up.weight"), p.vars().at("up.bias"), 2, 0, 1, 2).shape());
  CHECK(nn::conv_transpose1d(p / "line", line, 3, 4, 2).shape() == Shape{2, 3, 12});
  // Each output sums over 2 of the channels and the 6 elements of a window.
  Array drawn(Dtype::float32, {4, 3, 2, 3});
  initialise(drawn, init::he_normal(1, 12), 1, "up.weight");
  CHECK(same_bits(drawn, p.store().at("up.weight")));
}

TEST_CASE("recurrent layers are scans of the cells of these names") {
  const Array x = numbers({2, 5, 3});
  check_layer(recurrent("rnn_cell", "zeros((b, 4))", "ys, h"), x,
              [](const Parameters& p, const Var& v) { return all_of(nn::rnn(p / "layer", v, 4)); });
  check_layer(recurrent("gru_cell", "zeros((b, 4))", "ys, h"), x,
              [](const Parameters& p, const Var& v) { return all_of(nn::gru(p / "layer", v, 4)); });
  check_layer(recurrent("lstm_cell", "(zeros((b, 4)), zeros((b, 4)))", "ys, h, c"), x,
              [](const Parameters& p, const Var& v) { return all_of(nn::lstm(p / "layer", v, 4)); });
  check_layer(recurrent("lstm_cell", "(zeros((b, 4)), zeros((b, 4)))", "ys, h, c",
                        R"(, "forget_bias": 1, "recurrent_bias": false)"),
              x, [](const Parameters& p, const Var& v) {
                nn::RecurrentOptions options;
                options.forget_bias = 1;
                options.recurrent_bias = false;
                return all_of(nn::lstm(p / "layer", v, 4, options));
              });
}

TEST_CASE("a bidirectional layer is two layers, one in reverse") {
  Tape tape;
  const Parameters p(tape, 1);
  const Var x = tape.input("x", {2, 5, 3}), lengths = tape.input("lengths", {2, 1}, Dtype::int64);
  nn::RecurrentOptions options;
  options.valid = iota(tape, {1, 5}, 1) < lengths;
  options.bidirectional = true;
  const Var first = ones(tape, {2, 4}), other = zeros(tape, {2, 4});
  options.init = {first, other, other, first};
  const nn::Recurrence both = nn::lstm(p / "rnn", x, 4, options);
  options.bidirectional = false;
  options.init = {first, other};
  const nn::Recurrence forward = nn::lstm(p / "rnn" / "forward", x, 4, options);
  options.reverse = true;
  options.init = {other, first};
  const nn::Recurrence backward = nn::lstm(p / "rnn" / "backward", x, 4, options);
  REQUIRE(both.states.size() == 4);
  const Var expected = concat({forward.outputs, backward.outputs}, 2);
  Player player(tape, {both.outputs, expected, both.states[3], backward.states[1]});
  player.play({{x, numbers({2, 5, 3})}, {lengths, {5, 2}}});
  CHECK(same_bits(player.view(both.outputs), player.view(expected)));
  CHECK(same_bits(player.view(both.states[3]), player.view(backward.states[1])));
  CHECK(player.view(both.outputs)(1, 3, 0) == 0);  // not valid
  CHECK(p.store().size() == 8);
}

TEST_CASE("multi_head_attention is the block multi_head, for itself and for others, causal and masked") {
  Defined itself = of(R"({"block": "multi_head", "d_model": 6, "heads": 2})");
  itself.result = "layer(x, x, x, causal_mask(x[:, :, 0]))";
  check_layer(itself, numbers({2, 5, 6}), [](const Parameters& p, const Var& x) {
    nn::AttentionOptions options;
    options.causal = true;
    return nn::multi_head_attention(p / "layer", x, 2, options);
  });
  Defined cross = of(R"({"block": "multi_head", "d_model": 6, "heads": 3, "bias": false})");
  cross.result = "layer(x[:, :2], x, flip(x, 1), (x[:, :, 0] > 0.5)[:, none, none])";
  check_layer(cross, numbers({2, 5, 6}), [](const Parameters& p, const Var& x) {
    nn::AttentionOptions options;
    options.mask = expand_dims(expand_dims(x.at(all, all, 0) > 0.5, 1), 1);
    options.with_bias = false;
    return nn::multi_head_attention(p / "layer", x.at(all, Slice(0, 2)), x, flip(x, 1), 3, options);
  });
}

TEST_CASE("sinusoidal_positions are the block sinusoidal") {
  Defined positions = of(R"({"block": "embedding", "rows": 11, "width": 6})");
  positions.others = R"(, "at": {"block": "sinusoidal", "width": 6})";
  positions.input = "int [b, t]";
  positions.result = "layer(x) + at(x)";
  check_layer(positions, indices({2, 7}, 11), [](const Parameters& p, const Var& x) {
    return nn::embedding(p / "layer", x, 11, 6) + nn::sinusoidal_positions(x, 6);
  });
}

TEST_CASE("a Transformer of a few lines loads the weights of models/transformer.json") {
  for (const bool norm_first : {false, true}) {
    ModelOptions options;
    options.hyper = {{"d_model", "8"},
                     {"d_ff", "12"},
                     {"heads", "2"},
                     {"encoder_layers", "2"},
                     {"decoder_layers", "2"},
                     {"source_vocab_size", "11"},
                     {"norm_first", norm_first ? "true" : "false"}};
    Model model = Model::load(source_root() + "/models/transformer.json", options);
    for (const auto& weight : model.weights()) {
      Array changed(weight.value);
      if (changed.shape().size() == 1)
        for (std::int64_t i = 0; i < changed.count(); ++i) changed.as<float>()[i] += 0.1F * static_cast<float>(i);
    }
    const Array source_tokens = indices({2, 5}, 11), tokens_so_far = indices({2, 4}, 10);

    Tape tape(Mode::eval);
    const Parameters p(tape, model.weights());
    nn::TransformerOptions layer;
    layer.heads = 2;
    layer.d_ff = 12;
    layer.norm_first = norm_first;
    const Var source = tape.input("source", {2, 5}, Dtype::int64), tokens = tape.input("tokens", {2, 4}, Dtype::int64);
    const Var padded = expand_dims(expand_dims(source == 0, 1), 1);
    const auto embed = [&](const Var& of) {
      return nn::embedding(p / "source_embedding", of, 11, 8) * std::sqrt(8.0) + nn::sinusoidal_positions(of, 8);
    };
    Var x = embed(source);
    for (int i = 0; i < 2; ++i) x = nn::transformer_encoder_layer(p / "encoder" / i, x, padded, layer);
    if (norm_first) x = nn::layer_norm(p / "encoder_norm", x, 1e-6);
    Var y = embed(tokens);
    for (int i = 0; i < 2; ++i) y = nn::transformer_decoder_layer(p / "decoder" / i, y, x, padded, layer);
    if (norm_first) y = nn::layer_norm(p / "decoder_norm", y, 1e-6);
    const Var logits = einsum("btd,vd->btv", y, p.vars().at("source_embedding.weight"));
    CHECK(p.vars().size() == model.weights().size());

    Player player(tape, {logits});
    player.play({{source, source_tokens}, {tokens, tokens_so_far}});
    const Store wanted = model.play("logits", {{"source", source_tokens}, {"tokens", tokens_so_far}});
    CHECK(same_bits(player.view(logits), wanted.at("logits")));
  }
}

TEST_CASE("group_norm and feed_forward are their ops with parameters") {
  Tape tape(Mode::eval);
  Parameters p(tape, 1);
  const Var x = tape.input("x", {2, 4, 3}), v = tape.input("v", {2, 4});
  const Var y = nn::group_norm(p / "norm", x, 2, 0.1);
  p.store().at("norm.weight").as<float>()[2] = 3;
  p.store().at("norm.bias").as<float>()[1] = 0.5;
  const Var z = group_norm(x, 2, p.vars().at("norm.weight"), p.vars().at("norm.bias"), 0.1);
  const Var inner = nn::feed_forward(p / "ffn", v, 7, 0.5, [](const Var& h) { return gelu(h); });
  const auto at = [&](const char* name) { return p.vars().at(name); };
  const Var outer = einsum("bi,oi->bo", gelu(einsum("bi,oi->bo", v, at("ffn.linear1.weight")) + at("ffn.linear1.bias")),
                           at("ffn.linear2.weight")) +
                    at("ffn.linear2.bias");
  Player player(tape, {y, z, inner, outer});
  player.play({{x, numbers({2, 4, 3})}, {v, numbers({2, 4})}});
  CHECK(same_bits(player.view(y), player.view(z)));
  CHECK(same_bits(player.view(inner), player.view(outer)));
  CHECK(p.store().at("ffn.linear1.weight").shape() == Shape{7, 4});
}

TEST_CASE("an initialiser that scales with fans gets those of the layer") {
  Tape tape;
  const Parameters p(tape, 1);
  const Var x = tape.input("x", {2, 6});
  nn::linear(p / "of in", x, 50, true, init::he_normal());
  nn::linear(p / "given", x, 50, true, init::he_normal(1, 3));
  Array drawn(Dtype::float32, {50, 6});
  initialise(drawn, init::he_normal(1, 6), 1, "of in.weight");
  CHECK(same_bits(drawn, p.store().at("of in.weight")));
  initialise(drawn, init::he_normal(1, 3), 1, "given.weight");
  CHECK(same_bits(drawn, p.store().at("given.weight")));
}

TEST_CASE("nodes of a layer have its scope as their module, and the line of the program") {
  Tape tape;
  const Parameters p(tape, 1);
  const Var x = tape.input("x", {2, 4, 6});
  const int line = __LINE__ + 1;
  const Var y = nn::multi_head_attention(p / "h" / 0 / "attn", x, 2);
  const Site& site = y.node().site;
  CHECK(site.scope->path == "h.0.attn.output");
  CHECK(site.caller.line == line);
  const Var z = nn::lstm(p / "rnn", x, 3).outputs;
  CHECK(z.node().site.scope->path == "rnn");
  CHECK(tape.input("after", {1}).node().site.scope->path.empty());

  const int wrong = __LINE__ + 1;
  const std::string text = error_of([&] { nn::linear(p / "h" / 0 / "attn" / "query", x, 7); });
  CHECK(text.find("line " + std::to_string(wrong)) != std::string::npos);
  CHECK(text.find("'h.0.attn.query.weight' is float32 (6, 6) in the store, but asked for as float32 (7, 6)") !=
        std::string::npos);
}

TEST_CASE("errors of layers") {
  Tape tape;
  const Parameters p(tape, 1);
  const Var x = tape.input("x", {2, 4, 6});
  const auto text = [&](const std::function<void()>& call) { return error_of(call); };
  CHECK(text([&] { nn::multi_head_attention(p, x, 4); }).find("the heads must divide the width, 6, got 4") !=
        std::string::npos);
  CHECK(text([&] { nn::conv2d(p, x, 3, 3); }).find("takes [b, channels, h, w], got float32 (2, 4, 6)") !=
        std::string::npos);
  CHECK(text([&] { nn::conv1d(p, x, 3, 3, 1, 0, 1, 2); }).find("groups must divide the channels, 4 and 3, got 2") !=
        std::string::npos);
  CHECK(text([&] { nn::gru(p, x.at(0), 3); }).find("takes [b, t, in], got float32 (4, 6)") != std::string::npos);
  CHECK(text([&] { nn::gru(p, x, 0); }).find("at least one unit") != std::string::npos);
  nn::RecurrentOptions states;
  states.init = {zeros(tape, {2, 3})};
  CHECK(text([&] { nn::lstm(p, x, 3, states); }).find("needs 2 first states or none, got 1") != std::string::npos);
  states = {};
  states.bidirectional = states.reverse = true;
  CHECK(text([&] { nn::lstm(p, x, 3, states); }).find("reverse must be false") != std::string::npos);
  CHECK(text([&] { nn::sinusoidal_positions(x, 3); }).find("even width, got 3") != std::string::npos);
  CHECK(text([&] { nn::feed_forward(p, x, 3, 0, nullptr); }).find("the activation is empty") != std::string::npos);
  CHECK_THROWS_AS(nn::linear(p, x, -1), ShapeError);
  CHECK_THROWS_AS(nn::linear(p, tape.input("scalar", {}), 1), ShapeError);
  CHECK_THROWS_AS(nn::conv2d(p, tape.input("image", {1, 1, 2, 2}), 1, {1, 2, 3}), ShapeError);
  CHECK(p.store().empty());
}
