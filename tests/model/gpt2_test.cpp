// The definition of GPT-2: its size, its names, and what must hold of any causal model.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "definitions.hpp"
#include "source_root.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const std::string gpt2_file = source_root() + "/models/gpt2.json";

ModelOptions small(Dtype dtype = Dtype::float64) {
  ModelOptions options;
  options.dtype = dtype;
  options.seed = 5;
  options.hyper = {{"vocab_size", "11"}, {"n_positions", "8"}, {"n_embd", "12"},
                   {"n_layer", "2"},     {"n_head", "3"},      {"std", "0.3"}};
  return options;
}

using TokenRows = xt::xtensor<std::int64_t, 2>;

TokenRows tokens(std::int64_t b, std::int64_t t, std::int64_t seed = 1) {
  TokenRows made = TokenRows::from_shape({static_cast<std::size_t>(b), static_cast<std::size_t>(t)});
  for (std::size_t i = 0; i < made.size(); ++i)
    made.flat(i) = (static_cast<std::int64_t>(i) * 7 + seed * 3 + static_cast<std::int64_t>(i * i)) % 11;
  return made;
}

xt::xarray<double> gpt2_logits(const Model& model, const TokenRows& input) {
  return test::play(
      model, "logits",
      {{"b", static_cast<std::int64_t>(input.shape()[0])}, {"t", static_cast<std::int64_t>(input.shape()[1])}},
      {ArrayView(input)})[0];
}

double deviation(const Array& array) {
  const float* values = array.as<float>();
  double sum = 0;
  for (std::int64_t i = 0; i < array.count(); ++i) sum += static_cast<double>(values[i]) * values[i];
  return std::sqrt(sum / static_cast<double>(array.count()));
}

/// Loss and gradients of all weights, played with `passes`.
template <class T>
std::vector<xt::xarray<T>> loss_and_gradients(const Model& model, const Passes& passes, Mode mode) {
  Tape tape(mode);
  const NamedVars inputs = model.inputs(tape, "loss", {{"b", 2}, {"t", 6}});
  const Vars outputs = test::mean_loss_and_gradients(model, tape, inputs);
  PlayerOptions options;
  options.passes = passes;
  options.seed = 9;
  Player player(tape, outputs, options);
  TokenRows in = tokens(2, 6), targets = tokens(2, 6, 4);
  targets(1, 5) = -1;
  player.play({{inputs[0].value, in}, {inputs[1].value, targets}}, 2);
  std::vector<xt::xarray<T>> values;
  for (const Var& output : outputs) values.push_back(player.value<T>(output));
  return values;
}

template <class T>
void check_close(const std::vector<xt::xarray<T>>& a, const std::vector<xt::xarray<T>>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].shape() == b[i].shape());
    double scale = 0, worst = 0;
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      scale = std::max(scale, std::abs(static_cast<double>(b[i].flat(k))));
      worst = std::max(worst, std::abs(static_cast<double>(a[i].flat(k)) - static_cast<double>(b[i].flat(k))));
    }
    CHECK(worst <= tolerance * (1 + scale));
  }
}
}  // namespace

TEST_CASE("GPT-2 has the published number of parameters, names and layouts") {
  ModelOptions options;
  options.initialise = false;
  const Model model = Model::load(gpt2_file, options);
  CHECK(model.parameter_count() == 124439808);
  CHECK(model.weights().size() == 148);
  const auto shape = [&](const std::string& name) { return model.weights().at(name).shape(); };
  CHECK(shape("wte.weight") == Shape{50257, 768});
  CHECK(shape("wpe.weight") == Shape{1024, 768});
  CHECK(shape("h.0.ln_1.weight") == Shape{768});
  CHECK(shape("h.11.attn.c_attn.weight") == Shape{768, 2304});
  CHECK(shape("h.11.attn.c_attn.bias") == Shape{2304});
  CHECK(shape("h.3.attn.c_proj.weight") == Shape{768, 768});
  CHECK(shape("h.3.mlp.c_fc.weight") == Shape{768, 3072});
  CHECK(shape("h.3.mlp.c_proj.weight") == Shape{3072, 768});
  CHECK(shape("ln_f.bias") == Shape{768});
  CHECK(model.modules()[0].parameters == 124439808);
}

TEST_CASE("GPT-2 of every published size has the published number of parameters") {
  struct Size {
    const char *width, *layers, *heads;
    std::int64_t parameters;
    std::size_t weights;
  };
  for (const Size& size : {Size{"1024", "24", "16", 354823168, 292}, Size{"1280", "36", "20", 774030080, 436},
                           Size{"1600", "48", "25", 1557611200, 580}}) {
    CAPTURE(size.width);
    ModelOptions options;
    options.initialise = false;  // nothing is written to the weights, so that they take no memory
    options.hyper = {{"n_embd", size.width}, {"n_layer", size.layers}, {"n_head", size.heads}};
    const Model model = Model::load(gpt2_file, options);
    CHECK(model.parameter_count() == size.parameters);
    CHECK(model.weights().size() == size.weights);
    Tape tape(Mode::eval);
    const NamedVars gpt2_logits = model.record(tape, "logits", model.inputs(tape, "logits", {{"b", 1}, {"t", 1024}}));
    CHECK(gpt2_logits[0].value.shape() == Shape{1, 1024, 50257});
  }
}

TEST_CASE("without biases GPT-2 has none, and still records") {
  ModelOptions options = small();
  options.hyper.emplace_back("bias", "false");
  options.hyper.emplace_back("activation", "gelu");
  const Model model = Model::load(gpt2_file, options);
  for (const Store::Entry& entry : model.weights()) CHECK(entry.name.find("bias") == std::string::npos);
  CHECK(gpt2_logits(model, tokens(1, 3)).shape() == xt::xarray<double>::shape_type{1, 3, 11});
}

TEST_CASE("GPT-2's first weights: 0.02, and less where a layer adds to the residual stream") {
  ModelOptions options;
  options.hyper = {{"vocab_size", "500"}, {"n_embd", "96"}, {"n_layer", "3"}, {"n_head", "2"}, {"n_positions", "64"}};
  const Model model = Model::load(gpt2_file, options);
  CHECK(deviation(model.weights().at("wte.weight")) == doctest::Approx(0.02).epsilon(0.02));
  CHECK(deviation(model.weights().at("h.1.attn.c_attn.weight")) == doctest::Approx(0.02).epsilon(0.02));
  CHECK(deviation(model.weights().at("h.1.mlp.c_proj.weight")) == doctest::Approx(0.02 / std::sqrt(6.)).epsilon(0.02));
  CHECK(deviation(model.weights().at("h.2.attn.c_proj.weight")) == doctest::Approx(0.02 / std::sqrt(6.)).epsilon(0.03));
  CHECK(deviation(model.weights().at("h.2.ln_1.weight")) == 1);
  CHECK(deviation(model.weights().at("h.2.attn.c_attn.bias")) == 0);
}

TEST_CASE("the future changes nothing") {
  const Model model = Model::load(gpt2_file, small());
  TokenRows input = tokens(1, 7);
  const xt::xarray<double> before = gpt2_logits(model, input);
  input(0, 4) = (input(0, 4) + 5) % 11;
  const xt::xarray<double> after = gpt2_logits(model, input);
  for (std::size_t t = 0; t < 7; ++t)
    for (std::size_t v = 0; v < 11; ++v) {
      if (t < 4) CHECK(before(0, t, v) == after(0, t, v));
    }
  bool changed = false;
  for (std::size_t v = 0; v < 11; ++v) changed = changed || before(0, 4, v) != after(0, 4, v);
  CHECK(changed);
}

TEST_CASE("a row of a batch comes out as it does alone") {
  const Model model = Model::load(gpt2_file, small());
  const TokenRows input = tokens(3, 5);
  const xt::xarray<double> together = gpt2_logits(model, input);
  for (std::size_t row = 0; row < 3; ++row) {
    TokenRows alone = TokenRows::from_shape({1, 5});
    for (std::size_t t = 0; t < 5; ++t) alone(0, t) = input(row, t);
    const xt::xarray<double> single = gpt2_logits(model, alone);
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t v = 0; v < 11; ++v) CHECK(std::abs(single(0, t, v) - together(row, t, v)) < 1e-12);
  }
}

TEST_CASE("optimised playing agrees with the reference: float64 tightly, float32 to its width") {
  for (const Mode mode : {Mode::eval, Mode::train}) {
    const Model precise = Model::load(gpt2_file, small());
    const auto reference = loss_and_gradients<double>(precise, Passes::reference(), mode);
    check_close(loss_and_gradients<double>(precise, Passes(), mode), reference, 1e-12);
    const Model narrow = Model::load(gpt2_file, small(Dtype::float32));
    const auto narrow_reference = loss_and_gradients<float>(narrow, Passes::reference(), mode);
    check_close(loss_and_gradients<float>(narrow, Passes(), mode), narrow_reference, 2e-5);
    CHECK(std::abs(static_cast<double>(narrow_reference[0]()) - reference[0]()) < 1e-4);
  }
}

TEST_CASE("every pass can be switched off by itself") {
  const Model model = Model::load(gpt2_file, small());
  const auto reference = loss_and_gradients<double>(model, Passes::reference(), Mode::train);
  for (bool Passes::*pass : {&Passes::fuse, &Passes::fold, &Passes::common, &Passes::accumulate, &Passes::elementwise,
                             &Passes::views, &Passes::in_place, &Passes::reuse}) {
    Passes passes;
    passes.*pass = false;
    check_close(loss_and_gradients<double>(model, passes, Mode::train), reference, 1e-12);
  }
}

TEST_CASE("more tokens than positions are refused, with the line") {
  const Model model = Model::load(gpt2_file, small());
  Tape tape(Mode::eval);
  const std::string error = test::error_of([&] {
    model.record(tape, "logits", model.inputs(tape, "logits", {{"b", 1}, {"t", 9}}));
  });
  CHECK(error.find("models/gpt2.json, function 'logits', line ") != std::string::npos);
  CHECK(error.find("more tokens than n_positions") != std::string::npos);
  CHECK(error.find("\n    require(t <= n_positions") != std::string::npos);
}

TEST_CASE("heads that do not divide the width are refused, with the line") {
  ModelOptions options = small();
  options.hyper.emplace_back("n_head", "5");
  const std::string error = test::error_of([&] { Model::load(gpt2_file, options); });
  CHECK(error.find("hyper, line ") != std::string::npos);
}

TEST_CASE("GPT-2 with LoRA is GPT-2 until its B is trained, and the gradient reaches A and B") {
  const Model plain = Model::load(gpt2_file, small());
  ModelOptions options = small();
  options.hyper.insert(options.hyper.end(), {{"rank", "2"}, {"alpha", "4"}});
  const Model lora = Model::load(source_root() + "/models/gpt2_lora.json", options);
  CHECK(lora.weights().size() == plain.weights().size() + 2 * 2 * 4);
  CHECK(lora.weights().at("h.1.mlp.c_fc.lora_A").shape() == Shape{2, 12});
  CHECK(test::same(gpt2_logits(lora, tokens(2, 8)), gpt2_logits(plain, tokens(2, 8))));
  for (const Store::Entry& entry : lora.weights())
    if (entry.name.find("lora_B") != std::string::npos) {
      Array b(entry.value);
      for (std::int64_t i = 0; i < b.count(); ++i) b.as<double>()[i] = 0.2 * std::sin(static_cast<double>(i * i + 1));
    }
  // W + alpha / rank A' B' in place of W.
  Model merged = Model::load(gpt2_file, small());
  for (const Store::Entry& entry : lora.weights()) {
    const std::size_t at = entry.name.find("lora_A");
    if (at == std::string::npos) continue;
    const auto a = entry.value.to<double>(), b = lora.weights().at(entry.name.substr(0, at) + "lora_B").to<double>();
    Array weight = merged.weight(entry.name.substr(0, at) + "weight");
    for (std::size_t i = 0; i < a.shape()[1]; ++i)
      for (std::size_t k = 0; k < b.shape()[0]; ++k)
        for (std::size_t r = 0; r < 2; ++r) weight.as<double>()[i * b.shape()[0] + k] += 2 * a(r, i) * b(k, r);
  }
  CHECK(test::same(gpt2_logits(lora, tokens(2, 8)), gpt2_logits(merged, tokens(2, 8))));
  CHECK(!test::same(gpt2_logits(lora, tokens(2, 8)), gpt2_logits(plain, tokens(2, 8))));
  const auto gradients = loss_and_gradients<double>(lora, Passes(), Mode::eval);
  for (std::size_t i = 0; i < lora.weights().size(); ++i)
    if (lora.weights()[i].name.find("lora_") != std::string::npos) CHECK(xt::amax(xt::abs(gradients[i + 1]))() > 1e-9);
}

TEST_CASE("a model uses other memory for some of its weights") {
  Model model = Model::load(gpt2_file, small(Dtype::float32));
  const Array row = token_array({{1, 2, 3}});
  const Array before = model.play("logits", {{"tokens", row}}).at("logits");
  Store memory;
  memory.add("wte.weight", model.weights().at("wte.weight").clone());
  model.use_weights(memory);
  CHECK(model.weights().at("wte.weight").data() == memory.at("wte.weight").data());
  CHECK(model.play("logits", {{"tokens", row}}).at("logits").to<float>() == before.to<float>());
  memory.at("wte.weight").as<float>()[12] += 1;  // of token 1
  CHECK(model.play("logits", {{"tokens", row}}).at("logits").to<float>() != before.to<float>());
  CHECK_THROWS_AS(model.use_weights({{"wte.weight", Array(Dtype::float32, {11})}}), ShapeError);
  CHECK_THROWS_AS(model.use_weights({{"wte.weight", Array(Dtype::float64, {11, 12})}}), DtypeError);
  CHECK_THROWS_AS(model.use_weights({{"wtf.weight", Array(Dtype::float32, {11, 12})}}), Error);
  CHECK(model.weights().at("wte.weight").data() == memory.at("wte.weight").data());
}
