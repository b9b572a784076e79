// GGUF files that xtape writes, read again.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "error_of.hpp"
#include "folders.hpp"
#include "gguf/family.hpp"
#include "source_root.hpp"
#include "xtape/gguf.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/tokenizers.hpp"

using namespace xtape;

namespace {
const std::string folders = source_root() + "/tests/golden/data/";

void use_models() {
  read_gguf_files();
  setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1);
}

/// The formats of a file's tensors by their names.
std::map<std::string, std::string> formats_of(const std::string& path) {
  std::map<std::string, std::string> formats;
  const GgufFile file(path);
  for (const GgufFile::Tensor& tensor : file.tensors()) formats[tensor.name] = tensor.format;
  return formats;
}

Model small_llama() {
  ModelOptions options;
  options.hyper = {{"vocab_size", "64"}, {"d_model", "256"}, {"d_ff", "288"},
                   {"layers", "1"},      {"heads", "4"},     {"max_positions", "32"}};
  return Model::load("llama", options);
}

/// The norm of the difference of two models' weights, relative to the norm of the weights.
double distance_of_weights(const Model& a, const Model& b) {
  double difference = 0, norm = 0;
  for (const Store::Entry& entry : a.weights()) {
    const Array other(b.weights().at(entry.name));
    REQUIRE(other.shape() == entry.value.shape());
    for (std::int64_t i = 0; i < count_of(entry.value.shape()); ++i) {
      const double x = Array(entry.value).as<float>()[i], y = other.as<float>()[i];
      difference += (x - y) * (x - y);
      norm += x * x;
    }
  }
  return std::sqrt(difference / norm);
}
}  // namespace

TEST_CASE("a folder that becomes a GGUF file has the same weights there, in every family") {
  use_models();
  const test::Folder made;
  for (const std::string name : {"llama/flat", "llama/nested", "decoders/mistral", "decoders/mixtral", "decoders/qwen2",
                                 "qwen3", "decoders/phi", "decoders/gpt_neox", "hugging_face/tiny"}) {
    CAPTURE(name);
    convert_to_gguf(folders + name, made / "x.gguf");
    const Model folder = open_hugging_face(folders + name), file = open_hugging_face(made / "x.gguf");
    CHECK(folder.name() == file.name());
    CHECK(distance_of_weights(folder, file) == 0);
  }
  CHECK_FALSE(std::filesystem::exists(made / "x.gguf.writing.gguf"));
}

TEST_CASE("a file keeps the tokenizer of its folder, and of another file") {
  use_models();
  const test::Folder made;
  for (const std::string name : {"flat", "nested"}) {
    CAPTURE(name);
    convert_to_gguf(folders + "llama/" + name, made / "x.gguf");
    convert_to_gguf(made / "x.gguf", made / "y.gguf", "F16");
    const auto wanted = load_tokenizer(folders + "llama/" + name);
    for (const char* file : {"x.gguf", "y.gguf"}) {
      const auto found = load_tokenizer(made / file);
      for (const std::string text :
           {"the cat sat", " two  spaces", "won't 1234567", "na\xC3\xAFve \xE6\x97\xA5", "a\n\n b"})
        CHECK(found->encode(text) == wanted->encode(text));
      CHECK(found->ends() == wanted->ends());
      CHECK(found->start() == wanted->start());
    }
  }
}

TEST_CASE("matrices have the format that is asked for, and others what llama.cpp gives them") {
  use_models();
  const test::Folder made;
  const Model model = small_llama();
  const std::pair<const char*, double> most[] = {{"F32", 0},     {"BF16", 0.004}, {"Q8_0", 0.02},
                                                 {"Q5_K", 0.06}, {"Q4_K", 0.12},  {"Q4_0", 0.14}};
  for (const auto& each : most) {
    const auto [format, error] = each;
    CAPTURE(each.first);
    save_gguf(model, made / "x.gguf", format);
    ModelOptions wide;
    wide.weights = Dtype::float32;
    const double off = distance_of_weights(model, open_hugging_face(made / "x.gguf", wide));
    CHECK(off <= error);
    CHECK((off > 0 || error == 0));
  }
  save_gguf(model, made / "x.gguf", "Q4_K");
  const auto formats = formats_of(made / "x.gguf");
  CHECK(formats.at("blk.0.attn_q.weight") == "Q4_K");
  CHECK(formats.at("output.weight") == "Q6_K");
  CHECK(formats.at("token_embd.weight") == "Q4_K");
  CHECK(formats.at("blk.0.attn_norm.weight") == "F32");
  CHECK(formats.at("blk.0.ffn_down.weight") == "Q5_0");  // rows of 288 are no blocks of 256
  CHECK(GgufFile(made / "x.gguf").metadata("general.file_type") == "14");
  CHECK(GgufFile(made / "x.gguf").metadata("llama.attention.head_count") == "4");
}

TEST_CASE("a mixture gives more bits to the matrices to which llama.cpp gives them") {
  use_models();
  const test::Folder made;
  ModelOptions options;
  options.hyper = {{"vocab_size", "64"}, {"d_model", "256"}, {"d_ff", "256"},        {"layers", "16"},
                   {"heads", "4"},       {"tied", "true"},   {"max_positions", "32"}};
  const std::set<std::int64_t> more = {0, 1, 4, 7, 10, 13, 14, 15};  // two first, two last, each third between
  for (const auto& [mixture, usual, number] : {std::tuple("Q4_K_M", "Q4_K", "15"), {"Q5_K_M", "Q5_K", "17"}}) {
    save_gguf(Model::load("llama", options), made / "x.gguf", mixture);
    const auto formats = formats_of(made / "x.gguf");
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::string layer = "blk." + std::to_string(i) + ".";
      CAPTURE(layer);
      for (const char* part : {"attn_v.weight", "ffn_down.weight"})
        CHECK(formats.at(layer + part) == (more.contains(i) ? "Q6_K" : usual));
      for (const char* part : {"attn_q.weight", "attn_k.weight", "attn_output.weight", "ffn_up.weight"})
        CHECK(formats.at(layer + part) == usual);
      CHECK(formats.at(layer + "attn_norm.weight") == "F32");
    }
    CHECK(formats.at("token_embd.weight") == "Q6_K");  // also the outputs
    CHECK(GgufFile(made / "x.gguf").metadata("general.file_type") == number);
  }
  options.hyper = {{"vocab_size", "24"}, {"n_embd", "256"}, {"n_layer", "2"}, {"n_head", "4"}, {"n_positions", "8"}};
  save_gguf(Model::load("gpt2", options), made / "x.gguf", "Q4_K_M");
  CHECK(formats_of(made / "x.gguf").at("blk.0.attn_qkv.weight") == "Q5_K");
  CHECK(formats_of(made / "x.gguf").at("blk.0.ffn_down.weight") == "Q4_K");
  CHECK(formats_of(made / "x.gguf").at("blk.1.ffn_down.weight") == "Q6_K");
}

TEST_CASE("what a file cannot express is an error, and leaves no file") {
  use_models();
  const test::Folder made;
  const auto holds = [&](const auto& action, const std::string& part) {
    const std::string error = test::error_of(action);
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(made / "x.gguf"));
    CHECK_FALSE(std::filesystem::exists(made / "x.gguf.folder.writing"));
  };
  holds([&] { save_gguf(small_llama(), made / "x.gguf", "Q4_X"); }, "there is no format 'Q4_X'");
  holds([&] { convert_to_gguf(folders + "decoders/opt", made / "x.gguf"); }, "models of type 'opt' cannot be written");
  holds([&] { convert_to_gguf(folders + "decoders/gemma2", made / "x.gguf"); },
        "computes something else in a GGUF file");
  holds([&] { convert_to_gguf(folders + "decoders/flat", made / "x.gguf"); }, "has no name in GGUF files of 'phi2'");
  const auto without = [&](const std::string& from, const std::string& tensor) {
    const std::string folder = made / "lacks";
    std::filesystem::remove_all(folder);
    std::filesystem::copy(folders + from, folder, std::filesystem::copy_options::recursive);
    Store store = load_arrays(folder + "/model.safetensors"), rest;
    for (const Store::Entry& entry : store)
      if (entry.name != tensor) rest.add(entry.name, Array(entry.value));
    REQUIRE(rest.size() + 1 == store.size());
    save_arrays(folder + "/model.safetensors", rest);
    return folder;
  };
  holds([&] { convert_to_gguf(without("llama/flat", "model.norm.weight"), made / "x.gguf"); }, "missing: norm.weight");
  Model model = small_llama();
  Array(model.weights().at("layers.0.mlp.up_proj.weight")).as<float>()[3] = std::nanf("");
  holds([&] { convert_to_gguf((save_hugging_face(model, made / "f"), made / "f"), made / "x.gguf", "Q8_0"); },
        "tensor 'blk.0.ffn_up.weight' has numbers that are not finite");
}

TEST_CASE("rows are divided only by sizes whose product is their number, whatever a file says") {
  const auto order = [](std::int64_t heads, std::int64_t rows) {
    return gguf::row_order("heads 2 d -> heads d 2", rows, {{"heads", heads}}, "tensor 'q'");
  };
  CHECK(order(2, 8) == std::vector<std::int64_t>{0, 2, 1, 3, 4, 6, 5, 7});
  for (const std::int64_t heads : {std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 62, std::int64_t{3},
                                   std::int64_t{0}, std::int64_t{-2}})
    CHECK_THROWS_WITH_AS(order(heads, 8), doctest::Contains("has 8 rows, which cannot be divided into"), FileError);
  CHECK_THROWS_AS(order(2, 0), FileError);
}
