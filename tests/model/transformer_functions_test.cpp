// What the functions of the Transformer give: causality and padding, losses, attention weights, states, positions.
#include <doctest/doctest.h>

#include "transformer.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using namespace xtape::test::transformer;

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
    const Sums sums = sums_by_hand(found, batch.targets, excludes);
    REQUIRE(sums.count == 7);
    const auto results = [&](const std::string& function) {
      return play(model, function, batch.source, batch.tokens, batch.targets);
    };
    CHECK(results("loss")[0]() == doctest::Approx(sums.smoothed).epsilon(1e-12));
    CHECK(results("loss")[1]() == 7);
    CHECK(results("plain_loss")[0]() == doctest::Approx(sums.plain).epsilon(1e-12));
    CHECK(results("plain_loss")[1]() == 7);
    CHECK(results("accuracy")[0]() == sums.right);
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
  const double* table = Array(model.weights().at("source_embedding.weight")).as<double>();
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
    const double* vectors = Array(model.weights().at("source_embedding.weight")).as<double>() + 4 * 8;
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
