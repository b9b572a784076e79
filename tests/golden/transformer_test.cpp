// models/transformer.json against PyTorch's nn.Transformer (transformer.py) and Keras layers (transformer_keras.py):
// outputs, every gradient, and ten steps of Adam.
#include <algorithm>

#include "fixture.hpp"
#include "source_root.hpp"

using namespace xtape;
using test::golden;
using test::numbers;
using test::worst;

namespace {
using Settings = std::vector<std::pair<std::string, std::string>>;

/// A model with the fixture's weights, and the fixture.
struct Case {
  std::string name;
  Store fixture;
  Model model;

  Case(const std::string& file, const Settings& more)
      : name(file), fixture(golden(file + ".safetensors")), model(made(more)) {
    test::put_weights(model, fixture);
  }
  static Model made(const Settings& more) {
    ModelOptions options;
    options.dtype = Dtype::float64;
    options.initialise = false;
    options.hyper = {{"d_model", "8"},        {"d_ff", "12"},          {"heads", "2"},
                     {"encoder_layers", "2"}, {"decoder_layers", "2"}, {"source_vocab_size", "13"},
                     {"dropout_rate", "0.0"}};
    options.hyper.insert(options.hyper.end(), more.begin(), more.end());
    return Model::load(source_root() + "/models/transformer.json", options);
  }
  static NamedSizes sizes() { return {{"b", 3}, {"s", 6}, {"t", 5}}; }

  /// A result of `function` on the fixture's batch.
  std::vector<double> result(const std::string& function, std::size_t index = 0) {
    NamedSizes some;
    const bool decodes = function != "encode";
    for (const auto& [size, value] : sizes())
      if (decodes || size != "t") some.add(size, value);
    const auto planned = model.player(function, Mode::eval, some);
    std::vector<Feed> feeds;
    for (const auto& [input, var] : planned->inputs) feeds.emplace_back(var, fixture.at(input));
    planned->player.play(feeds);
    const ArrayView view = planned->player.view(planned->results[index].value);
    if (view.dtype() != Dtype::int64) return numbers(view);
    std::vector<std::int64_t> integers(static_cast<std::size_t>(count_of(view.shape())));
    view.copy_to(integers.data());
    return {integers.begin(), integers.end()};
  }
};

const Settings three_tables = {
    {"shared_embeddings", "false"}, {"tied_output", "false"}, {"target_vocab_size", "11"}, {"output_bias", "true"}};

Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Case post_norm() {
  return {"transformer_post_norm", three_tables + Settings{{"final_norm", "true"}}};
}
Case pre_norm() {
  return {"transformer_pre_norm",
          {{"norm_first", "true"}, {"positions", "concatenated"}, {"smoothing_excludes", "padding"}}};
}
Case keras() {
  return {"transformer_keras", three_tables + Settings{{"label_smoothing", "0.0"}}};
}
Case keras_single_head() {
  return {"transformer_keras_single_head", three_tables + Settings{{"label_smoothing", "0.0"},
                                                                   {"attention", "single_head"},
                                                                   {"skip_first_self_attention", "true"}}};
}

/// Keras adds epsilon to the second moment before correcting it, PyTorch and xtape after: an epsilon of 1e-9 shows in
/// the losses as some 1e-7 (and one of 1e-14 as 1e-12).
constexpr double keras_adam = 5e-7;

void check_case(const Case& each, double training_tolerance) {
  CAPTURE(each.name);
  test::check_gradients(each.model, each.fixture, Case::sizes(), {});
  test::check_gradients(each.model, each.fixture, Case::sizes(), test::by_reference());
  test::check_training(each.model, each.fixture, Case::sizes(), training_tolerance);
}
}  // namespace

TEST_CASE("Transformer: PyTorch's logits, plain loss and attention to the memory") {
  for (const auto make : {post_norm, pre_norm}) {
    Case each = make();
    CAPTURE(each.name);
    CHECK(worst(each.result("logits"), numbers(each.fixture.at("logits"))) < 1e-13);
    const double count = each.result("plain_loss", 1)[0];
    CHECK(count == 11);
    CHECK(std::fabs(each.result("plain_loss")[0] / count - numbers(each.fixture.at("plain_loss"))[0]) < 1e-13);
    const std::vector<double> layers = each.result("attention");
    const std::vector<double> last(layers.begin() + static_cast<std::ptrdiff_t>(layers.size() / 2), layers.end());
    CHECK(worst(last, numbers(each.fixture.at("attention"))) < 1e-13);
  }
}

TEST_CASE("Transformer: Keras's logits, where a target is real") {
  for (const auto make : {keras, keras_single_head}) {
    Case each = make();
    CAPTURE(each.name);
    std::vector<double> found = each.result("logits");
    std::vector<double> expected = numbers(each.fixture.at("logits"));
    std::vector<std::int64_t> targets(15);
    ArrayView(each.fixture.at("targets")).copy_to(targets.data());
    std::size_t right = 0;
    std::size_t real = 0;
    for (std::size_t row = 0; row < targets.size(); ++row) {
      const auto at = static_cast<std::ptrdiff_t>(row * 11);
      const auto next = at + 11;
      if (targets[row] == -1) {
        std::fill(found.begin() + at, found.begin() + next, 0);
        std::fill(expected.begin() + at, expected.begin() + next, 0);
        continue;
      }
      ++real;
      const auto best = std::max_element(expected.begin() + at, expected.begin() + next) - (expected.begin() + at);
      right += best == targets[row] ? 1 : 0;
    }
    CHECK(worst(found, expected) < 1e-13);
    CHECK(each.result("accuracy", 0)[0] == static_cast<double>(right));
    CHECK(each.result("accuracy", 1)[0] == static_cast<double>(real));
  }
}

TEST_CASE("Transformer: PyTorch's smoothed loss, every gradient and ten losses of Adam, post-norm") {
  check_case(post_norm(), 1e-12);
}

TEST_CASE("Transformer: the same, pre-norm, with one table for all and padding left out of the smoothing") {
  check_case(pre_norm(), 1e-12);
}

TEST_CASE("Transformer: Keras's loss, every gradient and ten losses of Adam") {
  check_case(keras(), keras_adam);
}

TEST_CASE("Transformer: the same with single-head attention and without the first self-attention") {
  check_case(keras_single_head(), keras_adam);
}
