// GGUF files that the package gguf wrote, against the folders from which they come (gguf_files.py).
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "error_of.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/gguf.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/recipe.hpp"
#include "xtape/tokenizers.hpp"

using namespace xtape;

namespace {
const std::string data = source_root() + "/tests/golden/data/";

std::string gguf_file(const std::string& name) {
  read_gguf_files();
  setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1);
  return data + "gguf/" + name + ".gguf";
}

struct Case {
  std::string file, folder;
  std::vector<std::pair<std::string, std::string>> hyper = {};  ///< What files of this architecture cannot say.
  double tolerance = 0;
};
const std::vector<Case> cases{
    {"llama_flat", "llama/flat"},
    {"llama_nested", "llama/nested", {}, -1},  // float16
    {"mistral", "decoders/mistral"},
    {"mixtral", "decoders/mixtral"},
    {"qwen2", "decoders/qwen2"},
    {"qwen3", "qwen3"},
    {"split-00001-of-00003", "qwen3"},
    {"gemma2", "decoders/gemma2", {{"query_scale", "6"}}, 1e-6},  // rounded by the addition of 1
    {"gemma3", "decoders/gemma3", {{"query_scale", "6"}}, 1e-6},
    {"phi", "decoders/phi"},
    {"gpt_neox", "decoders/gpt_neox"},
    {"gpt2", "hugging_face/tiny"},
    {"bert", "encoders/states", {{"activation", "'gelu'"}, {"with_pooler", "false"}}},
};

Array some_tokens(const Model& model) {
  Array tokens(Dtype::int64, Shape{2, 9});
  for (std::int64_t i = 0; i < 18; ++i)
    tokens.as<std::int64_t>()[i] = (i * i * 7 + 3) % (model.hyper().integer("vocab_size") - 2) + 2;
  return tokens;
}

std::vector<float> results(Model& model) {
  const bool bert = model.name() == "bert_encoder";
  const Array tokens = some_tokens(model);
  NamedArrays inputs = {{"tokens", tokens}};
  Array types(Dtype::int64, Shape{2, 9});
  std::fill_n(types.as<std::int64_t>(), 18, 0);
  if (bert) inputs.add("types", types);
  const Array result = model.play(bert ? "encode" : "logits", inputs)[0].value;
  return {result.as<float>(), result.as<float>() + count_of(result.shape())};
}

void round_to_float16(const Model& model) {
  for (const Store::Entry& entry : model.weights())
    if (entry.value.shape().size() >= 2)
      for (std::int64_t i = 0; i < count_of(entry.value.shape()); ++i) {
        float& value = Array(entry.value).as<float>()[i];
        value = static_cast<float>(float16(value));
      }
}
}  // namespace

TEST_CASE("the logits of a GGUF file are those of the folder from which it comes") {
  for (const Case& each : cases) {
    CAPTURE(each.file);
    Model model = open_hugging_face(gguf_file(each.file));
    ModelOptions options;
    options.hyper = each.hyper;
    Model folder = open_hugging_face(data + each.folder, options);
    CHECK(model.name() == folder.name());
    if (each.tolerance < 0) round_to_float16(folder);
    const std::vector<float> found = results(model), wanted = results(folder);
    REQUIRE(found.size() == wanted.size());
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      REQUIRE(std::isfinite(found[i]));
      worst = std::max<double>(worst, std::abs(found[i] - wanted[i]));
    }
    CHECK(worst <= std::max(each.tolerance, 0.0));
    CHECK(hugging_face_warnings(gguf_file(each.file)).empty());
  }
}

TEST_CASE("a file of 16 bits keeps them where weights are stored so") {
  CHECK(stored_weights(gguf_file("llama_nested")) == Dtype::float16);
  CHECK(stored_weights(gguf_file("mistral")) == Dtype::float32);
  ModelOptions options;
  options.weights = Dtype::float16;
  Model narrow = open_hugging_face(gguf_file("llama_nested"), options);
  Model wide = open_hugging_face(gguf_file("llama_nested"));
  CHECK(results(narrow) == results(wide));
}

TEST_CASE("tokenizers of GGUF files give the tokens of their folders") {
  for (const char* name : {"flat", "nested"}) {
    CAPTURE(name);
    const auto found = load_tokenizer(gguf_file(std::string("llama_") + name));
    const auto wanted = load_tokenizer(data + "llama/" + name);
    for (const std::string text : {"the cat sat", " two  spaces ", "won't 1234567 x", "naïve 日本語 \xF0\x9F\x98\x80",
                                   "a\n\n\tb", "", "<s> </s>"}) {
      CAPTURE(text);
      CHECK(found->encode(text) == wanted->encode(text));
      CHECK(found->decode(found->encode(text)) == wanted->decode(wanted->encode(text)));
    }
    CHECK(found->start() == wanted->start());
    CHECK(found->end() == wanted->end());
    CHECK(found->ends() == wanted->ends());
    CHECK(found->begins());
  }
}

TEST_CASE("a folder of the model in a file has everything that the file has") {
  const test::Folder folder;
  const std::string file = gguf_file("llama_flat");
  Model model = open_hugging_face(file);
  save_hugging_face(model, folder / "copy", file);
  Model again = open_hugging_face(folder / "copy");
  CHECK(results(again) == results(model));
  CHECK(load_tokenizer(folder / "copy")->encode("the cat") == load_tokenizer(file)->encode("the cat"));
}

TEST_CASE("a file of a model with a damaged byte before its elements opens, or is an error, in every family") {
  const char* const step = std::getenv("XTAPE_TEST_DAMAGE_STEP");  // 1: each byte
  const std::size_t every = step == nullptr ? 499 : std::stoul(step);
  const test::Folder folder;
  for (const Case& each : cases) {
    if (each.file.starts_with("split")) continue;
    const std::string path = gguf_file(each.file);
    std::ifstream stream(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    std::size_t header = bytes.size();
    {
      const GgufFile file(path);
      for (std::size_t i = 0; i < file.tensors().size(); ++i) header -= file.bytes(i).size();
    }
    for (std::size_t i = each.file.size() * 31 % every; i < header; i += every)
      for (const unsigned char flipped : {0x01, 0x80, 0xFF}) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ flipped);
        const std::string changed = folder.write("damaged.gguf", damaged);
        CAPTURE(each.file);
        CAPTURE(i);
        const std::string error = test::error_of([&] {  // any other exception, or a fault, fails the test
          open_hugging_face(changed);
          load_tokenizer(changed)->encode("the cat");
        });
        CHECK(error.size() < 20000);
      }
  }
}

TEST_CASE("errors name what a file lacks, and what would be right") {
  const test::Folder folder;
  const auto changed = [&](const std::string& name, const std::string& from, const std::string& to) {
    std::ifstream stream(gguf_file(name), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    const std::size_t at = bytes.find(from);
    REQUIRE(at != std::string::npos);
    REQUIRE(from.size() == to.size());
    bytes.replace(at, from.size(), to);
    const std::string path = folder.write("changed.gguf", bytes);
    return test::error_of([&] { open_hugging_face(path); });
  };
  const auto holds = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  holds(changed("qwen3", "architecture\x08", "architecturf\x08"), "'general.architecture' must be there and be a text");
  holds(changed("qwen3", "qwen3.block_count", "qwen3.block_counu"),
        "it has no 'qwen3.block_count', which models of the architecture 'qwen3' need for 'num_hidden_layers'");
  holds(changed("mistral", "llama.attention.head_count_kv", "llama.attention.head_count_kw"), "cannot be divided");
  holds(changed("phi", std::string("phi2.block_count\x04\0\0\0\x02", 21),
                std::string("phi2.block_count\x04\0\0\0\xFF", 21)),
        "'phi2.block_count' is 255, and the tensors have room for");
  holds(changed("phi", "blk.1.ffn_up.weight", "blk.1.ffn_uq.weight"), "unexpected: blk.1.ffn_uq.weight");
  holds(changed("llama_flat", "tokenizer.ggml.scores", "tokenizer.ggml.scorez"),
        "it has no key 'tokenizer.ggml.scores'");
  holds(changed("llama_nested", "llama-bpe", "llama-bqe"), "there is no pre-tokenizer \"llama-bqe\"");
  holds(changed("gemma3", "linear", "linfar"),
        "'gemma3.rope.scaling.type' is \"linfar\"; models of type gemma3_text support none, linear");
}
