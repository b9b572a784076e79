// Adapters in GGUF files of llama.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>

#include "distance.hpp"
#include "error_of.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/gguf.hpp"
#include "xtape/hugging_face.hpp"

using namespace xtape;

namespace {
const std::string golden = source_root() + "/tests/golden/data/";

/// The model of a folder with adapters of all linear maps, whose numbers are not zero.
Model adapted(const std::string& folder, const std::string& definition) {
  read_gguf_files();
  setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1);
  ModelOptions options;
  options.hyper = {{"rank", "3"}, {"alpha", "6"}, {"targets", "'*'"}};
  Model model = open_hugging_face(folder, options, definition, {"*.lora_?"});
  int number = 0;
  for (const Store::Entry& entry : model.weights())
    if (entry.name.find(".lora_") != std::string::npos) {
      Array weight = model.weight(entry.name);
      for (std::int64_t i = 0; i < weight.count(); ++i)
        weight.as<float>()[i] = static_cast<float>(0.1 * std::sin(++number));
    }
  return model;
}

Array logits_of(Model& model) {
  Array tokens(Dtype::int64, Shape{1, 9});
  for (std::int64_t i = 0; i < 9; ++i)
    tokens.as<std::int64_t>()[i] = (i * i + 3) % (model.hyper().integer("vocab_size") - 2) + 2;
  return Array(model.play("logits", {{"tokens", tokens}})[0].value);
}

std::map<std::string, Array> tensors_of(const std::string& path) {
  const GgufFile file(path);
  std::map<std::string, Array> tensors;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) tensors.emplace(file.tensors()[i].name, file.read(i));
  return tensors;
}

/// weight + scale · B A
Array merged(const Array& weight, const Array& a, const Array& b, float scale) {
  Array sum = weight.clone();
  const std::int64_t rows = weight.shape()[0], columns = weight.shape()[1], rank = a.shape()[0];
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t k = 0; k < rank; ++k)
        sum.as<float>()[i * columns + j] += scale * b.as<float>()[i * rank + k] * a.as<float>()[k * columns + j];
  return sum;
}
}  // namespace

TEST_CASE("adapters in a GGUF file change the tensors of the base as merging does, and open again, in every family") {
  const std::pair<const char*, const char*> families[] = {
      {"llama/flat", "llama_lora"},         {"qwen3", "qwen3_lora"},      {"decoders/qwen2", "qwen2_lora"},
      {"decoders/mixtral", "mixtral_lora"}, {"decoders/phi", "phi_lora"}, {"decoders/gpt_neox", "gpt_neox_lora"},
      {"hugging_face/tiny", "gpt2_lora"}};
  for (const auto& each : families) {
    const auto [folder, definition] = each;
    CAPTURE(each.first);
    const test::Folder made;
    const std::string base = golden + folder;
    Model model = adapted(base, definition);
    save_adapter(model, made / "peft", base);
    convert_adapter_to_gguf(made / "peft", base, made / "low.gguf");
    convert_to_gguf(base, made / "base.gguf");
    save_gguf(model, made / "merged.gguf", "F32", base);
    const auto before = tensors_of(made / "base.gguf"), after = tensors_of(made / "merged.gguf"),
               low = tensors_of(made / "low.gguf");
    int changed = 0;
    for (const auto& entry : before) {
      const auto& [name, tensor] = entry;
      const bool has = low.count(name + ".lora_a") > 0;
      const Array sum =
          has ? merged(tensor, low.at(name + ".lora_a"), low.at(name + ".lora_b"), 6.0F / 3) : Array(tensor);
      CAPTURE(entry.first);
      CHECK(relative_distance(sum, after.at(name)) < 1e-5);
      changed += has ? 1 : 0;
    }
    CHECK(changed > 0);
    CHECK(std::size_t(changed) * 2 == low.size());
    const GgufFile file(made / "low.gguf");
    CHECK(file.metadata("general.type") == "\"adapter\"");
    CHECK(file.metadata("adapter.type") == "\"lora\"");
    CHECK(file.metadata("adapter.lora.alpha") == "6.0");
    for (const std::string& under : {base, made / "base.gguf"}) {
      Model again = open_hugging_face(under, {}, "", {}, made / "low.gguf");
      CHECK(again.name() == definition);
      CHECK(relative_distance(logits_of(again), logits_of(model)) < 1e-6);
      CHECK(hugging_face_warnings(under, "", made / "low.gguf").empty());
    }
  }
}

TEST_CASE("errors of adapters in GGUF files name the file and what would be right") {
  const test::Folder made;
  const std::string base = golden + "llama/flat";
  Model model = adapted(base, "llama_lora");
  save_adapter(model, made / "peft", base);
  convert_adapter_to_gguf(made / "peft", base, made / "low.gguf");
  convert_to_gguf(base, made / "base.gguf");
  const auto holds = [](const std::string& error, const std::string& part) {
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
  };
  holds(test::error_of([&] { open_hugging_face(made / "low.gguf"); }), "name the model, and --adapter");
  holds(test::error_of([&] { open_hugging_face(base, {}, "", {}, made / "base.gguf"); }), "it is a whole model");
  holds(test::error_of([&] { open_hugging_face(golden + "qwen3", {}, "", {}, made / "low.gguf"); }),
        "are for models of the architecture \"llama\"");
  std::ifstream stream(made / "low.gguf", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = bytes;
    other.replace(other.find(from), from.size(), to);
    const std::string path = made.write("bad.gguf", other);
    return test::error_of([&] { open_hugging_face(base, {}, "", {}, path); });
  };
  const std::string alpha = "adapter.lora.alpha", of_float("\6\0\0\0", 4);
  const auto with = [&](const float& value) {
    return alpha + of_float + std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const float number : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()})
    holds(changed(with(6), with(number)), "bad.gguf': the key 'adapter.lora.alpha' must be a finite number");
  holds(changed("attn_q.weight.lora_a", "attn_q.weight.lora_c"), "names end with .lora_a and .lora_b");
  holds(changed("blk.0.attn_q.weight.lora_a", "blk.0.attn_z.weight.lora_a"), "belongs to no weight of 'llama'");
  holds(changed("blk.0.attn_q.weight.lora_a", "blk.9.attn_q.weight.lora_a"), "an adapter needs both");
}
