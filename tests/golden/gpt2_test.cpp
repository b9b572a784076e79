// models/gpt2.json against the GPT-2 of gpt2.py: logits, every gradient, and ten steps of AdamW.
#include "fixture.hpp"
#include "source_root.hpp"

using namespace xtape;
using test::golden;
using test::numbers;
using test::put_weights;
using test::Recorded;

namespace {
const NamedSizes sizes = {{"b", 3}, {"t", 12}};

const Store& gpt2_fixture() {
  static const Store arrays = golden("gpt2.safetensors");
  return arrays;
}

/// The largest difference, relative to the largest value expected.
double error_of(const ArrayView& found, const ArrayView& expected) {
  REQUIRE(found.shape() == expected.shape());
  const std::vector<double> a = numbers(found);
  const std::vector<double> b = numbers(expected);
  double worst = 0;
  double scale = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::isnan(a[i]) ? INFINITY : std::fmax(worst, std::fabs(a[i] - b[i]));
    scale = std::fmax(scale, std::fabs(b[i]));
  }
  return worst / scale;
}

Model load_model(Dtype dtype) {
  ModelOptions options;
  options.hyper = {{"vocab_size", "31"}, {"n_positions", "12"}, {"n_embd", "16"},
                   {"n_layer", "2"},     {"n_head", "2"},       {"dropout_rate", "0.0"}};
  options.dtype = dtype;
  options.initialise = false;
  Model model = Model::load(source_root() + "/models/gpt2.json", options);
  put_weights(model, gpt2_fixture());
  return model;
}

void compare_gradients(Dtype dtype, const PlayerOptions& options, double tolerance) {
  const Model model = load_model(dtype);
  const Recorded recorded(model, gpt2_fixture(), sizes);
  Player player(recorded.tape, recorded.outputs(), options);
  player.play(recorded.feeds);
  const double loss = numbers(gpt2_fixture().at("loss"))[0];
  CHECK(std::fabs(player.scalar(recorded.loss) - loss) < tolerance * loss);
  for (std::size_t i = 0; i < recorded.weights.size(); ++i) {
    CAPTURE(recorded.weights[i].name);
    CHECK(error_of(player.view(recorded.gradients[i]), gpt2_fixture().at("grad." + recorded.weights[i].name)) <
          tolerance);
  }
}

}  // namespace

TEST_CASE("GPT-2: the weights have the published names, and no others") {
  const Model model = load_model(Dtype::float64);
  CHECK(model.weights().size() == 2 + 2 * 12 + 2);
}

TEST_CASE("GPT-2: logits are PyTorch's") {
  for (const auto& [dtype, tolerance] : {std::pair(Dtype::float64, 1e-12), std::pair(Dtype::float32, 1e-5)}) {
    Model model = load_model(dtype);
    const auto function = model.player("logits", Mode::eval, sizes);
    function->player.play({{function->inputs.at("tokens"), gpt2_fixture().at("tokens")}});
    CHECK(error_of(function->player.view(function->results[0].value), gpt2_fixture().at("logits")) < tolerance);
  }
}

TEST_CASE("GPT-2: loss and every gradient are PyTorch's, float64") {
  compare_gradients(Dtype::float64, {}, 1e-11);
  compare_gradients(Dtype::float64, test::by_reference(), 1e-11);
}

TEST_CASE("GPT-2: loss and every gradient are PyTorch's, float32") {
  compare_gradients(Dtype::float32, {}, 2e-5);
  compare_gradients(Dtype::float32, test::by_reference(), 2e-5);
}

TEST_CASE("GPT-2: ten losses of AdamW are PyTorch's") {
  const Model model = load_model(Dtype::float64);
  const Recorded recorded(model, gpt2_fixture(), sizes);
  Player player(recorded.tape, recorded.outputs());
  OptimizerOptions options;
  options.beta2 = 0.95;
  options.weight_decay = 0.1;
  Optimizer optimizer(model.weights(), options);
  const std::vector<double> losses = numbers(gpt2_fixture().at("losses"));
  REQUIRE(losses.size() == 10);
  for (double expected : losses) {
    player.play(recorded.feeds);
    CHECK(std::fabs(player.scalar(recorded.loss) - expected) < 1e-10);
    std::vector<ArrayView> views;
    for (const Var& gradient : recorded.gradients) views.push_back(player.view(gradient));
    optimizer.update(views, 1e-2, 1, 1.0);
  }
}
