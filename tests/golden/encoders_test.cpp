// BERTs in folders as transformers saves them, against what transformers computes on them (encoders.py).
#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using test::Folder;
using test::numbers;

namespace {
const std::string encoder_folders = source_root() + "/tests/golden/data/encoders/";

/// What transformers gives for one of the folders, which `definition` opens.
struct Encoder {
  std::string name, definition;
  Array expected(const std::string& what) const {
    static const Store arrays = test::golden("encoders/expected.safetensors");
    return Array(arrays.at(name + "." + what));
  }
  std::string folder() const { return encoder_folders + name; }
  Model open(Dtype dtype = Dtype::float64, const std::string& from = "") const {
    ModelOptions options;
    options.dtype = dtype;
    return open_hugging_face(from.empty() ? folder() : from, options,
                             source_root() + "/models/" + definition + ".json");
  }
  std::vector<double> expected_numbers(const std::string& what) const { return numbers(expected(what)); }
  /// The largest difference between the logits, of the first three places if there are several, and those expected.
  double difference(Model model, const Array& tokens) const {
    const Array logits = model.play("logits", {{"tokens", tokens}})[0].value;
    std::vector<double> values = numbers(logits), some;
    if (logits.shape().size() == 2) return test::worst(values, expected_numbers("logits"));
    const std::int64_t places = logits.shape()[1], classes = logits.shape()[2];
    for (std::int64_t row = 0; row < logits.shape()[0]; ++row)
      some.insert(some.end(), values.begin() + row * places * classes, values.begin() + (row * places + 3) * classes);
    return test::worst(some, expected_numbers("logits"));
  }
};

const std::vector<Encoder> with_heads{{"classes", "bert"}, {"words", "bert_words"}, {"old", "bert_words"}};

/// While it lives, definitions are found among those of the project.
struct InstalledModels {
  InstalledModels() { setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1); }
  ~InstalledModels() { unsetenv("XTAPE_MODELS"); }
};

}  // namespace

TEST_CASE("BERT in a folder: logits of a padded batch, in either dtype, without warnings") {
  for (const Encoder& encoder : with_heads) {
    CAPTURE(encoder.name);
    CHECK(encoder.difference(encoder.open(), encoder.expected("tokens")) < 1e-12);
    CHECK(encoder.difference(encoder.open(Dtype::float32), encoder.expected("tokens")) < 5e-6);
    CHECK(hugging_face_warnings(encoder.folder(), source_root() + "/models/" + encoder.definition + ".json").empty());
  }
  CHECK(with_heads[0].open().hyper().integer("classes") == 3);
}

TEST_CASE("BERT in a folder: token types, states and the pooled state") {
  for (const Encoder& encoder : {with_heads[0], Encoder{"states", "bert_encoder"}}) {
    Model model = encoder.open();
    const Store batch{{"tokens", encoder.expected("tokens")}, {"types", encoder.expected("types")}};
    if (encoder.name == "classes") {
      CHECK(test::worst(numbers(model.play("pair_logits", batch)[0].value), encoder.expected_numbers("pairs")) < 1e-12);
      continue;
    }
    CHECK(test::worst(numbers(model.play("pooled", batch)[0].value), encoder.expected_numbers("pooled")) < 1e-12);
    CHECK(test::worst(numbers(model.play("encode", batch)[0].value), encoder.expected_numbers("states")) < 1e-12);
  }
}

TEST_CASE("BERT in a folder: loss and every gradient, with rules and without") {
  for (const Encoder& encoder : with_heads)
    for (const PlayerOptions& options : {PlayerOptions{}, test::by_reference()}) {
      CAPTURE(encoder.name);
      Store batch;
      for (const char* name : {"tokens", encoder.name == "classes" ? "label" : "targets"})
        batch.add(name, encoder.expected(name));
      NamedSizes sizes{{"b", 3}, {"t", 9}};
      const test::Recorded recorded(encoder.open(), batch, sizes);
      Player player(recorded.tape, recorded.outputs(), options);
      player.play(recorded.feeds);
      CHECK(std::fabs(player.scalar(recorded.loss) - encoder.expected_numbers("loss")[0]) < 1e-12);
      for (std::size_t i = 0; i < recorded.weights.size(); ++i) {
        CAPTURE(recorded.weights[i].name);
        CHECK(test::worst(test::weighted_sums(numbers(player.view(recorded.gradients[i]))),
                          encoder.expected_numbers("grad." + recorded.weights[i].name)) < 1e-11);
      }
    }
}

TEST_CASE("BERT in a folder: the words have the bias of their decoder if the file has one, tied or not") {
  const Encoder& words = with_heads[1];
  const std::vector<double> before =
      numbers(words.open().play("logits", {{"tokens", words.expected("tokens")}})[0].value);
  const Store stored = load_arrays(words.folder() + "/model.safetensors");
  const Array& bias = stored.at("cls.predictions.bias");
  for (const bool tied : {true, false})
    for (const bool both : {true, false}) {
      const Folder folder(words.folder()), again;
      auto config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
      config["tie_word_embeddings"] = tied;
      folder.write("config.json", config.dump());
      Store arrays;
      for (const Store::Entry& entry : stored)
        if (both || entry.name != "cls.predictions.bias") arrays.add(entry.name, Array(entry.value));
      Array moved = bias.clone();
      for (std::int64_t i = 0; i < moved.count(); ++i) moved.as<float>()[i] += 3;
      arrays.add("cls.predictions.decoder.bias", std::move(moved));
      if (!tied)
        arrays.add("cls.predictions.decoder.weight", Array(stored.at("bert.embeddings.word_embeddings.weight")));
      save_arrays(folder / "model.safetensors", arrays);
      save_hugging_face(words.open(Dtype::float64, folder.path()), again.path(), folder.path());
      for (const std::string& path : {folder.path(), again.path()}) {
        Model model = words.open(Dtype::float64, path);
        std::vector<double> after = numbers(model.play("logits", {{"tokens", words.expected("tokens")}})[0].value);
        for (double& each : after) each -= 3;
        CHECK(test::worst(after, before) < 1e-6);
      }
      CHECK(load_arrays(again / "model.safetensors").find("cls.predictions.decoder.bias") != nullptr);
    }
}

TEST_CASE("BERT in a folder: more padding changes nothing, nor do the rows beside") {
  for (const Encoder& encoder : with_heads) {
    CAPTURE(encoder.name);
    Model model = encoder.open();
    const Array tokens = encoder.expected("tokens");
    const std::int64_t* first = tokens.as<std::int64_t>();
    const std::vector<Tokens> rows{Tokens(first, first + 9), Tokens(first + 9, first + 15),
                                   Tokens(first + 18, first + 22)};
    CHECK(encoder.difference(encoder.open(), token_array(rows, 0, 13)) < 1e-12);
    const std::vector<double> alone = numbers(model.play("logits", {{"tokens", token_array({rows[2]})}})[0].value);
    const std::vector<double> all = numbers(model.play("logits", {{"tokens", tokens}})[0].value);
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 3 * 2);
    CHECK(test::worst({row, row + static_cast<std::ptrdiff_t>(alone.size())}, alone) < 1e-13);
  }
}

TEST_CASE(
    "BERT in a folder: the architecture in config.json chooses the definition; written again with its own words") {
  const InstalledModels models;
  for (const Encoder& encoder : with_heads) {
    CAPTURE(encoder.name);
    const Model model = open_hugging_face(encoder.folder());
    CHECK(model.name() == encoder.definition);
    const Folder to;
    save_hugging_face(model, to.path(), encoder.folder());
    CHECK(encoder.difference(encoder.open(Dtype::float64, to.path()), encoder.expected("tokens")) < 1e-12);
    const auto before = nlohmann::json::parse(std::ifstream(encoder.folder() + "/config.json")),
               after = nlohmann::json::parse(std::ifstream(to / "config.json"));
    if (encoder.name != "old") CHECK(after["architectures"] == before["architectures"]);
    CHECK(after.contains("id2label") == (encoder.name == "classes"));
    if (encoder.name == "classes") CHECK(after["id2label"] == before["id2label"]);
  }
  const Folder folder(encoder_folders + "words");
  auto config = nlohmann::json::parse(std::ifstream(folder / "config.json"));
  config["architectures"] = {"BertForTokenClassification"};
  folder.write("config.json", config.dump(1));
  CHECK_THROWS_WITH_AS(open_hugging_face(folder.path()),
                       doctest::Contains("the architecture is \"BertForTokenClassification\"; "), DefinitionError);
}
