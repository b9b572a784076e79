// The definition of the Transformer: its size, its weights, its variants, and that it plays as the reference does.
#include "transformer.hpp"

#include <doctest/doctest.h>

#include "xtape/xtensor.hpp"

using namespace xtape;
using namespace xtape::test::transformer;

namespace {
struct Gradients {
  std::vector<std::string> names;
  std::vector<Values> values;  ///< The loss, then the gradients.
};

Gradients gradients(const Model& model, const Passes& passes, Mode mode) {
  const Example batch;
  Tape tape(mode);
  const NamedVars inputs = model.inputs(tape, "loss", {{"b", 2}, {"s", 5}, {"t", 4}});
  Gradients found;
  for (const Store::Entry& weight : model.weights()) found.names.push_back(weight.name);
  const Vars outputs = test::mean_loss_and_gradients(model, tape, inputs);
  PlayerOptions options;
  options.passes = passes;
  options.seed = 9;
  Player player(tape, outputs, options);
  player.play({{inputs[0].value, batch.source}, {inputs[1].value, batch.tokens}, {inputs[2].value, batch.targets}}, 2);
  for (const Var& output : outputs)
    if (output.dtype() == Dtype::float64)
      found.values.push_back(player.value<double>(output));
    else
      found.values.push_back(xt::cast<double>(player.value<float>(output)));
  return found;
}

void check_close(const Gradients& a, const Gradients& b, double tolerance) {
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    REQUIRE(a.values[i].shape() == b.values[i].shape());
    double scale = 0, worst = 0;
    for (std::size_t k = 0; k < a.values[i].size(); ++k) {
      scale = std::max(scale, std::abs(b.values[i].flat(k)));
      worst = std::max(worst, std::abs(a.values[i].flat(k) - b.values[i].flat(k)));
    }
    CAPTURE((i == 0 ? "loss" : a.names[i - 1]));
    CHECK(worst <= tolerance * (1 + scale));
  }
}

std::string refusal(const Settings& settings, std::int64_t t = 4) {
  return test::error_of([&] {
    const Model model = load(settings);
    Tape tape(Mode::eval);
    model.record(tape, "logits", model.inputs(tape, "logits", {{"b", 1}, {"s", 3}, {"t", t}}));
  });
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("the Transformer's number of parameters: published sizes") {
  const auto count = [](const Settings& settings) {
    ModelOptions options;
    options.initialise = false;
    options.hyper = settings;
    return Model::load(definition, options).parameter_count();
  };
  // Layers of 4 (512² + 512) and 2 (512 · 2048) + 2560 and norms, with one table of 37000.
  CHECK(count({}) == 37000 * 512 + 6 * 3152384 + 6 * 4204032);
  CHECK(count({{"d_model", "128"},
               {"d_ff", "256"},
               {"encoder_layers", "4"},
               {"decoder_layers", "4"},
               {"heads", "4"},
               {"source_vocab_size", "9712"}}) == 2568192);
}

TEST_CASE("optimised playing of the Transformer agrees with the reference, in every variant") {
  for (const Settings& variant : variants)
    for (const Mode mode : {Mode::eval, Mode::train}) {
      Settings settings = variant;
      settings.emplace_back("attention_dropout_rate", "0.2");
      settings.emplace_back("activation_dropout_rate", "0.1");
      const Model precise = load(settings);
      const Gradients reference = gradients(precise, Passes::reference(), mode);
      check_close(gradients(precise, Passes(), mode), reference, 1e-12);
      const Model narrow = load(settings, Dtype::float32);
      check_close(gradients(narrow, Passes(), mode), gradients(narrow, Passes::reference(), mode), 2e-5);
    }
}

TEST_CASE("the Transformer's gradients are those of finite differences") {
  const Model model = load({{"encoder_layers", "1"}, {"decoder_layers", "1"}});
  const Gradients exact = gradients(model, Passes::reference(), Mode::eval);
  const Example batch;
  const auto loss = [&] {
    const auto results = play(model, "loss", batch.source, batch.tokens, batch.targets);
    return results[0]() / results[1]();
  };
  CHECK(loss() == doctest::Approx(exact.values[0]()).epsilon(1e-13));
  for (std::size_t i = 0; i < exact.names.size(); ++i) {
    double* weight = Array(model.weights().at(exact.names[i])).as<double>();
    const std::size_t at = exact.values[i + 1].size() / 2;
    const double before = weight[at];
    weight[at] = before + 1e-5;
    const double above = loss();
    weight[at] = before - 1e-5;
    const double below = loss();
    weight[at] = before;
    CAPTURE(exact.names[i]);
    CHECK(std::abs((above - below) / 2e-5 - exact.values[i + 1].flat(at)) < 1e-8);
  }
}

TEST_CASE("without its first self-attention, the decoder's first layer lacks those weights alone") {
  const Model whole = load();
  const Model skipping = load({{"skip_first_self_attention", "true"}});
  for (const Store::Entry& entry : whole.weights()) {
    CAPTURE(entry.name);
    const bool skipped = entry.name.rfind("decoder.0.self_attention.", 0) == 0;
    CHECK((skipping.weights().find(entry.name) == nullptr) == skipped);
  }
  CHECK(whole.parameter_count() - skipping.parameter_count() == 4 * (64 + 8) + 16);
}

TEST_CASE("tied tables are one weight, whose gradient is the sum of those of its uses") {
  const Settings apart = {{"shared_embeddings", "false"}, {"tied_output", "false"}};
  const Model three = load(apart);
  CHECK(load().weights().find("target_embedding.weight") == nullptr);
  CHECK(load().weights().find("output_embedding.weight") == nullptr);
  CHECK(three.parameter_count() - load().parameter_count() == 2 * vocabulary * 8);
  CHECK(load({{"shared_embeddings", "false"}}).parameter_count() == three.parameter_count() - vocabulary * 8);
  CHECK(load({{"tied_output", "false"}}).parameter_count() == three.parameter_count() - vocabulary * 8);

  const Model one = load();
  for (const Store::Entry& entry : three.weights()) {
    const bool table = entry.name == "target_embedding.weight" || entry.name == "output_embedding.weight";
    const double* values = Array(one.weights().at(table ? "source_embedding.weight" : entry.name)).as<double>();
    Array weight(entry.value);
    std::copy(values, values + weight.count(), weight.as<double>());
  }
  const Gradients tied = gradients(one, Passes(), Mode::eval), untied = gradients(three, Passes(), Mode::eval);
  CHECK(tied.values[0]() == doctest::Approx(untied.values[0]()).epsilon(1e-14));
  const auto of = [](const Gradients& from, const std::string& name) {
    const auto at = std::find(from.names.begin(), from.names.end(), name);
    REQUIRE(at != from.names.end());
    return from.values[static_cast<std::size_t>(at - from.names.begin()) + 1];
  };
  for (const std::string name : {"source", "target", "output"}) {
    double largest = 0;
    for (const double each : of(untied, name + "_embedding.weight")) largest = std::max(largest, std::abs(each));
    CHECK(largest > 1e-6);
  }
  const Values sum = of(untied, "source_embedding.weight") + of(untied, "target_embedding.weight") +
                     of(untied, "output_embedding.weight");
  CHECK(test::same(of(tied, "source_embedding.weight"), sum));
}

TEST_CASE("pre-norm ends in a norm, post-norm only where it is asked for") {
  const auto has_norm = [](const Settings& settings) {
    return load(settings).weights().find("decoder_norm.weight") != nullptr;
  };
  CHECK_FALSE(has_norm({}));
  CHECK(has_norm({{"final_norm", "true"}}));
  CHECK(has_norm({{"norm_first", "true"}}));
  CHECK_FALSE(has_norm({{"norm_first", "true"}, {"final_norm", "false"}}));
}

TEST_CASE("the Transformer's first weights") {
  const auto deviation = [](const Model& model, const std::string& name) {
    const Array& array = model.weights().at(name);
    double sum = 0;
    for (std::int64_t i = 0; i < array.count(); ++i) sum += std::pow(array.as<double>()[i], 2);
    return std::sqrt(sum / static_cast<double>(array.count()));
  };
  const Settings size = {{"d_model", "64"}, {"d_ff", "128"}, {"source_vocab_size", "300"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    Settings settings = size;
    settings.emplace_back(name, value);
    return load(settings);
  };
  const auto glorot = [](double in, double out) { return std::sqrt(2 / (in + out)); };
  CHECK(deviation(load(size), "source_embedding.weight") == doctest::Approx(1. / 8).epsilon(0.02));
  const Model xavier = with("embedding_init", "glorot_uniform");
  CHECK(deviation(xavier, "source_embedding.weight") == doctest::Approx(glorot(300, 64)).epsilon(0.02));
  CHECK(deviation(xavier, "encoder.1.feed_forward.sublayer.linear1.weight") ==
        doctest::Approx(glorot(64, 128)).epsilon(0.02));
  CHECK(deviation(xavier, "decoder.0.cross_attention.sublayer.key.weight") ==
        doctest::Approx(glorot(64, 64)).epsilon(0.03));
  CHECK(deviation(with("tied_output", "false"), "output_embedding.weight") ==
        doctest::Approx(glorot(300, 64)).epsilon(0.02));
}

TEST_CASE("what does not fit together is refused, with the line and the reason") {
  CHECK(holds(refusal({{"heads", "3"}}),
              "heads must divide d_model (d_model = 8, heads = 3)\n    require(d_model % heads == 0"));
  CHECK(holds(refusal({{"heads", "3"}}),
              "block 'multi_head' (module encoder.0.self_attention.sublayer.attention), line "));
  CHECK(refusal({{"heads", "3"}, {"attention", "single_head"}}).empty());
  CHECK(
      holds(refusal({{"target_vocab_size", "12"}}), "shared_embeddings needs source_vocab_size == target_vocab_size"));
  CHECK(refusal({{"target_vocab_size", "12"}, {"shared_embeddings", "false"}}).empty());
  CHECK(holds(refusal({{"positions", "learned"}, {"max_positions", "4"}}, 5), "more tokens than max_positions"));
  CHECK(refusal({{"positions", "learned"}, {"max_positions", "4"}}, 4).empty());
  CHECK(holds(refusal({{"d_model", "7"}, {"heads", "1"}}), "7 / 2 is not an integer"));
  CHECK(holds(refusal({{"norm_first", "yes"}}), "unknown name 'yes'"));
}
