// models/gru_attention.json against the same written as loops over numbers, step by step.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "recurrent_models.hpp"
#include "transformer.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using test::Variant;
using test::transformer::Example;
using test::transformer::Values;

namespace {
using List = std::vector<double>;

List operator+(List a, const List& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b.at(i);
  return a;
}
List joined(List a, const List& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
List part(const List& a, std::size_t which, std::size_t size) {
  const auto begin = a.begin() + static_cast<std::ptrdiff_t>(which * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}
List each(List a, double (*function)(double)) {
  for (double& x : a) x = function(x);
  return a;
}
double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}
double tanh_of(double x) {
  return std::tanh(x);
}

/// What the decoder gives for one sentence.
struct Said {
  std::vector<List> logits, weights;
};

/// One sentence at a time, from the weights of a model.
class ByHand {
 public:
  explicit ByHand(const Model& model) : model_(model) {}

  /// Without padding. Where bit t of `forced` is 0, step t reads what the decoder said last, not token t.
  Said said(const std::vector<std::int64_t>& source, const std::vector<std::int64_t>& tokens, unsigned forced) const {
    const bool both_ways = model_.hyper().integer("directions") == 2, samples = !has("decoder.embedding.weight");
    const std::string decoder = samples ? "sampling.decoder." : "decoder.";
    std::vector<List> memory = encoded("encoder.forward", source);
    List h = memory.back();
    if (both_ways) {
      std::vector<List> back = encoded("encoder.backward", {source.rbegin(), source.rend()});
      h = joined(h, back.back());
      for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = joined(memory[i], back[memory.size() - 1 - i]);
    }
    if (model_.hyper().flag("bridge")) h = each(full("first", h), tanh_of);

    Said result;
    std::int64_t last = tokens.at(0);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      // weights = softmax(score, axis=1); context = sum(weights * EO, axis=1)
      List weights;
      double total = 0;
      for (const List& state : memory) {
        weights.push_back(std::exp(score(decoder, state, h)));
        total += weights.back();
      }
      List context(memory[0].size());
      for (std::size_t i = 0; i < memory.size(); ++i) {
        weights[i] /= total;
        for (std::size_t k = 0; k < context.size(); ++k) context[k] += weights[i] * memory[i][k];
      }
      // merged = concat(embedding, context), whose matrix is two that stand side by side
      const List embedded = row(decoder + "embedding", (forced >> t & 1) == 1 ? tokens[t] : last);
      h = gru(full(decoder + "step.cell.input", embedded) + full(decoder + "step.context", context), h,
              decoder + "step.cell");
      const bool deep = model_.hyper().flag("deep_output");
      result.logits.push_back(full(decoder + "output", deep ? joined(joined(h, context), embedded) : h));
      result.weights.push_back(weights);
      const List& logits = result.logits.back();
      last = std::max_element(logits.begin(), logits.end()) - logits.begin();
    }
    return result;
  }

 private:
  /// How well a state of the memory fits that of the decoder.
  double score(const std::string& decoder, const List& memory, const List& h) const {
    const std::string& kind = model_.hyper().text("attention");
    if (kind == "additive")  // FC(tanh(FC(EO) + FC(H)))
      return full(decoder + "step.score", each(full("key", memory) + full(decoder + "step.query", h), tanh_of)).at(0);
    const List key = kind == "general" ? full("key", memory) : memory;
    return std::inner_product(h.begin(), h.end(), key.begin(), 0.0);
  }
  bool has(const std::string& name) const { return model_.weights().find(name) != nullptr; }

  List row(const std::string& name, std::int64_t index) const {
    const Array& table = model_.weights().at(name + ".weight");
    const double* begin = table.as<double>() + index * table.shape()[1];
    return {begin, begin + table.shape()[1]};
  }
  /// A fully connected layer.
  List full(const std::string& name, const List& x) const {
    List y;
    for (std::int64_t i = 0; i < model_.weights().at(name + ".weight").shape()[0]; ++i) {
      const List weights = row(name, i);
      double sum = has(name + ".bias") ? model_.weights().at(name + ".bias").as<double>()[i] : 0;
      for (std::size_t k = 0; k < x.size(); ++k) sum += weights.at(k) * x[k];
      y.push_back(sum);
    }
    return y;
  }
  List gru(const List& x, const List& h, const std::string& name) const {
    const List recurrent = full(name + ".recurrent", h);
    const std::size_t units = h.size();
    const List r = each(part(x, 0, units) + part(recurrent, 0, units), sigmoid_of);
    const List z = each(part(x, 1, units) + part(recurrent, 1, units), sigmoid_of);
    List next;
    for (std::size_t i = 0; i < units; ++i)
      next.push_back(z[i] * h[i] + (1 - z[i]) * std::tanh(x[2 * units + i] + r[i] * recurrent[2 * units + i]));
    return next;
  }
  std::vector<List> encoded(const std::string& name, const std::vector<std::int64_t>& source) const {
    std::vector<List> states;
    List h(static_cast<std::size_t>(model_.hyper().integer("units")));
    for (const std::int64_t token : source)
      states.push_back(h = gru(full(name + ".input", row("embedding", token)), h, name));
    return states;
  }

  const Model& model_;
};

/// Row b of the example, without the source's padding.
Said said(const Model& model, std::size_t b, unsigned forced) {
  const Example batch;
  std::vector<std::int64_t> source, tokens;
  for (std::size_t i = 0; i < 5; ++i)
    if (batch.source(b, i) != 0) source.push_back(batch.source(b, i));
  for (std::size_t i = 0; i < 4; ++i) tokens.push_back(batch.tokens(b, i));
  return ByHand(model).said(source, tokens, forced);
}

/// The greatest difference between row b of logits [b, t, classes] and those by hand.
double difference(const Values& logits, std::size_t b, const Said& expected) {
  double most = 0;
  for (std::size_t t = 0; t < 4; ++t)
    for (std::size_t v = 0; v < 11; ++v) most = std::max(most, std::abs(logits(b, t, v) - expected.logits[t].at(v)));
  return most;
}

constexpr unsigned all_four = 15, only_first = 1;  // of four tokens

Values logits(const Model& model, Mode mode = Mode::eval) {
  const Example batch;
  return test::play(model, "logits", {{"b", 2}, {"s", 5}, {"t", 4}}, {batch.source, batch.tokens}, mode)[0];
}
}  // namespace

TEST_CASE("gru_attention: logits and attention weights are those of loops over numbers, with the padding hidden") {
  const Example batch;
  for (const char* directions : {"1", "2"})
    for (const char* deep : {"false", "true"})
      for (const char* bridge : {"false", "true"}) {
        if (*directions == '2' && *bridge == 'f') continue;  // the states would not fit
        for (const char* forcing : {"1.0", "0.5"}) {
          const Model model = test::load_variant(
              {"gru_attention",
               {{"directions", directions}, {"deep_output", deep}, {"bridge", bridge}, {"teacher_forcing", forcing}}});
          CAPTURE(directions);
          CAPTURE(deep);
          CAPTURE(bridge);
          CAPTURE(forcing);
          const Values found = logits(model);
          const Values weights = test::transformer::play(model, "attention", batch.source, batch.tokens)[0];
          for (std::size_t b = 0; b < 2; ++b) {
            const Said expected = said(model, b, all_four);
            CHECK(difference(found, b, expected) < 1e-13);
            for (std::size_t t = 0; t < 4; ++t)
              for (std::size_t i = 0; i < 5; ++i) {
                const double weight = i < expected.weights[t].size() ? expected.weights[t][i] : 0;
                CHECK(std::abs(weights(0, b, 0, t, i) - weight) < 1e-13);
              }
          }
        }
      }
}

TEST_CASE("gru_attention: dot and general attention are those of loops over numbers") {
  for (const char* directions : {"1", "2"})
    for (const char* attention : {"dot", "general"}) {
      if (*directions == '2' && *attention == 'd') continue;  // the states would not fit
      CAPTURE(directions);
      CAPTURE(attention);
      const Model model = test::load_variant(
          {"gru_attention", {{"directions", directions}, {"attention", "'" + std::string(attention) + "'"}}});
      CHECK(model.weights().has("key.bias") == false);
      CHECK(model.weights().has("key.weight") == (*attention == 'g'));
      const Values found = logits(model);
      for (std::size_t b = 0; b < 2; ++b) CHECK(difference(found, b, said(model, b, all_four)) < 1e-13);
    }
}

TEST_CASE("gru_attention: with any teacher forcing, eval is given the target, as with all of it") {
  const Model forced = test::load_variant({"gru_attention", {}});
  const Model sampling = test::load_variant({"gru_attention", {{"teacher_forcing", "0.5"}}});
  REQUIRE(forced.weights().size() == sampling.weights().size());
  for (const Store::Entry& entry : forced.weights()) {
    const std::string decoder = "decoder.";
    const bool decodes = entry.name.rfind(decoder, 0) == 0;
    Array to(sampling.weights().at(decodes ? "sampling." + entry.name : entry.name));
    const Array& from = entry.value;
    REQUIRE(to.shape() == from.shape());
    std::copy(from.as<double>(), from.as<double>() + from.count(), to.as<double>());
  }
  CHECK(test::same(logits(forced), logits(sampling)));
  CHECK(test::same(logits(forced), logits(forced, Mode::train)));
  CHECK_FALSE(test::same(logits(forced), logits(sampling, Mode::train)));
}

TEST_CASE("gru_attention: without teacher forcing, training reads what the decoder itself finds most likely") {
  for (const char* deep : {"false", "true"}) {
    const Model model = test::load_variant({"gru_attention", {{"deep_output", deep}, {"teacher_forcing", "0.0"}}});
    const Values own = logits(model, Mode::train);
    for (std::size_t b = 0; b < 2; ++b) CHECK(difference(own, b, said(model, b, only_first)) < 1e-13);
    CHECK_FALSE(test::same(own, logits(model)));
  }
}

TEST_CASE("gru_attention: with some teacher forcing, training gives each token or not, by its probability") {
  const Model model = test::load_variant({"gru_attention", {{"units", "7"}, {"teacher_forcing", "0.75"}}});
  const Example batch;
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "logits", {{"b", 2}, {"s", 5}, {"t", 4}});
  const Var result = model.record(tape, "logits", inputs)[0].value;
  Player player(tape, {result});
  std::vector<std::vector<Said>> expected(2);
  for (std::size_t b = 0; b < 2; ++b)
    for (unsigned forced = only_first; forced <= all_four; forced += 2) expected[b].push_back(said(model, b, forced));
  std::size_t given = 0, matched = 0;
  for (std::uint64_t step = 0; step < 200; ++step) {
    player.play({{inputs[0].value, batch.source}, {inputs[1].value, batch.tokens}}, step);
    const Values found = player.value<double>(result);
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t i = 0; i < 8; ++i)
        if (difference(found, b, expected[b][i]) < 1e-13) {
          ++matched;
          given += (i & 1) + (i >> 1 & 1) + (i >> 2 & 1);
        }
  }
  CHECK(matched == 400);  // one way each: what the decoder finds most likely is never the token that comes
  CHECK(std::abs(static_cast<double>(given) / 1200 - 0.75) < 0.05);
}

TEST_CASE("gru_attention: what does not fit together is refused") {
  const auto refusal = [](const std::string& name, const std::string& value) {
    return test::error_of([&] { logits(test::load_variant({"gru_attention", {{"bridge", "false"}, {name, value}}})); });
  };
  const auto holds = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(refusal("directions", "1").empty());
  CHECK(holds(refusal("directions", "2"), "directions is 1, or 2 with the bridge"));
  CHECK(holds(refusal("directions", "3"), "directions is 1, or 2 with the bridge"));
  CHECK(holds(refusal("teacher_forcing", "-0.5"), "teacher_forcing is between 0 and 1"));
  CHECK(holds(refusal("teacher_forcing", "1.5"), "teacher_forcing is between 0 and 1"));
  CHECK(holds(refusal("attention", "'dto'"), "attention is additive, dot or general"));
}
