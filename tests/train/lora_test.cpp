// Adapters (LoRA) trained with the frozen weights of a published model.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "recurrent.hpp"
#include "run_files.hpp"
#include "source_root.hpp"
#include "tiny.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;

namespace {
const std::string lora_definition = source_root() + "/models/gpt2_lora.json";
const std::string base_folder = source_root() + "/tests/golden/data/hugging_face/tiny";

const std::string lora_recipe = R"json({
  "xtape": 2,
  "name": "adapted",
  "definition": ")json" + lora_definition +
                                R"json(",
  "hyper": {"rank": 4, "alpha": 8},
  "initialise": ["*.lora_?"],
  "trainable": ["*.lora_?"],
  "data": {"kind": "text", "text": "words.txt", "block_size": 16},
  "tokenizer": {"kind": "character"},
  "batch": {"size": 4},
  "optimizer": {"kind": "adamw", "weight_decay": 0.5, "decay_all": true},
  "schedule": {"kind": "constant", "rate": 1e-2},
  "clip": 1.0,
  "steps": 100,
  "checkpoint_every": 50,
  "keep": "all",
  "seed": 6
})json";

/// The directory of a test, with the definition and a text.
struct Prepared {
  Prepared() {
    std::string text;
    for (int i = 0; i < 20; ++i) text += "a stitch in time saves nine, and a rolling stone gathers no moss. ";
    directory.write("words.txt", text);
  }

  Recipe recipe(std::vector<Setting> settings = {}) const {
    settings.push_back({"from", base_folder});
    return Recipe::load(directory.write("recipe.json", lora_recipe), settings);
  }

  tiny::Directory directory;
};

bool is_lora(const std::string& name) {
  return name.find(".lora_") != std::string::npos;
}

bool same(const Array& a, const Array& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}
}  // namespace

TEST_CASE("adapters are initialised by the definition, other weights by the folder; 100 updates change only adapters") {
  const Prepared prepared;
  Run run = Run::create(prepared.recipe(), prepared.directory / "run");
  const Model original = open_hugging_face(base_folder, {}, source_root() + "/models/gpt2.json");
  const Model drawn = Model::load(
      lora_definition,
      {.hyper = {{"rank", "4"}, {"std", "0.2"}, {"n_embd", "16"}, {"n_layer", "2"}, {"n_head", "2"}}, .seed = 6});
  CHECK(run.model().weights().size() == original.weights().size() + 2 * 2 * 4);
  std::int64_t adapters = 0;
  Store start;
  for (const Store::Entry& entry : run.model().weights()) {
    CHECK(same(entry.value, is_lora(entry.name) ? drawn.weights().at(entry.name) : original.weights().at(entry.name)));
    start.add(entry.name, entry.value.clone());
    if (is_lora(entry.name)) adapters += entry.value.count();
  }
  CHECK(run.trainer().trained().size() == 2 * 2 * 4);
  CHECK(adapters == 2 * 4 * ((16 + 48) + (16 + 16) + (16 + 64) + (64 + 16)));
  const double before = run.evaluate().loss;
  CHECK(run.train());
  CHECK(run.evaluate().loss < before - 0.5);
  for (const Store::Entry& entry : run.model().weights())
    CHECK(same(entry.value, start.at(entry.name)) == !is_lora(entry.name));
  // Only adapters have moments.
  const Store state = load_arrays(prepared.directory / "run/checkpoints/00000100/optimizer.safetensors");
  CHECK(state.size() == 2 * (2 * 2 * 4) + 1);
  for (const Store::Entry& entry : state) CHECK((entry.name == "updates" || is_lora(entry.name)));
}

namespace {
/// Trains half of the run, and then the rest: the result must be that of the whole run in the folder "whole".
void check_continues(const Prepared& prepared, const Recipe& recipe) {
  {
    Run part = Run::create(recipe, prepared.directory / "part");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return part.trainer().step() == 50; };
    CHECK(!part.train(callbacks));
  }
  CHECK(Run::resume(prepared.directory / "part").train());
  CHECK(same_bits(prepared.directory / "part/checkpoints/00000100", prepared.directory / "whole/checkpoints/00000100"));
  CHECK(metrics(prepared.directory / "part") == metrics(prepared.directory / "whole"));
}
}  // namespace

TEST_CASE("a run of adapters continues with the same bits") {
  const Prepared prepared;
  CHECK(Run::create(prepared.recipe(), prepared.directory / "whole").train());
  check_continues(prepared, prepared.recipe());
}

TEST_CASE("adapters are trained on weights in blocks, which stay as they are; a run continues with the same bits") {
  const Prepared prepared;
  const Recipe recipe = prepared.recipe({{"weights", R"({"*": "Q4_K"})"}});
  Run run = Run::create(recipe, prepared.directory / "whole");
  // Only these weights have sums of whole blocks: 64 numbers, so that they become Q8_0.
  const std::set<std::string> blocks{"h.0.mlp.c_proj.weight", "h.1.mlp.c_proj.weight"};
  Store start;
  for (const Store::Entry& entry : run.model().weights()) {
    CHECK((entry.value.dtype() == Dtype::q8_0) == (blocks.count(entry.name) == 1));
    start.add(entry.name, entry.value.clone());
  }
  const double before = run.evaluate().loss;
  CHECK(run.train());
  CHECK(run.evaluate().loss < before - 0.5);
  for (const Store::Entry& entry : run.model().weights())
    CHECK(same(entry.value, start.at(entry.name)) == !is_lora(entry.name));
  check_continues(prepared, recipe);
}

TEST_CASE("weights in blocks: errors of recipes") {
  const Prepared prepared;
  const auto refused = [&](const std::vector<Setting>& settings, const std::string& message) {
    CAPTURE(message);
    try {
      Run::create(prepared.recipe(settings), prepared.directory / "run");
      FAIL_CHECK("it was accepted");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(message) != std::string::npos);
    }
  };
  refused({{"weights", R"({"*": 4})"}}, "must be the name of a dtype");
  refused({{"weights", R"({"*": "Q3"})"}}, "unknown dtype 'Q3'");
  refused({{"weights", R"({"*": "int32"})"}}, "weights are stored as float32");
  refused({{"weights", R"({"g.*": "Q8_0"})"}}, "'weights': no weight of model 'gpt2_lora' matches 'g.*'");
  std::string all = lora_recipe;
  all.erase(all.find("  \"trainable\""), std::string("  \"trainable\": [\"*.lora_?\"],\n").size());
  CHECK_THROWS_WITH_AS(
      Run::create(Recipe::load(prepared.directory.write("all.json", all),
                               {{"from", base_folder}, {"weights", R"({"*": "Q8_0"})"}}),
                  prepared.directory / "run"),
      "weight 'h.0.mlp.c_proj.weight' is stored as Q8_0 and cannot be trained: freeze it, or store it as float32",
      Error);
}

TEST_CASE("adapters are trained privately: the gradients by adapters are clipped, and only adapters have noise") {
  const Prepared prepared;
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "row " + std::to_string(i) + " of " + std::to_string(i * i) + "\n";
  prepared.directory.write("lines.txt", lines);
  const auto trained = [&](const std::string& noise, const std::string& folder) {
    Run run = Run::create(
        prepared.recipe({{"data", R"({"kind": "documents", "separator": "line", "split": 0.8, "text": ")" +
                                      (prepared.directory / "lines.txt") + "\"}"},
                         {"privacy", R"({"clip_norm": 0.01, "delta": 1e-3, "noise_multiplier": )" + noise + "}"},
                         {"optimizer", R"({"kind": "sgd"})"},
                         {"schedule.rate", "1"},
                         {"clip", "0"},
                         {"batch.size", "8"},
                         {"steps", "1"},
                         {"checkpoint_every", "0"}}),
        prepared.directory / folder);
    Store start = recurrent::copy_of(run.model().weights());
    CHECK(run.train());
    const double epsilon = run.trainer().evaluate().epsilon.value();
    CHECK(std::isfinite(epsilon) == (noise != "0"));
    CHECK(epsilon > 0);
    double squares = 0;
    for (const Store::Entry& entry : run.model().weights()) {
      const Array before = start.at(entry.name);
      CHECK((is_lora(entry.name) || same(entry.value, before)));
      for (std::int64_t i = 0; i < before.count(); ++i)
        squares += std::pow(static_cast<double>(entry.value.as<float>()[i]) - before.as<float>()[i], 2);
    }
    return std::sqrt(squares);
  };
  const double norm = trained("0", "quiet");
  CHECK(norm > 0.001);
  CHECK(norm < 0.01 * 16 / 8);  // of so many rows at most, of which 8 are expected
  const double adapters = 2 * 4 * ((16 + 48) + (16 + 16) + (16 + 64) + (64 + 16));
  CHECK(trained("50", "noisy") == doctest::Approx(std::sqrt(adapters) * 50 * 0.01 / 8).epsilon(0.1));
}

TEST_CASE("a weight that the folder lacks is an error, unless it is to be initialised") {
  const Prepared prepared;
  const std::string where = prepared.directory / "run";
  const auto refused = [&](const Setting& setting, const char* message) {
    CHECK_THROWS_WITH_AS(Run::create(prepared.recipe({setting}), where), doctest::Contains(message), Error);
    CHECK(!tiny::fs::exists(where));
  };
  refused({"initialise", "[]"}, "missing: h.0.attn.c_attn.lora_A (4, 16)");
  refused({"initialise", R"(["*.lora_B"])"}, "missing: h.1.mlp.c_proj.lora_A (4, 64)");
  refused({"initialise", R"(["*.lora_C"])"},
          "'initialise': no weight of model 'gpt2_lora' matches '*.lora_C'; did you mean '*.lora_A'?");
  refused({"trainable", R"(["*.lora_A", "h.*.attn.c_atn.lora_B"])"},
          "'trainable': no weight of model 'gpt2_lora' matches 'h.*.attn.c_atn.lora_B'; did you mean "
          "'h.*.attn.c_attn.lora_B'?");
  // Weights that the folder has are read, even if a pattern matches them.
  const Run run = Run::create(prepared.recipe({{"initialise", R"(["*"])"}}), where);
  const Model original = open_hugging_face(base_folder, {}, source_root() + "/models/gpt2.json");
  Run again = Run::open(where);
  for (const Store::Entry& entry : original.weights()) CHECK(same(entry.value, again.model().weights().at(entry.name)));
}

TEST_CASE("a run starts with adapters in PEFT's format, trains them further, and exports them") {
  const Prepared prepared;
  const std::string adapters = source_root() + "/tests/golden/data/adapters/gpt2";  // rank 3, of c_attn
  const std::vector<Setting> start = {
      {"adapter", adapters}, {"hyper", "{}"}, {"steps", "20"}, {"checkpoint_every", "20"}};
  Run run = Run::create(prepared.recipe(start), prepared.directory / "run");
  const Model first = open_hugging_face(base_folder, {}, lora_definition, {}, adapters);
  CHECK(run.model().hyper().integer("rank") == 3);
  CHECK(run.trainer().trained().size() == 2 * 2);
  CHECK(run.model().weights().size() == first.weights().size());
  for (const Store::Entry& entry : first.weights()) CHECK(same(entry.value, run.model().weights().at(entry.name)));
  CHECK(run.train());
  run.save_adapter(prepared.directory / "made");
  const Model again = open_hugging_face(base_folder, {}, lora_definition, {}, prepared.directory / "made");
  for (const Store::Entry& entry : again.weights()) {
    CHECK(same(entry.value, run.model().weights().at(entry.name)));
    CHECK(same(entry.value, first.weights().at(entry.name)) == !is_lora(entry.name));
  }
  CHECK(base_of_adapter(prepared.directory / "made") == base_folder);

  // From the adapters' folder itself, which names its base.
  const Recipe recipe =
      Recipe::load(prepared.directory.write("recipe.json", lora_recipe), {{"from", prepared.directory / "made"}});
  CHECK(recipe.from == base_folder);
  CHECK(recipe.adapter == prepared.directory / "made");
  CHECK_THROWS_WITH_AS(Recipe::load(prepared.directory / "recipe.json", {{"adapter", adapters}}),
                       doctest::Contains("'adapter' needs 'from'"), DefinitionError);
  CHECK_THROWS_WITH_AS(
      Run::create(prepared.recipe({{"adapter", adapters}}), prepared.directory / "ranks"),
      doctest::Contains("of another shape: base_model.model.transformer.h.0.attn.c_attn.lora_A.weight is "
                        "(3, 16), the model's is (4, 16)"),
      FileError);
}

TEST_CASE("adapters alone are not exported if other weights have been trained") {
  const Prepared prepared;
  Run run = Run::create(
      prepared.recipe({{"trainable", R"(["*.lora_?", "ln_f.bias"])"}, {"steps", "2"}, {"checkpoint_every", "2"}}),
      prepared.directory / "run");
  run.save_adapter(prepared.directory / "untrained");
  CHECK(run.train());
  CHECK_THROWS_WITH_AS(run.save_adapter(prepared.directory / "made"),
                       doctest::Contains("has trained 'ln_f.bias' besides its adapters"), FileError);
  CHECK(!tiny::fs::exists(prepared.directory / "made"));
}

TEST_CASE("adapters alone are not exported if their base does not give the run's model with them") {
  const Prepared prepared;
  const std::string base = prepared.directory / "base", made = prepared.directory / "made";
  copy_hugging_face_files(base_folder, base);
  tiny::fs::copy_file(base_folder + "/model.safetensors", base + "/model.safetensors");
  const auto run_with = [&](const std::string& name, std::vector<Setting> settings) {
    settings.push_back({"from", base});
    return Run::create(Recipe::load(prepared.directory.write("recipe.json", lora_recipe), settings),
                       prepared.directory / name);
  };
  const auto refused = [&](const std::string& name, const std::vector<Setting>& settings, const std::string& why) {
    const Run run = run_with(name, settings);
    const std::string message =
        "'" + made + "' is not written, because read back on '" + base + "' it is not model 'gpt2_lora': " + why;
    for (const char* named : {"", "someone/gpt2"})
      CHECK_THROWS_WITH_AS(run.save_adapter(made, named), doctest::Contains(message.c_str()), FileError);
    CHECK(!tiny::fs::exists(made));
  };
  refused("positions", {{"initialise", R"(["*.lora_?", "wpe.*"])"}, {"hyper.n_positions", "20"}},
          "'logits' differs by");
  refused("epsilon", {{"hyper.epsilon", "0.3"}}, "'logits' differs by");
  // A window that is longer than the texts that are compared.
  const std::string windowed = prepared.directory / "windowed";
  copy_hugging_face_files(source_root() + "/tests/golden/data/decoders/mistral", windowed);
  tiny::fs::copy_file(source_root() + "/tests/golden/data/decoders/mistral/model.safetensors",
                      windowed + "/model.safetensors");
  auto config = nlohmann::json::parse(std::ifstream(windowed + "/config.json"));
  config["sliding_window"] = 34;
  std::ofstream(windowed + "/config.json") << config;
  for (const char* window : {"34", "36"}) {
    const std::string to = prepared.directory / window;
    const Run mistral = Run::create(
        Recipe::load(prepared.directory / "recipe.json", {{"from", windowed},
                                                          {"definition", source_root() + "/models/mistral_lora.json"},
                                                          {"hyper.window", window}}),
        to);
    if (std::string(window) == "34")
      CHECK(mistral.save_adapter(to + "/made"));
    else
      CHECK_THROWS_WITH_AS(mistral.save_adapter(to + "/made"),
                           doctest::Contains("'logits' computes something else with the base (first)"), FileError);
  }
  const Run run = run_with("same", {{"hyper.embd_dropout_rate", "0.5"}});
  CHECK(run.save_adapter(made));
  tiny::fs::remove_all(base);
  CHECK(!run.save_adapter(prepared.directory / "alone"));
  CHECK(tiny::fs::exists(prepared.directory / "alone/adapter_model.safetensors"));
  CHECK_THROWS_AS(run_with("none", {}), FileError);
}
