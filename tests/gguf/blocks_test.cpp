// Weights in blocks stay as they are when a GGUF file is opened.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "distance.hpp"
#include "error_of.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/gguf.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/ops.hpp"
#include "xtape/recipe.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/train.hpp"

using namespace xtape;

namespace {
/// A Llama whose sums are whole blocks of 256 numbers, in a file of this format.
std::string written(const test::Folder& folder, const std::string& format) {
  read_gguf_files();
  setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1);
  ModelOptions options;
  options.hyper = {{"vocab_size", "24"}, {"d_model", "256"}, {"d_ff", "256"},  {"layers", "1"},
                   {"heads", "4"},       {"std", "0.1"},     {"tied", "true"}, {"max_positions", "32"}};
  save_gguf(Model::load("llama", options), folder / "x.gguf", format);
  return folder / "x.gguf";
}

ModelOptions stored_as(Dtype dtype) {
  ModelOptions options;
  options.weights = dtype;
  return options;
}

Array logits(Model& model) {
  Array tokens(Dtype::int64, Shape{1, 12});
  for (std::int64_t i = 0; i < 12; ++i) tokens.as<std::int64_t>()[i] = (i * i + 3) % 24;
  return Array(model.play("logits", {{"tokens", tokens}})[0].value);
}

std::size_t bytes_of_weights(const Model& model) {
  std::size_t bytes = 0;
  for (const Store::Entry& entry : model.weights()) bytes += entry.value.bytes();
  return bytes;
}

std::string bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The place of an array in the file of a model.
std::size_t entry_of(const ArrayFile& file, const std::string& name) {
  for (std::size_t i = 0; i < file.entries().size(); ++i)
    if (file.entries()[i].name.ends_with(name)) return i;
  FAIL("no array " << name);
  return 0;
}
}  // namespace

TEST_CASE("matrices stay in the blocks of a file, and logits are those of the numbers") {
  for (const std::string format : {"Q8_0", "Q6_K", "Q5_K", "Q4_K", "Q4_0"}) {
    CAPTURE(format);
    const test::Folder folder;
    const std::string path = written(folder, format);
    Model blocks = open_hugging_face(path), wide = open_hugging_face(path, stored_as(Dtype::float32));
    for (const Store::Entry& entry : blocks.weights()) {
      const bool is_matrix = entry.value.shape().size() == 2, is_table = entry.name == "embed_tokens.weight";
      const std::string wanted = !is_matrix ? "float32" : is_table && format != "Q8_0" ? "Q6_K" : format;
      CHECK(name_of(entry.value.dtype()) == wanted);
      CHECK(wide.weights().at(entry.name).dtype() == Dtype::float32);
    }
    CHECK(stored_weights(path) == dtype_named(format));
    CHECK(bytes_of_weights(blocks) <= std::filesystem::file_size(path));
    CHECK(bytes_of_weights(wide) > 3 * bytes_of_weights(blocks));
    CHECK(relative_distance(logits(blocks), logits(wide)) < 1e-5);
  }
}

TEST_CASE("a format without arrays becomes floats, and blocks become other storage where it is asked for") {
  const test::Folder folder;
  const std::string path = written(folder, "Q5_1");
  Model model = open_hugging_face(path), q4 = open_hugging_face(path, stored_as(Dtype::q4_k));
  CHECK(model.weights().at("layers.0.mlp.up_proj.weight").dtype() == Dtype::float32);
  CHECK(q4.weights().at("layers.0.mlp.up_proj.weight").dtype() == Dtype::q4_k);
  CHECK(relative_distance(logits(q4), logits(model)) < 0.5);
  const std::string fine = written(folder, "Q8_0");
  Model blocks = open_hugging_face(fine);
  for (const Dtype dtype : {Dtype::q4_k, Dtype::bfloat16, Dtype::int8}) {
    Model other = open_hugging_face(fine);
    if (dtype == Dtype::q4_k)
      other = open_hugging_face(fine, stored_as(dtype));
    else
      other.store_weights_as(dtype);
    CHECK(other.weights().at("layers.0.self_attn.q_proj.weight").dtype() == dtype);
    CHECK(relative_distance(logits(other), logits(blocks)) < 0.5);
  }
  WeightDtypes one;  // the others stay as they are
  one.add("*.up_proj.*", Dtype::float32);
  ModelOptions options;
  options.weights = one;
  const Model mixed = open_hugging_face(fine, options);
  CHECK(mixed.weights().at("layers.0.mlp.up_proj.weight").dtype() == Dtype::float32);
  CHECK(mixed.weights().at("layers.0.mlp.gate_proj.weight").dtype() == Dtype::q8_0);
}

TEST_CASE("blocks whose rows keep their order are in the file; writing to them does not change it") {
  const test::Folder folder;
  const std::string path = written(folder, "Q4_K"), before = bytes_of(path);
  const ArrayFile file(path + "/model.safetensors");
  CHECK(!file.mapped(entry_of(file, "q_proj.weight")));  // its rows have another order
  CHECK(!file.mapped(entry_of(file, "norm.weight")));
  const Array up = file.mapped(entry_of(file, "up_proj.weight"));
  REQUIRE(up);
  Model model = open_hugging_face(path);
  const Array weight = model.weight("layers.0.mlp.up_proj.weight");
  CHECK(weight.bytes() == up.bytes());
  CHECK(std::memcmp(weight.data(), up.data(), up.bytes()) == 0);
  Array writable = model.weight("layers.0.mlp.up_proj.weight");
  std::memset(writable.data(), 0, writable.bytes());
  CHECK(bytes_of(path) == before);
  save_hugging_face(model, folder / "wide", "", Dtype::float32);  // for other programs
  CHECK(stored_weights(folder / "wide") == Dtype::float32);
  Model again = open_hugging_face(folder / "wide");
  CHECK(relative_distance(logits(again), logits(model)) < 1e-5);
}

TEST_CASE("each opening of a file has blocks of its own: writing to those of one model leaves all others as they are") {
  const test::Folder folder;
  const std::string path = written(folder, "Q8_0"), name = "layers.0.mlp.up_proj.weight";
  Model first = open_hugging_face(path), second = open_hugging_face(path);
  const Array wanted = logits(first);
  Array written_to = first.weight(name);
  std::memset(written_to.data(), 1, written_to.bytes());
  CHECK(relative_distance(logits(first), wanted) > 1e-3);
  CHECK(relative_distance(logits(second), wanted) == 0);
  Model third = open_hugging_face(path), wide = open_hugging_face(path, stored_as(Dtype::float32));
  CHECK(relative_distance(logits(third), wanted) == 0);
  CHECK(relative_distance(logits(wide), wanted) < 1e-5);
  const ArrayFile file(path + "/model.safetensors");
  Array one = file.mapped(entry_of(file, "up_proj.weight")), same = file.mapped(entry_of(file, "up_proj.weight"));
  CHECK(one.data() == same.data());
  CHECK(std::memcmp(one.data(), third.weight(name).data(), one.bytes()) == 0);
}

TEST_CASE("a file that has become shorter is an error when its blocks are mapped") {
  const test::Folder folder;
  const std::string path = written(folder, "Q8_0");
  const ArrayFile file(path + "/model.safetensors");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CHECK(test::error_of([&] { file.mapped(entry_of(file, "up_proj.weight")); }) ==
        "cannot read " + path + ": it has become shorter");
}

namespace {
/// A GPT-2 of which most matrices are square, so that their shape does not tell [in, out] from [out, in].
Model square_gpt2() {
  read_gguf_files();
  setenv("XTAPE_MODELS", (source_root() + "/models").c_str(), 1);
  ModelOptions options;
  options.hyper = {{"vocab_size", "24"}, {"n_embd", "256"}, {"n_inner", "256"},   {"n_layer", "1"},
                   {"n_head", "4"},      {"std", "0.1"},    {"n_positions", "32"}};
  return Model::load("gpt2", options);
}
const std::string attention = "h.0.attn.c_proj.weight";
}  // namespace

TEST_CASE("the matrices of GPT-2 stay in their blocks, whose file has them transposed") {
  for (const std::string format : {"Q8_0", "Q4_K"}) {
    CAPTURE(format);
    const test::Folder folder;
    save_gguf(square_gpt2(), folder / "x.gguf", format);
    const std::string path = folder / "x.gguf";
    Model blocks = open_hugging_face(path), wide = open_hugging_face(path, stored_as(Dtype::float32)),
          other = open_hugging_face(path, stored_as(Dtype::q4_0));
    for (const char* each : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"})
      CHECK(name_of(blocks.weights().at("h.0." + std::string(each) + ".weight").dtype()) == format);
    CHECK(wide.weights().at(attention).dtype() == Dtype::float32);
    CHECK(relative_distance(logits(blocks), logits(wide)) < 1e-5);
    CHECK(relative_distance(logits(other), logits(wide)) < 0.3);
    const ArrayFile file(path + "/model.safetensors");
    CHECK(file.mapped(entry_of(file, attention)));
    Model copy = square_gpt2();
    if (format == "Q8_0") CHECK(relative_distance(logits(copy), logits(wide)) < 0.05);
  }
}

TEST_CASE("folders and files of weights say in which order blocks are") {
  const test::Folder folder;
  Model model = square_gpt2();
  const Array wanted = logits(model);
  model.store_weights_as(Dtype::q8_0);
  CHECK(model.orders().at(attention) == Axes{1, 0});
  save_hugging_face(model, folder / "blocks");
  model.save_weights(folder / "weights.safetensors");
  Model blocks = open_hugging_face(folder / "blocks"),
        wide = open_hugging_face(folder / "blocks", stored_as(Dtype::float32)),
        other = open_hugging_face(folder / "blocks", stored_as(Dtype::q4_k)), loaded = square_gpt2();
  loaded.load_weights(folder / "weights.safetensors");
  CHECK(blocks.weights().at(attention).dtype() == Dtype::q8_0);
  CHECK(other.weights().at(attention).dtype() == Dtype::q4_k);
  CHECK(relative_distance(logits(blocks), logits(model)) == 0);
  CHECK(relative_distance(logits(loaded), logits(model)) == 0);
  CHECK(relative_distance(logits(wide), logits(model)) < 1e-5);
  CHECK(relative_distance(logits(other), wanted) < 0.3);
  convert_to_gguf(folder / "blocks", folder / "x.gguf");
  Model converted = open_hugging_face(folder / "x.gguf");
  CHECK(relative_distance(logits(converted), logits(wide)) == 0);
  const std::string bytes = bytes_of(folder / "weights.safetensors"), key = "order:" + attention + "\":\"1 0";
  for (const std::string wrong : {"1 1", "0 2", "1 x", "1  "}) {
    std::string changed = bytes;
    changed.replace(changed.find(key) + key.size() - 3, 3, wrong);
    const std::string error = test::error_of([&] { ArrayFile(folder.write("x.safetensors", changed)); });
    CAPTURE(error);
    CHECK(error.find("which does not have each of its 2 axes once") != std::string::npos);
  }
}

TEST_CASE("a scale that is no number is an error, in mapped blocks and in others") {
  const test::Folder folder;
  for (const std::string format : {"Q8_0", "Q6_K", "Q4_K"})
    for (const std::string tensor : {"blk.0.attn_q.weight", "blk.0.ffn_up.weight"}) {
      CAPTURE(format);
      CAPTURE(tensor);
      const std::string path = written(folder, format);
      std::string bytes = bytes_of(path);
      const GgufFile file(path);
      std::size_t at = 0;
      while (file.tensors()[at].name != tensor) ++at;
      const auto elements = file.bytes(at);
      const std::string found(reinterpret_cast<const char*>(elements.data()), elements.size());
      const std::size_t block = format == "Q8_0" ? 34 : format == "Q6_K" ? 210 : 144;
      const std::size_t scale = bytes.find(found) + 3 * block + (format == "Q6_K" ? 208 : 0);
      bytes[scale] = 0;
      bytes[scale + 1] = 0x7c;  // infinity
      const std::string bad = folder.write("bad.gguf", bytes), error = test::error_of([&] { open_hugging_face(bad); });
      CAPTURE(error);
      CHECK(error.find("tensor '" + tensor + "' is damaged: block 3 of " + format + " has a scale") !=
            std::string::npos);
    }
}

namespace {
std::string recipe_of(const test::Folder& folder, const std::string& more) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "a stitch in time saves nine. ";
  folder.write("words.txt", text);
  return folder.write("recipe.json", R"json({
    "xtape": 2, "name": "low", "data": {"kind": "text", "text": "words.txt", "block_size": 8},
    "tokenizer": {"kind": "character"}, "batch": {"size": 2, "accumulate": 2},
    "optimizer": {"kind": "adamw"}, "schedule": {"kind": "constant", "rate": 1e-2},
    "steps": 6, "checkpoint_every": 3, "keep": "all", "seed": 6)json" +
                                         more + "}");
}
}  // namespace

TEST_CASE("`lora` trains adapters of all linear maps on the blocks of a file; the run has the blocks once") {
  const test::Folder folder;
  const std::string path = written(folder, "Q4_K");
  const Recipe recipe = Recipe::load(recipe_of(folder, R"(, "lora": {"rank": 2})"), {{"from", path}});
  CHECK(recipe.definition.ends_with("llama_lora"));
  Run whole = Run::create(recipe, folder / "whole");
  CHECK(whole.trainer().trained().size() == 2 * 7);  // A and B of four maps of attention and three of the mlp
  CHECK(whole.model().hyper().number("alpha") == 4);
  CHECK(whole.model().weights().at("layers.0.mlp.up_proj.weight").dtype() == Dtype::q4_k);
  const double before = whole.evaluate().loss;
  CHECK(whole.train());
  CHECK(whole.evaluate().loss < before);
  {
    Run part = Run::create(recipe, folder / "part");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return part.trainer().step() == 3; };
    CHECK(!part.train(callbacks));
  }
  std::filesystem::remove(path);  // the run has all that it needs
  CHECK(Run::resume(folder / "part").train());
  const std::string last = "/checkpoints/00000006/weights.safetensors";
  CHECK(bytes_of(folder / ("part" + last)) == bytes_of(folder / ("whole" + last)));
  const ArrayFile start(folder / "whole/start.safetensors"), checkpoint(folder / ("whole" + last));
  std::size_t blocks = 0;
  for (const ArrayFile::Entry& entry : start.entries()) blocks += is_block(entry.dtype) ? 1 : 0;
  CHECK(blocks == 8);
  CHECK(checkpoint.entries().size() == start.entries().size() - blocks);
  Run opened = Run::open(folder / "part");
  CHECK(opened.evaluate().loss == whole.evaluate().loss);
  // Another run can start with this one.
  const Recipe next = Recipe::load(recipe_of(folder, R"(, "definition": "llama", "lora": {"rank": 2, "alpha": 4},
      "hyper": {"d_model": 256, "d_ff": 256, "layers": 1, "heads": 4, "tied": true, "vocab_size": 24, "max_positions": 32},
      "weights": {"embed_tokens.*": "Q6_K", "*": "Q4_K"})"),
                                   {{"start.from", folder / "whole"}});
  CHECK(Run::create(next, folder / "next").evaluate().loss == doctest::Approx(whole.evaluate().loss).epsilon(1e-6));
}

TEST_CASE("`lora` trains adapters of GPT-2's matrices, which stay in the blocks of the file") {
  const test::Folder folder;
  save_gguf(square_gpt2(), folder / "x.gguf", "Q4_K");
  const Recipe recipe = Recipe::load(recipe_of(folder, R"(, "lora": {"rank": 2})"), {{"from", folder / "x.gguf"}});
  Run run = Run::create(recipe, folder / "run");
  CHECK(run.trainer().trained().size() == 2 * 4);
  CHECK(run.model().weights().at(attention).dtype() == Dtype::q4_k);
  const Array before = run.model().weights().at(attention).clone();
  const double first = run.evaluate().loss;
  CHECK(run.train());
  CHECK(run.evaluate().loss < first);
  CHECK(std::memcmp(before.data(), run.model().weights().at(attention).data(), before.bytes()) == 0);
  Run again = Run::open(folder / "run");
  CHECK(again.evaluate().loss == run.evaluate().loss);
  CHECK(run.save_adapter(folder / "adapter"));
  Model adapted = open_hugging_face(folder / "x.gguf", {}, "", {}, folder / "adapter");
  CHECK(adapted.weights().at(attention).dtype() == Dtype::q4_k);
  CHECK(relative_distance(logits(adapted), logits(run.model())) < 1e-6);
  // A run without blocks can start with the numbers of this one.
  const Recipe next = Recipe::load(recipe_of(folder, R"(, "definition": "gpt2", "lora": {"rank": 2}, "hyper":
      {"vocab_size": 24, "n_embd": 256, "n_inner": 256, "n_layer": 1, "n_head": 4, "n_positions": 32})"),
                                   {{"start.from", folder / "run"}});
  Run wide = Run::create(next, folder / "next");
  CHECK(wide.model().weights().at(attention).dtype() == Dtype::float32);
  Model floats = open_hugging_face(folder / "x.gguf", stored_as(Dtype::float32));
  const Array now(wide.model().weights().at(attention)), then(floats.weights().at(attention));
  CHECK(std::memcmp(now.data(), then.data(), now.bytes()) == 0);
}

TEST_CASE("a training of all weights widens them") {
  const test::Folder folder;
  const std::string path = written(folder, "Q4_K");
  Run run = Run::create(Recipe::load(recipe_of(folder, R"(, "frozen": "*.mlp.*")"), {{"from", path}}), folder / "run");
  CHECK(run.model().weights().at("layers.0.mlp.up_proj.weight").dtype() == Dtype::q4_k);
  CHECK(run.model().weights().at("layers.0.self_attn.q_proj.weight").dtype() == Dtype::float32);
  CHECK(run.train());
}

TEST_CASE("errors of `lora` name what is wrong") {
  const test::Folder folder;
  const std::string path = written(folder, "Q8_0");
  const auto refused = [&](const std::string& lora, const std::vector<Setting>& settings, const std::string& message) {
    const std::string error = test::error_of(
        [&] { Run::create(Recipe::load(recipe_of(folder, ", \"lora\": " + lora), settings), folder / "run"); });
    CAPTURE(error);
    CHECK(error.find(message) != std::string::npos);
    CHECK(!std::filesystem::exists(folder / "run"));
  };
  refused("{}", {{"from", path}}, "needs the key 'rank'");
  refused(R"({"rank": 0})", {{"from", path}}, "'lora.rank' must be a whole number from 1");
  refused(R"({"rank": 2, "alpa": 3})", {{"from", path}}, "did you mean 'alpha'");
  refused(R"({"rank": 2})", {}, "needs 'from' or 'definition'");
  refused(R"({"rank": 2, "targets": ["q_pro"]})", {{"from", path}}, "did you mean 'q_proj'");
  refused(R"({"rank": 2})", {{"from", path}, {"frozen", "*.mlp.*"}},
          "--set frozen: 'frozen' has no effect beside 'lora', which trains adapters alone");
  refused(R"({"rank": 2})", {{"from", path}, {"hyper.alpha", "3"}}, "'hyper' has 'alpha', which 'lora' sets");
  refused(R"({"rank": 2})", {{"from", path}, {"hyper", "3"}}, "'hyper' must be an object");
  refused(R"({"rank": 2})", {{"from", path}, {"loar.rank", "3"}},
          "--set loar.rank: 'loar' is not a known key; did you mean 'lora'?");
  refused(R"({"rank": 2})", {{"from", folder / "none.gguf"}},
          "none.gguf has no config.json: there is no folder or file");
  const Run run =
      Run::create(Recipe::load(recipe_of(folder, R"(, "lora": {"rank": 2})"), {{"from", path}}), folder / "made");
  CHECK(test::error_of([&] {
          Run::resume(folder / "made", {{"lora.rank", "3"}});
        }).find("it cannot change") != std::string::npos);
}
