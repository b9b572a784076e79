// GPT-2 on padded rows against the same in TensorFlow (gpt2_padded.py).
#include "fixture.hpp"
#include "source_root.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/predict.hpp"

using namespace xtape;
using test::numbers;

namespace {
const NamedSizes padded_sizes = {{"b", 3}, {"t", 11}};

const Store& fixture() {
  static const Store arrays = test::golden("gpt2_padded.safetensors");
  return arrays;
}

Model loaded(const std::string& scale_words = "false") {
  ModelOptions options;
  options.dtype = Dtype::float64;
  options.initialise = false;
  options.hyper = {{"vocab_size", "29"}, {"n_positions", "14"}, {"n_embd", "16"},
                   {"n_layer", "2"},     {"n_head", "2"},       {"activation", "relu"},
                   {"epsilon", "1e-6"},  {"dropout_rate", "0"}, {"scale_words", scale_words}};
  Model model = Model::load(source_root() + "/models/padded_gpt2.json", options);
  test::put_weights(model, fixture());
  return model;
}

std::vector<double> padded_logits(Model& model) {
  const Store results = model.play("logits", {{"tokens", fixture().at("tokens")}});
  return numbers(results[0].value);
}
}  // namespace

TEST_CASE("padded GPT-2: logits are TensorFlow's, at padding too") {
  Model model = loaded();
  CHECK(test::worst(padded_logits(model), numbers(fixture().at("logits"))) < 1e-12);
  Model scaled = loaded("true");
  CHECK(test::worst(padded_logits(scaled), numbers(fixture().at("scaled.logits"))) < 1e-12);
}

TEST_CASE("padded GPT-2: no folder of GPT-2 holds it") {
  CHECK_THROWS_WITH_AS(save_hugging_face(loaded(), "none"), doctest::Contains("has no entry \"hugging_face\""),
                       DefinitionError);
}

TEST_CASE("padded GPT-2: loss and every gradient are TensorFlow's") {
  test::check_gradients(loaded(), fixture(), padded_sizes, {});
  test::check_gradients(loaded(), fixture(), padded_sizes, test::by_reference());
}

TEST_CASE("padded GPT-2: step by step is the same as at once") {
  Model model = loaded();
  Predictor predictor(model);
  predictor.begin(3);
  const Array& tokens = fixture().at("tokens");
  const std::vector<double> whole = padded_logits(model);
  std::vector<double> found(whole.size());
  for (std::int64_t t = 0; t < 11; ++t) {
    Array step(Dtype::int64, {3, 1});
    for (std::int64_t b = 0; b < 3; ++b) step.as<std::int64_t>()[b] = tokens.as<std::int64_t>()[b * 11 + t];
    const std::vector<double> some = numbers(predictor.step(step));
    for (std::int64_t b = 0; b < 3; ++b) std::copy_n(some.begin() + b * 29, 29, found.begin() + (b * 11 + t) * 29);
  }
  CHECK(test::worst(found, whole) < 1e-12);
}

TEST_CASE("padded GPT-2: what padding says of other rows, and of its own, is nothing") {
  Model model = loaded();
  const std::vector<double> whole = padded_logits(model);
  Array shorter(Dtype::int64, {1, 6});
  std::copy_n(fixture().at("tokens").as<std::int64_t>() + 11, 6, shorter.as<std::int64_t>());
  const Store alone = model.play("logits", {{"tokens", shorter}});
  const std::vector<double> row(whole.begin() + 11 * 29, whole.begin() + 17 * 29);
  CHECK(test::worst(numbers(alone[0].value), row) < 1e-12);
}

TEST_CASE("padded GPT-2: places count from 1, so that a row has fewer tokens than there are places") {
  const Model model = loaded();
  const auto record = [&](std::int64_t t) {
    Tape tape(Mode::eval);
    model.record(tape, "logits", model.inputs(tape, "logits", {{"b", 1}, {"t", t}}));
  };
  CHECK_NOTHROW(record(13));
  CHECK_THROWS_WITH_AS(record(14), doctest::Contains("more tokens than n_positions - 1"), DefinitionError);
}
