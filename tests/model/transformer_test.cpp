// The definition of the Transformer: its size, its variants, what its masks must do, and what its functions give.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "definitions.hpp"

using namespace xtape;

namespace {
const std::string definition = std::string(XTAPE_SOURCE_ROOT) + "/models/transformer.json";
constexpr std::int64_t vocabulary = 11;

using Settings = std::vector<std::pair<std::string, std::string>>;
using Rows = xt::xtensor<std::int64_t, 2>;
using Values = xt::xarray<double>;

Model load(const Settings& more = {}, Dtype dtype = Dtype::float64) {
  ModelOptions options;
  options.dtype = dtype;
  options.seed = 3;
  options.hyper = {{"width", "8"},          {"inner", "12"},         {"heads", "2"},
                   {"encoder_layers", "2"}, {"decoder_layers", "2"}, {"source_vocab_size", std::to_string(vocabulary)}};
  for (const auto& [name, value] : more) {
    const auto same = [&name = name](const auto& each) { return each.first == name; };
    options.hyper.erase(std::remove_if(options.hyper.begin(), options.hyper.end(), same), options.hyper.end());
    options.hyper.emplace_back(name, value);
  }
  Model model = Model::load(definition, options);
  // Biases and norms away from their start, so that each of them shows.
  for (const Store::Entry& entry : model.weights().entries()) {
    if (entry.array.shape().size() != 1 || dtype != Dtype::float64) continue;
    Array weight = entry.array;
    for (std::int64_t i = 0; i < weight.count(); ++i)
      weight.as<double>()[i] += 0.2 * std::sin(static_cast<double>(i + std::ssize(entry.name)));
  }
  return model;
}

/// Sentences of these lengths, padded to `size`. The tokens are 1 and more, never padding.
Rows sentences(const std::vector<std::int64_t>& lengths, std::int64_t size, std::int64_t seed) {
  Rows made = Rows::from_shape({lengths.size(), static_cast<std::size_t>(size)});
  for (std::int64_t row = 0; row < std::ssize(lengths); ++row)
    for (std::int64_t i = 0; i < size; ++i)
      made(row, i) = i < lengths[static_cast<std::size_t>(row)] ? 1 + (i * i + 3 * i + 5 * row + seed) % 10 : 0;
  return made;
}

struct Example {
  Rows source = sentences({5, 3}, 5, 1);
  Rows tokens = sentences({3, 4}, 4, 2);
  Rows targets = sentences({3, 4}, 4, 7);
  Example() {
    for (std::int64_t& target : targets)
      if (target == 0) target = -1;
  }
};

std::int64_t length(const Rows& rows) {
  return static_cast<std::int64_t>(rows.shape()[1]);
}

std::vector<Values> play(const Model& model, const std::string& function, const Rows& source, const Rows& tokens,
                         const Rows& targets = {}) {
  std::vector<ArrayView> feeds = {source, tokens};
  if (targets.size() != 0) feeds.emplace_back(targets);
  return test::play(model, function,
                    {{"b", static_cast<std::int64_t>(source.shape()[0])}, {"s", length(source)}, {"t", length(tokens)}},
                    feeds);
}

Values logits(const Model& model, const Rows& source, const Rows& tokens) {
  return play(model, "logits", source, tokens)[0];
}

Rows row(const Rows& rows, std::size_t which) {
  Rows one = Rows::from_shape({1, rows.shape()[1]});
  for (std::size_t i = 0; i < rows.shape()[1]; ++i) one(0, i) = rows(which, i);
  return one;
}

Rows first(const Rows& rows, std::size_t size) {
  Rows cut = Rows::from_shape({rows.shape()[0], size});
  for (std::size_t r = 0; r < rows.shape()[0]; ++r)
    for (std::size_t i = 0; i < size; ++i) cut(r, i) = rows(r, i);
  return cut;
}

/// The largest difference between a row's logits of the first `size` tokens.
double difference(const Values& a, std::size_t row_a, const Values& b, std::size_t row_b, std::size_t size) {
  double worst = 0;
  for (std::size_t t = 0; t < size; ++t)
    for (std::size_t v = 0; v < vocabulary; ++v) worst = std::max(worst, std::abs(a(row_a, t, v) - b(row_b, t, v)));
  return worst;
}

/// Every variant once, each with something else beside it.
const std::vector<Settings> variants = {
    {},
    {{"residual", "pre_norm"}, {"positions", "concatenated"}, {"embedding_init", "xavier"}},
    {{"attention", "single_head"}, {"skip_first_self_attention", "true"}, {"output_bias", "true"}},
    {{"embeddings", "separate"}, {"output", "separate"}, {"target_vocab_size", "11"}, {"final_norm", "true"}},
    {{"positions", "learned"}, {"max_positions", "9"}, {"bias", "false"}, {"scale_embeddings", "false"}},
};

struct Gradients {
  std::vector<std::string> names;
  std::vector<Values> values;  ///< The loss, then the gradients.
};

Gradients gradients(const Model& model, const Passes& passes, Mode mode) {
  const Example batch;
  Tape tape(mode);
  const NamedVars inputs = model.inputs(tape, "loss", {{"b", 2}, {"s", 5}, {"t", 4}});
  const NamedVars results = model.record(tape, "loss", inputs);
  const Var loss = results[0].second / cast(results[1].second, results[0].second.dtype());
  Gradients found;
  Vars weights;
  for (const auto& [name, var] : model.weights(tape)) {
    found.names.push_back(name);
    weights.push_back(var);
  }
  Vars outputs = grad(loss, weights);
  outputs.insert(outputs.begin(), loss);
  PlayerOptions options;
  options.passes = passes;
  options.seed = 9;
  Player player(tape, outputs, options);
  player.play({{inputs[0].second, batch.source}, {inputs[1].second, batch.tokens}, {inputs[2].second, batch.targets}},
              2);
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
  CHECK(count({{"width", "128"},
               {"inner", "256"},
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

TEST_CASE("a later target token changes nothing before it; an earlier one does") {
  const Example batch;
  for (const Settings& variant : variants) {
    const Model model = load(variant);
    const Values before = logits(model, batch.source, batch.tokens);
    Rows changed = batch.tokens;
    changed(1, 2) = 1 + changed(1, 2) % 10;
    const Values after = logits(model, batch.source, changed);
    CHECK(difference(before, 1, after, 1, 2) == 0);
    CHECK(difference(before, 1, after, 1, 4) > 1e-6);
    CHECK(difference(before, 0, after, 0, 4) == 0);
    Rows earlier = batch.tokens;
    earlier(1, 0) = 1 + earlier(1, 0) % 10;
    const Values last = logits(model, batch.source, earlier);
    double moved = 0;
    for (std::size_t v = 0; v < vocabulary; ++v) moved = std::max(moved, std::abs(before(1, 3, v) - last(1, 3, v)));
    CHECK(moved > 1e-6);
  }
}

TEST_CASE("padding changes nothing, and a row of a batch comes out as it does alone") {
  const Example batch;
  for (const Settings& variant : variants) {
    const Model model = load(variant);
    const Values together = logits(model, batch.source, batch.tokens);
    // Row 1 has 3 source tokens and 4 targets; row 0 has 5 and 3.
    const Values alone = logits(model, first(row(batch.source, 1), 3), row(batch.tokens, 1));
    CHECK(difference(alone, 0, together, 1, 4) < 1e-13);
    const Values shorter = logits(model, row(batch.source, 0), first(row(batch.tokens, 0), 3));
    CHECK(difference(shorter, 0, together, 0, 3) < 1e-13);
    const auto loss = [&](std::int64_t more) {
      Example padded;
      padded.source = sentences({5, 3}, 5 + more, 1);
      padded.tokens = sentences({3, 4}, 4 + more, 2);
      padded.targets = sentences({3, 4}, 4 + more, 7);
      for (std::int64_t& target : padded.targets)
        if (target == 0) target = -1;
      return play(model, "loss", padded.source, padded.tokens, padded.targets);
    };
    CHECK(loss(0)[1]() == 7);
    CHECK(loss(3)[1]() == 7);
    CHECK(std::abs(loss(0)[0]() - loss(3)[0]()) < 1e-12);
  }
}

TEST_CASE("every source token matters, and the token that pads is chosen by hyper-parameter") {
  const Example batch;
  const Model model = load();
  Rows source = batch.source;
  source(0, 4) = 1 + source(0, 4) % 10;
  CHECK(difference(logits(model, batch.source, batch.tokens), 0, logits(model, source, batch.tokens), 0, 1) > 1e-6);
  // With 10 as the padding, whether 10s stand behind the sentence makes no difference.
  const Model other = load({{"padding", "10"}});
  Rows sentence = {{1, 2, 3}}, padded = {{1, 2, 3, 10, 10}}, tokens = {{4, 5}};
  CHECK(difference(logits(other, sentence, tokens), 0, logits(other, padded, tokens), 0, 2) < 1e-13);
  CHECK(difference(logits(model, sentence, tokens), 0, logits(model, padded, tokens), 0, 2) > 1e-6);
}

TEST_CASE("a source of padding alone gives finite logits") {
  const Model model = load();
  const Rows nothing = {{0, 0, 0}};
  const Values found = logits(model, nothing, first(row(Example().tokens, 0), 2));
  for (const double value : found) CHECK(std::isfinite(value));
}

TEST_CASE("the losses, smoothed and plain, and the accuracy, by hand") {
  const Example batch;
  for (const bool excludes : {false, true}) {
    const Model model = load({{"label_smoothing", "0.3"}, {"smoothing_excludes", excludes ? "padding" : "-1"}});
    const Values found = logits(model, batch.source, batch.tokens);
    double smoothed = 0, plain = 0, right = 0;
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t t = 0; t < 4; ++t) {
        if (batch.targets(b, t) == -1) continue;
        double sum = 0, spread = 0;
        std::size_t best = 0;
        for (std::size_t v = 0; v < vocabulary; ++v) {
          sum += std::exp(found(b, t, v));
          if (found(b, t, v) > found(b, t, best)) best = v;
        }
        for (std::size_t v = excludes ? 1 : 0; v < vocabulary; ++v) spread += std::log(sum) - found(b, t, v);
        const double one = std::log(sum) - found(b, t, static_cast<std::size_t>(batch.targets(b, t)));
        plain += one;
        smoothed += 0.7 * one + 0.3 * spread / static_cast<double>(excludes ? vocabulary - 1 : vocabulary);
        right += static_cast<std::int64_t>(best) == batch.targets(b, t) ? 1 : 0;
      }
    const auto results = [&](const std::string& function) {
      return play(model, function, batch.source, batch.tokens, batch.targets);
    };
    CHECK(results("loss")[0]() == doctest::Approx(smoothed).epsilon(1e-12));
    CHECK(results("loss")[1]() == 7);
    CHECK(results("plain_loss")[0]() == doctest::Approx(plain).epsilon(1e-12));
    CHECK(results("plain_loss")[1]() == 7);
    CHECK(results("accuracy")[0]() == right);
    CHECK(results("accuracy")[1]() == 7);
    // With the most likely tokens as targets, all are right.
    Rows best = batch.targets;
    for (std::size_t i = 0; i < best.size(); ++i)
      if (best.flat(i) != -1) {
        best.flat(i) = 0;
        for (std::int64_t v = 1; v < vocabulary; ++v)
          if (found.flat(i * vocabulary + static_cast<std::size_t>(v)) >
              found.flat(i * vocabulary + static_cast<std::size_t>(best.flat(i))))
            best.flat(i) = v;
      }
    CHECK(play(model, "accuracy", batch.source, batch.tokens, best)[0]() == 7);
  }
}

TEST_CASE("without its first self-attention, the decoder's first layer lacks those weights alone") {
  const Model whole = load();
  const Model skipping = load({{"skip_first_self_attention", "true"}});
  for (const Store::Entry& entry : whole.weights().entries()) {
    CAPTURE(entry.name);
    const bool skipped = entry.name.rfind("decoder.0.self_attention.", 0) == 0;
    CHECK((skipping.weights().find(entry.name) == nullptr) == skipped);
  }
  CHECK(whole.parameter_count() - skipping.parameter_count() == 4 * (64 + 8) + 16);
}

TEST_CASE("tied tables are one weight, whose gradient is the sum of those of its uses") {
  const Settings apart = {{"embeddings", "separate"}, {"output", "separate"}};
  const Model three = load(apart);
  CHECK(load().weights().find("tables.target.weight") == nullptr);
  CHECK(load().weights().find("tables.outputs.weight") == nullptr);
  CHECK(three.parameter_count() - load().parameter_count() == 2 * vocabulary * 8);
  CHECK(load({{"embeddings", "separate"}}).parameter_count() == three.parameter_count() - vocabulary * 8);
  CHECK(load({{"output", "separate"}}).parameter_count() == three.parameter_count() - vocabulary * 8);

  const Model one = load();
  for (const Store::Entry& entry : three.weights().entries()) {
    const bool table = entry.name.rfind("tables.", 0) == 0;
    const double* values = Array(one.weights().at(table ? "tables.source.weight" : entry.name)).as<double>();
    Array weight = entry.array;
    std::copy(values, values + weight.count(), weight.as<double>());
  }
  const Gradients tied = gradients(one, Passes(), Mode::eval), untied = gradients(three, Passes(), Mode::eval);
  CHECK(tied.values[0]() == doctest::Approx(untied.values[0]()).epsilon(1e-14));
  const auto of = [](const Gradients& from, const std::string& name) {
    const auto at = std::find(from.names.begin(), from.names.end(), name);
    REQUIRE(at != from.names.end());
    return from.values[static_cast<std::size_t>(at - from.names.begin()) + 1];
  };
  for (const std::string name : {"source", "target", "outputs"}) {
    double largest = 0;
    for (const double each : of(untied, "tables." + name + ".weight")) largest = std::max(largest, std::abs(each));
    CHECK(largest > 1e-6);
  }
  const Values sum =
      of(untied, "tables.source.weight") + of(untied, "tables.target.weight") + of(untied, "tables.outputs.weight");
  CHECK(test::same(of(tied, "tables.source.weight"), sum));
}

TEST_CASE("attention weights sum to 1, and are 0 where something is hidden") {
  const Example batch;
  for (const Settings& variant : variants) {
    const Model model = load(variant);
    const bool single = std::count(variant.begin(), variant.end(),
                                   std::pair<std::string, std::string>("attention", "single_head")) != 0;
    const std::size_t heads = single ? 1 : 2;
    const auto found = play(model, "attention", batch.source, batch.tokens);
    REQUIRE(found.size() == 3);
    CHECK(found[0].shape() == Values::shape_type{2, 2, heads, 4, 5});
    CHECK(found[1].shape() == Values::shape_type{2, 2, heads, 5, 5});
    CHECK(found[2].shape() == Values::shape_type{single ? std::size_t{1} : std::size_t{2}, 2, heads, 4, 4});
    for (const Values& weights : found) {
      const std::size_t keys = weights.shape().back();
      for (std::size_t query = 0; query < weights.size(); query += keys) {
        double sum = 0;
        for (std::size_t key = 0; key < keys; ++key) sum += weights.flat(query + key);
        CHECK(std::abs(sum - 1) < 1e-14);
      }
    }
    for (std::size_t layer = 0; layer < 2; ++layer)
      for (std::size_t head = 0; head < heads; ++head) {
        for (std::size_t key = 3; key < 5; ++key) {  // row 1 has three source tokens
          CHECK(found[0](layer, 1, head, 0, key) == 0);
          CHECK(found[1](layer, 1, head, 0, key) == 0);
          CHECK(found[0](layer, 0, head, 0, key) > 0);
        }
        if (layer < found[2].shape()[0])
          for (std::size_t query = 0; query < 4; ++query)
            for (std::size_t key = 0; key < 4; ++key)
              CHECK((found[2](layer, 0, head, query, key) == 0) == (key > query));
      }
  }
}

TEST_CASE("states: what enters a stack, and what every layer gives, to the memory and the logits") {
  const Example batch;
  const Model model = load({{"encoder_layers", "3"}});
  const Values encoder = test::play(model, "encoder_states", {{"b", 2}, {"s", 5}}, {ArrayView(batch.source)})[0];
  const Values decoder = play(model, "decoder_states", batch.source, batch.tokens)[0];
  CHECK(encoder.shape() == Values::shape_type{4, 2, 5, 8});
  CHECK(decoder.shape() == Values::shape_type{3, 2, 4, 8});
  const Values memory = test::play(model, "encode", {{"b", 2}, {"s", 5}}, {ArrayView(batch.source)})[0];
  CHECK(test::same(test::item(encoder, 3), memory));
  const double* table = Array(model.weights().at("tables.source.weight")).as<double>();
  Values products = xt::zeros<double>({2, 4, 11});
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t t = 0; t < 4; ++t)
      for (std::size_t v = 0; v < 11; ++v)
        for (std::size_t d = 0; d < 8; ++d) products(b, t, v) += decoder(2, b, t, d) * table[v * 8 + d];
  CHECK(test::same(products, logits(model, batch.source, batch.tokens)));
  CHECK(test::same(test::play(model, "decode", {{"b", 2}, {"s", 5}, {"t", 4}},
                              {ArrayView(memory), ArrayView(batch.source), ArrayView(batch.tokens)})[0],
                   products));
}

TEST_CASE("positions: sine and cosine in turn, one after the other, or learned") {
  const Rows source = {{4, 4, 4}};
  const auto entering = [&](const Model& model) {
    return test::play(model, "encoder_states", {{"b", 1}, {"s", 3}}, {ArrayView(source)})[0];
  };
  for (const std::string kind : {"sinusoidal", "concatenated", "learned"}) {
    CAPTURE(kind);
    const Model model = load({{"positions", kind}, {"max_positions", "3"}});
    const double* vectors = Array(model.weights().at("tables.source.weight")).as<double>() + 4 * 8;
    const Values found = entering(model);
    for (std::size_t place = 0; place < 3; ++place)
      for (std::size_t d = 0; d < 8; ++d) {
        const bool turns = kind == "sinusoidal";
        const auto i = static_cast<double>(turns ? d / 2 : d % 4);
        const double angle = static_cast<double>(place) / std::pow(10000., 2 * i / 8);
        double expected = (turns ? d % 2 == 0 : d < 4) ? std::sin(angle) : std::cos(angle);
        if (kind == "learned")
          expected = Array(model.weights().at("embed_source.position.table.weight")).as<double>()[place * 8 + d];
        CHECK(std::abs(found(0, 0, place, d) - (vectors[d] * std::sqrt(8.) + expected)) < 1e-14);
      }
  }
}

TEST_CASE("pre-norm ends in a norm, post-norm only where it is asked for") {
  const auto has_norm = [](const Settings& settings) {
    return load(settings).weights().find("decoder_norm.weight") != nullptr;
  };
  CHECK_FALSE(has_norm({}));
  CHECK(has_norm({{"final_norm", "true"}}));
  CHECK(has_norm({{"residual", "pre_norm"}}));
  CHECK_FALSE(has_norm({{"residual", "pre_norm"}, {"final_norm", "false"}}));
}

TEST_CASE("the Transformer's first weights") {
  const auto deviation = [](const Model& model, const std::string& name) {
    const Array array = model.weights().at(name);
    double sum = 0;
    for (std::int64_t i = 0; i < array.count(); ++i) sum += std::pow(array.as<double>()[i], 2);
    return std::sqrt(sum / static_cast<double>(array.count()));
  };
  const Settings size = {{"width", "64"}, {"inner", "128"}, {"source_vocab_size", "300"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    Settings settings = size;
    settings.emplace_back(name, value);
    return load(settings);
  };
  const auto glorot = [](double in, double out) { return std::sqrt(2 / (in + out)); };
  CHECK(deviation(load(size), "tables.source.weight") == doctest::Approx(1. / 8).epsilon(0.02));
  const Model xavier = with("embedding_init", "xavier");
  CHECK(deviation(xavier, "tables.source.weight") == doctest::Approx(glorot(300, 64)).epsilon(0.02));
  CHECK(deviation(xavier, "encoder.1.feed_forward.sublayer.linear1.weight") ==
        doctest::Approx(glorot(64, 128)).epsilon(0.02));
  CHECK(deviation(xavier, "decoder.0.cross_attention.sublayer.key.weight") ==
        doctest::Approx(glorot(64, 64)).epsilon(0.03));
  CHECK(deviation(with("output", "separate"), "tables.outputs.weight") ==
        doctest::Approx(glorot(300, 64)).epsilon(0.02));
}

TEST_CASE("what does not fit together is refused, with the line and the reason") {
  CHECK(holds(refusal({{"heads", "3"}}), "heads must divide width\n    require(width % heads == 0"));
  CHECK(
      holds(refusal({{"heads", "3"}}), "block 'multi_head' (part encoder.0.self_attention.sublayer.attention), line "));
  CHECK(refusal({{"heads", "3"}, {"attention", "single_head"}}).empty());
  CHECK(holds(refusal({{"target_vocab_size", "12"}}), "shared embeddings need equal vocabularies"));
  CHECK(refusal({{"target_vocab_size", "12"}, {"embeddings", "separate"}}).empty());
  CHECK(holds(refusal({{"embeddings", "both"}}), "embeddings are 'separate' or 'shared'"));
  CHECK(holds(refusal({{"output", "shared"}}), "output is 'separate' or 'tied'"));
  CHECK(holds(refusal({{"positions", "learned"}, {"max_positions", "4"}}, 5), "more tokens than max_positions"));
  CHECK(refusal({{"positions", "learned"}, {"max_positions", "4"}}, 4).empty());
  CHECK(holds(refusal({{"width", "7"}, {"heads", "1"}}), "7 / 2 is not whole"));
  CHECK(holds(refusal({{"residual", "prenorm"}}), "there is no block 'prenorm'; did you mean 'pre_norm'?"));
}
