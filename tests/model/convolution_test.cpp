// The convolutional models: resnet, image_cnn and text_cnn.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "definitions.hpp"
#include "source_root.hpp"

namespace convolutional {

using namespace xtape;
using Values = xt::xarray<double>;
using Integers = xt::xarray<std::int64_t>;
using Hypers = std::vector<std::pair<std::string, std::string>>;

namespace {
Values random_values(const std::vector<std::size_t>& shape, unsigned seed) {
  Values values = Values::from_shape(shape);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (double& value : values) value = normal(random);
  return values;
}

/// The model with random weights everywhere, also in norms and running statistics.
Model load(const std::string& name, const Hypers& hyper) {
  ModelOptions options = test::in_float64();
  options.hyper = hyper;
  Model model = Model::load(source_root() + "/models/" + name + ".json", options);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0.3, 0.9);
  for (const Store::Entry& entry : model.weights()) {
    const bool drawn = entry.value.shape().size() > 1;
    Array weight = model.weight(entry.name);
    for (std::int64_t i = 0; i < weight.count() && !drawn; ++i) weight.as<double>()[i] = uniform(random);
  }
  return model;
}

Values weight(const Model& model, const std::string& name) {
  const Array& array = model.weights().at(name);
  Values values = Values::from_shape({array.shape().begin(), array.shape().end()});
  std::copy_n(array.as<double>(), array.count(), values.begin());
  return values;
}

/// Convolution of [b, c, h, w] with a square kernel, by loops.
Values conv(const Values& x, const Values& w, std::size_t stride, std::size_t padding) {
  const std::size_t size = w.shape()[2];
  const auto places = [&](std::size_t n) { return (n + 2 * padding - size) / stride + 1; };
  Values y = Values::from_shape({x.shape()[0], w.shape()[0], places(x.shape()[2]), places(x.shape()[3])});
  for (std::size_t b = 0; b < y.shape()[0]; ++b)
    for (std::size_t o = 0; o < y.shape()[1]; ++o)
      for (std::size_t i = 0; i < y.shape()[2]; ++i)
        for (std::size_t j = 0; j < y.shape()[3]; ++j) {
          double sum = 0;
          for (std::size_t c = 0; c < w.shape()[1]; ++c)
            for (std::size_t k = 0; k < size; ++k)
              for (std::size_t l = 0; l < size; ++l) {
                const std::size_t row = i * stride + k - padding, column = j * stride + l - padding;  // may wrap round
                if (row < x.shape()[2] && column < x.shape()[3]) sum += x(b, c, row, column) * w(o, c, k, l);
              }
          y(b, o, i, j) = sum;
        }
  return y;
}

Values norm(const Model& model, const std::string& name, Values x) {
  const Values scale = weight(model, name + ".weight"), bias = weight(model, name + ".bias");
  const Values mean = weight(model, name + ".running_mean"), variance = weight(model, name + ".running_var");
  const std::size_t pixels = x.shape()[2] * x.shape()[3];
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / pixels % x.shape()[1];
    x.flat(i) = (x.flat(i) - mean(c)) / std::sqrt(variance(c) + 1e-5) * scale(c) + bias(c);
  }
  return x;
}

Values relu(Values x) {
  for (double& value : x) value = std::max(0.0, value);
  return x;
}

/// [b, features] by the layer `name`.
Values linear(const Model& model, const std::string& name, const Values& x) {
  const Values w = weight(model, name + ".weight"), bias = weight(model, name + ".bias");
  Values y = Values::from_shape({x.shape()[0], w.shape()[0]});
  for (std::size_t b = 0; b < y.shape()[0]; ++b)
    for (std::size_t o = 0; o < y.shape()[1]; ++o) {
      y(b, o) = bias(o);
      for (std::size_t i = 0; i < w.shape()[1]; ++i) y(b, o) += x(b, i) * w(o, i);
    }
  return y;
}

Values resnet(const Model& model, const Values& images, bool projected) {
  Values x = relu(norm(model, "bn", conv(images, weight(model, "conv.weight"), 1, 1)));
  for (const std::string layer : {"layer1", "layer2", "layer3"})
    for (const std::string index : {"0", "1"}) {
      const std::string block = layer + "." + index;
      const std::size_t stride = layer != "layer1" && index == "0" ? 2 : 1;
      Values y = relu(norm(model, block + ".bn1", conv(x, weight(model, block + ".conv1.weight"), stride, 1)));
      y = norm(model, block + ".bn2", conv(y, weight(model, block + ".conv2.weight"), 1, 1));
      Values beside = x;
      if (stride == 2 && projected) {
        beside = norm(model, block + ".shortcut.norm", conv(x, weight(model, block + ".shortcut.conv.weight"), 2, 0));
      } else if (stride == 2) {
        beside = Values::from_shape({y.shape()[0], y.shape()[1], y.shape()[2], y.shape()[3]});
        beside.fill(0);
        for (std::size_t b = 0; b < x.shape()[0]; ++b)
          for (std::size_t c = 0; c < x.shape()[1]; ++c)
            for (std::size_t i = 0; i < y.shape()[2]; ++i)
              for (std::size_t j = 0; j < y.shape()[3]; ++j)
                beside(b, c + x.shape()[1] / 2, i, j) = x(b, c, 2 * i, 2 * j);
      }
      x = relu(Values(y + beside));
    }
  Values pooled = Values::from_shape({x.shape()[0], x.shape()[1]});
  const std::size_t pixels = x.shape()[2] * x.shape()[3];
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    pooled.flat(i) = 0;
    for (std::size_t k = 0; k < pixels; ++k) pooled.flat(i) += x.flat(i * pixels + k) / static_cast<double>(pixels);
  }
  return linear(model, "fc", pooled);
}

/// The largest of each window of 2 x 2.
Values pooled(const Values& x) {
  Values y = Values::from_shape({x.shape()[0], x.shape()[1], x.shape()[2] / 2, x.shape()[3] / 2});
  for (std::size_t b = 0; b < y.shape()[0]; ++b)
    for (std::size_t c = 0; c < y.shape()[1]; ++c)
      for (std::size_t i = 0; i < y.shape()[2]; ++i)
        for (std::size_t j = 0; j < y.shape()[3]; ++j)
          y(b, c, i, j) = std::max({x(b, c, 2 * i, 2 * j), x(b, c, 2 * i, 2 * j + 1), x(b, c, 2 * i + 1, 2 * j),
                                    x(b, c, 2 * i + 1, 2 * j + 1)});
  return y;
}

Values image_cnn(const Model& model, const Values& images) {
  Values x = images;
  for (const std::string i : {"1", "2"})
    x = pooled(relu(norm(model, "bn" + i, conv(x, weight(model, "conv" + i + ".weight"), 1, 1))));
  const std::size_t rows = x.shape()[0];
  return linear(model, "fc", Values(x.reshape({rows, x.size() / rows})));
}

/// Each text is followed by padding, which plays no part here.
Values text_cnn(const Model& model, const std::vector<std::vector<std::size_t>>& texts) {
  const Values table = weight(model, "embed.weight");
  Values found = Values::from_shape({texts.size(), 3 * 4});
  for (std::size_t b = 0; b < texts.size(); ++b)
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string name = "windows." + std::to_string(i) + ".conv.";
      const Values w = weight(model, name + "weight"), bias = weight(model, name + "bias");
      for (std::size_t filter = 0; filter < 4; ++filter) {
        double best = 0;
        for (std::size_t first = 0; first < texts[b].size(); ++first) {
          double sum = bias(filter);
          for (std::size_t k = 0; k < 3 + i && first + k < texts[b].size(); ++k)
            for (std::size_t c = 0; c < 5; ++c) sum += table(texts[b][first + k], c) * w(filter, c, k);
          best = std::max(best, sum);
        }
        found(b, 4 * i + filter) = best;
      }
    }
  return linear(model, "out", found);
}

/// Checks the optimised loss, its gradients and the new values of weights in training against the reference path.
void check_training(const Model& model, const NamedSizes& sizes, const std::vector<ArrayView>& feeds) {
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", sizes);
  RecordedLines lines;
  const NamedVars results = model.record(tape, "loss", inputs, &lines);
  Vars by;
  for (const auto& each : model.weights(tape)) by.push_back(each.value);
  Vars outputs = grad(results[0].value, by, {.materialize_grads = true});
  outputs.push_back(results[0].value);
  for (const auto& each : lines.updates) outputs.push_back(each.value);
  CHECK(lines.updates.size() == model.updated_weights().size());
  std::vector<Feed> fed;
  for (std::size_t i = 0; i < inputs.size(); ++i) fed.emplace_back(inputs[i].value, feeds.at(i));
  PlayerOptions reference;
  reference.passes = Passes::reference();
  Player plain(tape, outputs, reference), optimised(tape, outputs);
  plain.play(fed);
  optimised.play(fed);
  double largest = 0;
  for (const Var& output : outputs) {
    const Values expected = plain.value<double>(output), found = optimised.value<double>(output);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(expected.flat(i)));
      CHECK(std::abs(found.flat(i) - expected.flat(i)) <= 1e-9 * (1 + std::abs(expected.flat(i))));
    }
  }
  CHECK(largest > 0.1);
}

/// Checks the logits of a batch, optimised and as recorded, against `expected`, and those of single rows.
void check_logits(Model& model, const Values& images, const Values& expected) {
  const auto size = static_cast<std::int64_t>(images.shape()[0]);
  CHECK(test::same(test::play(model, "logits", {{"b", size}}, {ArrayView(images)})[0], expected));
  const Store together = model.play("logits", {{"images", ArrayView(images)}});
  for (std::size_t b = 0; b < images.shape()[0]; ++b) {
    Values one = test::item(images, b);
    one.reshape({1, images.shape()[1], images.shape()[2], images.shape()[3]});
    const Store alone = model.play("logits", {{"images", ArrayView(one)}});
    for (std::size_t k = 0; k < expected.shape()[1]; ++k) {
      CHECK(alone[0].value.as<double>()[k] == doctest::Approx(expected(b, k)).epsilon(1e-9));
      CHECK(together[0].value.as<double>()[b * expected.shape()[1] + k] ==
            doctest::Approx(expected(b, k)).epsilon(1e-9));
    }
  }
}
}  // namespace

TEST_CASE("resnet: logits, by loops, with both shortcuts") {
  CHECK(Model::load(source_root() + "/models/resnet.json").parameter_count() == 269'722);  // ResNet-20
  for (const bool projected : {false, true}) {
    Model model = load("resnet", {{"filters", "2"},
                                  {"blocks", "2"},
                                  {"height", "8"},
                                  {"width", "6"},
                                  {"classes", "3"},
                                  {"shortcuts", projected ? "projection" : "padded"}});
    const Values images = random_values({3, 3, 8, 6}, 1);
    check_logits(model, images, resnet(model, images, projected));
    const Integers labels = {2, 0, 1};
    check_training(model, {{"b", 3}}, {ArrayView(images), ArrayView(labels)});
  }
}

TEST_CASE("image_cnn: logits, by loops") {
  Model model = load("image_cnn", {{"classes", "4"}, {"filters", "3"}, {"channels", "2"}, {"height", "10"}});
  const Values images = random_values({3, 2, 10, 8}, 2);
  check_logits(model, images, image_cnn(model, images));
  const Integers labels = {3, -1, 1};
  check_training(model, {{"b", 3}}, {ArrayView(images), ArrayView(labels)});
}

TEST_CASE("text_cnn: logits, by loops, whatever the padding") {
  Model model = load("text_cnn",
                     {{"vocab_size", "9"}, {"classes", "3"}, {"width", "5"}, {"filters", "4"}, {"dropout_rate", "0"}});
  const std::vector<std::vector<std::size_t>> texts = {{1, 5, 8, 3, 2}, {1, 2}, {1, 4, 2}};
  const Values expected = text_cnn(model, texts);
  for (const std::size_t length : {5, 9}) {
    Integers tokens = Integers::from_shape({3, length});
    tokens.fill(0);
    for (std::size_t b = 0; b < 3; ++b) std::copy(texts[b].begin(), texts[b].end(), &tokens(b, 0));
    const auto t = static_cast<std::int64_t>(length);
    CHECK(test::same(test::play(model, "logits", {{"b", 3}, {"t", t}}, {ArrayView(tokens)})[0], expected));
    const Store found = model.play("logits", {{"tokens", ArrayView(tokens)}});
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(found[0].value.as<double>()[i] == doctest::Approx(expected.flat(i)).epsilon(1e-9));
    const Integers labels = {2, -1, 0};
    check_training(model, {{"b", 3}, {"t", t}}, {ArrayView(tokens), ArrayView(labels)});
  }
}

}  // namespace convolutional
