// Models that continue texts, in folders as transformers saves them, against what transformers computes (decoders.py).
#include <nlohmann/json.hpp>

#include "error_of.hpp"
#include "fixture.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "whole.hpp"
#include "xtape/decode.hpp"
#include "xtape/hugging_face.hpp"

using namespace xtape;
using test::Folder;
using test::numbers;

namespace {
const std::string decoder_folders = source_root() + "/tests/golden/data/decoders/";
constexpr std::int64_t decoder_tokens = 9, decoder_classes = 37;

/// What transformers gives for one of the folders, which `definition` opens.
struct Decoder {
  std::string name, definition;
  Array expected(const std::string& what) const { return Array(all().at(name + "." + what)); }
  static const Store& all() {
    static const Store arrays = test::golden("decoders/expected.safetensors");
    return arrays;
  }
  std::string folder() const { return decoder_folders + name; }
  Model open(Dtype dtype = Dtype::float64, const std::string& from = "") const {
    ModelOptions options;
    options.dtype = dtype;
    return open_hugging_face(from.empty() ? folder() : from, options,
                             source_root() + "/models/" + definition + ".json");
  }
  /// The largest difference between the model's logits at the last two places and those expected.
  double difference(Model model) const {
    const Array logits = model.play("logits", {{"tokens", expected("tokens")}})[0].value;
    const std::vector<double> values = numbers(logits);
    std::vector<double> last;
    for (std::int64_t row = 0; row < 2; ++row)
      last.insert(last.end(), values.begin() + ((row + 1) * decoder_tokens - 2) * decoder_classes,
                  values.begin() + (row + 1) * decoder_tokens * decoder_classes);
    return test::worst(last, numbers(expected("logits")));
  }
  Tokens row(std::int64_t row, std::int64_t count) const {
    const Array tokens = expected("tokens");
    const std::int64_t* first = tokens.as<std::int64_t>() + row * decoder_tokens;
    return {first, first + count};
  }
};

const std::vector<Decoder> decoders{{"gpt_neox", "gpt_neox"},
                                    {"sequential", "gpt_neox"},
                                    {"phi", "phi"},
                                    {"flat", "phi"},
                                    {"opt", "opt"},
                                    {"late", "opt"},
                                    {"mistral", "mistral"},
                                    {"gemma2", "gemma2"},
                                    {"gemma3", "gemma3_text"},
                                    {"earlier", "gemma3_text"},
                                    {"qwen2", "qwen2"},
                                    {"mixtral", "mixtral"},
                                    {"qwen3_moe", "qwen3_moe"},
                                    {"mamba2", "mamba2"}};

}  // namespace

TEST_CASE("decoders in folders: logits, in either dtype, without warnings") {
  for (const Decoder& decoder : decoders) {
    CAPTURE(decoder.name);
    CHECK(decoder.difference(decoder.open()) < 1e-12);
    CHECK(decoder.difference(decoder.open(Dtype::float32)) < 5e-6);
    CHECK(hugging_face_warnings(decoder.folder(), source_root() + "/models/" + decoder.definition + ".json").empty());
  }
}

TEST_CASE("decoders in folders: loss and every gradient, with rules and without") {
  for (const Decoder& decoder : decoders)
    for (const PlayerOptions& options : {PlayerOptions{}, test::by_reference()}) {
      CAPTURE(decoder.name);
      Store batch;
      for (const char* name : {"tokens", "targets"}) batch.add(name, decoder.expected(name));
      const test::Recorded recorded(decoder.open(), batch, {{"b", 2}, {"t", decoder_tokens}});
      Player player(recorded.tape, recorded.outputs(), options);
      player.play(recorded.feeds);
      CHECK(std::fabs(player.scalar(recorded.loss) - numbers(decoder.expected("loss"))[0]) < 1e-12);
      for (std::size_t i = 0; i < recorded.weights.size(); ++i) {
        CAPTURE(recorded.weights[i].name);
        CHECK(test::worst(test::weighted_sums(numbers(player.view(recorded.gradients[i]))),
                          numbers(decoder.expected("grad." + recorded.weights[i].name))) < 1e-11);
      }
    }
}

TEST_CASE("decoders in folders: greedy continuations, with caches and without") {
  for (const Decoder& decoder : decoders) {
    CAPTURE(decoder.name);
    const Array continuation = decoder.expected("continuation");
    const std::int64_t* first = continuation.as<std::int64_t>();
    Model model = decoder.open();
    GenerateOptions options;
    options.tokens = 12;
    options.context = 40;
    options.sampling.temperature = 0;
    CHECK(generate(model, decoder.row(0, 6), options) == Tokens(first, first + 12));
    CHECK(whole::generate(model, decoder.row(0, 6), options) == Tokens(first, first + 12));
  }
}

TEST_CASE("decoders in folders: what is after a row, or beside it, changes nothing") {
  for (const Decoder& decoder : decoders) {
    CAPTURE(decoder.name);
    Model model = decoder.open();
    const std::vector<double> alone =
        numbers(model.play("logits", {{"tokens", token_array({decoder.row(1, 5)})}})[0].value);
    const Array padded = token_array({decoder.row(1, 5), decoder.row(0, 9)});
    std::vector<double> beside = numbers(model.play("logits", {{"tokens", padded}})[0].value);
    beside.resize(alone.size());
    CHECK(test::worst(beside, alone) < 1e-13);
  }
}

TEST_CASE("decoders in folders: written again in the words that they came in") {
  for (const Decoder& decoder : decoders) {
    CAPTURE(decoder.name);
    const Folder to;
    save_hugging_face(decoder.open(Dtype::float32), to.path(), decoder.folder());
    CHECK(decoder.difference(decoder.open(Dtype::float64, to.path())) < 1e-12);
    const auto config_in = [](const std::string& folder) {
      auto config = nlohmann::json::parse(std::ifstream(folder + "/config.json"));
      for (const char* key : {"dtype", "torch_dtype"}) config.erase(key);
      return config;
    };
    nlohmann::json expected = config_in(decoder.folder()), found = config_in(to.path());
    for (const auto& item : expected.items()) CHECK_MESSAGE(found[item.key()] == item.value(), item.key());
    const Store read = load_arrays(decoder.folder() + "/model.safetensors"),
                written = load_arrays(to / "model.safetensors");
    CHECK(written.size() == read.size());
    for (const Store::Entry& entry : written) CHECK(read.find(entry.name) != nullptr);
  }
}

TEST_CASE("decoders in folders: experts that are missing, of another shape or too many") {
  const Decoder mixtral{"mixtral", "mixtral"};
  const Folder to;
  std::filesystem::copy_file(mixtral.folder() + "/config.json", to / "config.json");
  const std::string expert = "model.layers.0.block_sparse_moe.experts.";
  Store changed;
  for (const Store::Entry& entry : load_arrays(mixtral.folder() + "/model.safetensors")) {
    const bool turned = entry.name == expert + "1.w2.weight";
    changed.add(entry.name == expert + "3.w1.weight" ? expert + "9.w1.weight" : entry.name,
                turned ? Array(Dtype::float32, {20, 16}) : Array(entry.value));
  }
  save_arrays(to / "model.safetensors", changed);
  const std::string error = test::error_of([&] { mixtral.open(Dtype::float32, to.path()); });
  CHECK(error.find("missing: layers.0.mlp.experts.gate (5, 20, 16), number 3 of its first axis") != std::string::npos);
  CHECK(error.find("of another shape: " + expert + "1.w2.weight is (20, 16), the model's is (16, 20)") !=
        std::string::npos);
  CHECK(error.find("unexpected: " + expert + "9.w1.weight") != std::string::npos);
}
