// T5s in folders as transformers saves them, against what transformers computes on them (t5.py).
#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "whole.hpp"
#include "xtape/decode.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using test::Folder;
using test::numbers;

namespace {
const std::string t5_folders = source_root() + "/tests/golden/data/t5/";
constexpr std::int64_t source_length = 26, target_length = 25, classes = 64;

/// What transformers gives for one of the folders.
struct T5 {
  std::string name;
  Array expected(const std::string& what) const {
    static const Store arrays = test::golden("t5/expected.safetensors");
    return Array(arrays.at(name + "." + what));
  }
  Model open(Dtype dtype = Dtype::float64, const std::string& folder = "") const {
    ModelOptions options;
    options.dtype = dtype;
    options.hyper = {{"dropout_rate", "0"}};
    return open_hugging_face(folder.empty() ? t5_folders + name : folder, options, source_root() + "/models/t5.json");
  }
  /// The largest difference between the model's logits at the first two places and the last two, and those expected.
  double difference(Model model) const {
    const Store results = model.play("logits", {{"source", expected("source")}, {"tokens", expected("tokens")}});
    const std::vector<double> all = numbers(results[0].value);
    std::vector<double> some;
    for (std::int64_t row = 0; row < 2; ++row)
      for (const std::int64_t place : {std::int64_t{0}, std::int64_t{1}, target_length - 2, target_length - 1}) {
        const auto begin = all.begin() + (row * target_length + place) * classes;
        some.insert(some.end(), begin, begin + classes);
      }
    return test::worst(some, numbers(expected("logits")));
  }
  Tokens row(const char* what, std::int64_t row, std::int64_t count) const {
    const Array array = expected(what);
    const std::int64_t* tokens = array.as<std::int64_t>() + row * array.shape()[1];
    return {tokens, tokens + count};
  }
};

const std::vector<T5> both_t5{{"relu"}, {"gated"}};
}  // namespace

TEST_CASE("T5 in a folder: logits of a padded batch, in either dtype") {
  for (const T5& t5 : both_t5) {
    CAPTURE(t5.name);
    CHECK(t5.difference(t5.open()) < 1e-12);
    CHECK(t5.difference(t5.open(Dtype::float32)) < 5e-6);
    CHECK(hugging_face_warnings(t5_folders + t5.name, source_root() + "/models/t5.json").empty());
  }
  const Model gated = both_t5[1].open();
  CHECK(gated.hyper().flag("gated"));
  CHECK(!gated.hyper().flag("scale_outputs"));
  CHECK(gated.hyper().integer("decoder_layers") == 3);
  CHECK(gated.weights().find("lm_head.weight") != nullptr);
}

TEST_CASE("T5 in a folder: copies of the table of words are read, and must be equal") {
  const T5& t5 = both_t5[0];
  const Store stored = load_arrays(t5_folders + t5.name + "/model.safetensors");
  const auto with = [&](const std::vector<std::pair<std::string, double>>& copies, bool shared) {
    const Folder folder(t5_folders + t5.name);
    Store arrays;
    for (const Store::Entry& entry : stored)
      if (shared || entry.name != "shared.weight") arrays.add(entry.name, Array(entry.value));
    for (const auto& [name, more] : copies) {
      Array copy = stored.at("shared.weight").clone();
      copy.as<float>()[3] += static_cast<float>(more);
      arrays.add(name, std::move(copy));
    }
    save_arrays(folder / "model.safetensors", arrays);
    return t5.difference(t5.open(Dtype::float64, folder.path()));
  };
  const std::string encoder = "encoder.embed_tokens.weight", decoder = "decoder.embed_tokens.weight";
  CHECK(with({{encoder, 0}, {decoder, 0}}, true) < 1e-12);
  CHECK(with({{encoder, 0}, {decoder, 0}}, false) < 1e-12);
  CHECK(with({{decoder, 0}}, false) < 1e-12);
  CHECK_THROWS_WITH_AS(with({{encoder, 1}}, true), doctest::Contains("one weight of the definition, and they differ"),
                       FileError);
  CHECK_THROWS_WITH_AS(with({{encoder, 1}, {decoder, 0}}, false), doctest::Contains("'decoder.embed_tokens.weight'"),
                       FileError);
}

TEST_CASE("T5 in a folder: loss and gradients, with rules and without") {
  const std::vector<std::pair<const char*, const char*>> names{
      {"table.weight", "shared.weight"},
      {"encoder_bias.weight", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
      {"decoder_bias.weight", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
      {"encoder.1.self_attention.sublayer.attention.key.weight", "encoder.block.1.layer.0.SelfAttention.k.weight"},
      {"decoder.1.cross_attention.sublayer.value.weight", "decoder.block.1.layer.1.EncDecAttention.v.weight"},
      {"decoder.0.feed_forward.norm.weight", "decoder.block.0.layer.2.layer_norm.weight"},
      {"encoder.0.feed_forward.sublayer.wo.weight", "encoder.block.0.layer.1.DenseReluDense.wo.weight"},
      {"decoder_norm.weight", "decoder.final_layer_norm.weight"}};
  for (const T5& t5 : both_t5)
    for (const PlayerOptions& options : {PlayerOptions{}, test::by_reference()}) {
      CAPTURE(t5.name);
      Store batch;
      for (const char* name : {"source", "tokens", "targets"}) batch.add(name, t5.expected(name));
      const test::Recorded recorded(t5.open(), batch, {{"b", 2}, {"s", source_length}, {"t", target_length}});
      Player player(recorded.tape, recorded.outputs(), options);
      player.play(recorded.feeds);
      CHECK(std::fabs(player.scalar(recorded.loss) - numbers(t5.expected("loss"))[0]) < 1e-12);
      for (const auto& name : names) {
        const std::string ours = name.first, theirs = name.second;
        CAPTURE(ours);
        std::size_t i = 0;
        while (recorded.weights[i].name != ours) ++i;
        CHECK(test::worst(numbers(player.view(recorded.gradients[i])),
                          numbers(t5.expected(std::string("grad.") + theirs))) < 1e-12);
      }
    }
}

TEST_CASE("T5 in a folder: greedy continuations, with caches and without, in batches and alone") {
  for (const T5& t5 : both_t5) {
    CAPTURE(t5.name);
    Model model = t5.open();
    SearchOptions options;
    options.start = options.pad = 0;
    options.ends = {static_cast<std::int32_t>(classes)};  // no token: nothing ends before its greatest length
    options.max_length = 20;
    const std::vector<Tokens> sources{t5.row("source", 0, source_length), t5.row("source", 1, source_length - 9)};
    const auto found = search(model, sources, options);
    const auto replayed = whole::search(model, sources, options);
    for (std::size_t i = 0; i < 2; ++i) {
      const Tokens expected = t5.row("continuation", static_cast<std::int64_t>(i), 20);
      CHECK(found[i][0].tokens == expected);
      CHECK(replayed[i][0].tokens == expected);
      CHECK(search(model, {sources[i]}, options)[0][0].tokens == expected);
    }
  }
}

TEST_CASE("T5 in a folder: logits of pieces by caches are those of the whole, and padding changes nothing") {
  for (const T5& t5 : both_t5) {
    Model model = t5.open();
    const Tokens source = t5.row("source", 1, source_length - 9), tokens = t5.row("tokens", 1, target_length);
    const Store whole = model.play("logits", {{"source", token_array({source})}, {"tokens", token_array({tokens})}});
    Predictor predictor(model);
    const Array sources = token_array({source, t5.row("source", 0, source_length)}, 0, 8);
    predictor.begin(2, {{"source", sources}});
    std::vector<double> found;
    const auto add = [&](const ArrayView& logits, std::int64_t places) {
      const std::vector<double> all = numbers(logits);  // of two rows, the first of which is looked at
      found.insert(found.end(), all.begin(), all.begin() + places * classes);
    };
    add(predictor.step(token_array({Tokens(tokens.begin(), tokens.begin() + 5), Tokens{1}}, 3), {5, 1}), 5);
    add(predictor.step(token_array({Tokens(tokens.begin() + 5, tokens.begin() + 7), {7, 7, 7, 7}}, 9), {2, 4}), 2);
    for (std::size_t i = 7; i < tokens.size(); ++i) add(predictor.step(token_array({{tokens[i]}, {4}})), 1);
    CHECK(test::worst(found, numbers(whole[0].value)) < 1e-12);
  }
}

TEST_CASE("T5 in a folder: written again with the same words and names") {
  for (const T5& t5 : both_t5) {
    CAPTURE(t5.name);
    const Folder to;
    const std::string from = t5_folders + t5.name;
    save_hugging_face(open_hugging_face(from, {}, source_root() + "/models/t5.json"), to.path(), from);
    CHECK(t5.difference(t5.open(Dtype::float64, to.path())) < 1e-12);
    const auto config_in = [](const std::string& folder) {
      auto config = nlohmann::json::parse(std::ifstream(folder + "/config.json"));
      for (const char* key : {"dtype", "torch_dtype"}) config.erase(key);
      return config;
    };
    nlohmann::json expected = config_in(from);
    CHECK(config_in(to.path()) == expected);
    const Store read = load_arrays(from + "/model.safetensors"), written = load_arrays(to / "model.safetensors");
    for (const Store::Entry& entry : written) CHECK(read.find(entry.name) != nullptr);
    CHECK(written.size() == read.size() - (t5.name == "gated" ? 2 : 0));  // but for copies of the table
  }
}

TEST_CASE("T5 with words that the definition does not know is refused") {
  const Folder folder(t5_folders + "relu");
  auto config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
  config["feed_forward_proj"] = "gated-silu";
  folder.write("config.json", config.dump(1));
  CHECK_THROWS_WITH_AS(
      both_t5[0].open(Dtype::float32, folder.path()),
      doctest::Contains("'feed_forward_proj' is \"gated-silu\"; the definition supports relu, gated-gelu"),
      DefinitionError);
}
