// Folders of low-rank adapters that are damaged, or that have what is not supported: one error each.
#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/system/files.hpp"
#include "error_of.hpp"
#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/hugging_face.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;
using doctest::Contains;
using test::error_of;
using test::Folder;

namespace {
const std::string adapter_base = source_root() + "/tests/golden/data/llama/nested";
const std::string adapter_definition = source_root() + "/models/llama_lora.json";
const std::string first_a = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
const std::string first_b = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight";

/// A copy of a folder of adapters of q_proj and v_proj, rank 2, which a test changes.
struct ChangedAdapters {
  Folder folder{source_root() + "/tests/golden/data/adapters/llama"};
  std::string weights = folder / "adapter_model.safetensors", config = folder / "adapter_config.json";

  Model open() const { return open_hugging_face(adapter_base, {}, adapter_definition, {}, folder.path()); }
  std::string complaint() const {
    return error_of([&] { open(); });
  }
  void set(const std::string& key, const nlohmann::ordered_json& value) const {
    auto json = nlohmann::ordered_json::parse(std::ifstream(config));
    json[key] = value;
    folder.write("adapter_config.json", json.dump(2));
  }
  /// What is said of the folder with this value, which the error must locate.
  std::string complaint_of(const std::string& key, const nlohmann::ordered_json& value) const {
    set(key, value);
    const std::string said = complaint();
    CHECK_MESSAGE(said.find(config + ", line ") == 0, said);
    CHECK_MESSAGE(said.find("'" + key + "'") != std::string::npos, said);
    return said;
  }
  /// Replaces the tensors by what `change` makes of them.
  void change(const std::function<void(std::string& name, Array& value)>& change) const {
    Store changed;
    for (const Store::Entry& entry : load_arrays(weights)) {
      std::string name = entry.name;
      Array value = entry.value.clone();
      change(name, value);
      if (!name.empty()) changed.add(name, value);
    }
    save_arrays(weights, changed);
  }
};
}  // namespace

TEST_CASE("adapters: features that are not supported are refused by key and line") {
  const std::vector<std::pair<std::string, nlohmann::ordered_json>> values = {
      {"use_dora", true},
      {"lora_bias", true},
      {"bias", "lora_only"},
      {"bias", "all"},
      {"rank_pattern", {{"q_proj", 4}}},
      {"alpha_pattern", {{"q_proj", 4}}},
      {"modules_to_save", {"lm_head"}},
      {"trainable_token_indices", {1, 2}},
      {"target_parameters", {"experts.gate_up_proj"}},
      {"layer_replication", {{0, 1}}},
      {"alora_invocation_tokens", {5}},
      {"use_qalora", true},
      {"use_bdlora", {{"nblocks", 2}}},
      {"peft_type", "PREFIX_TUNING"},
      {"init_lora_weights", "pissa_niter_16"},
      {"init_lora_weights", "olora"},
      {"init_lora_weights", "OLoRA"}};
  for (const auto& each : values) {
    CAPTURE(each.first);
    const ChangedAdapters changed;
    CHECK(changed.complaint_of(each.first, each.second).find(each.second.dump()) != std::string::npos);
  }
}

TEST_CASE("adapters: ranks and scales that are none") {
  const auto said = [](const std::string& key, const nlohmann::ordered_json& value) {
    return ChangedAdapters().complaint_of(key, value);
  };
  for (const nlohmann::ordered_json& rank : std::vector<nlohmann::ordered_json>{
           0, -1, 1'000'000'000'000, 18446744073709551615u, 1e30, 2.0, "2", nullptr, true}) {
    CAPTURE(rank.dump());
    CHECK(said("r", rank).find("'r' is " + rank.dump() + ": a rank is an integer from 1 to ") != std::string::npos);
  }
  CHECK(said("r", 3).find("'r' is 3, but '" + first_a + "' in '") != std::string::npos);
  CHECK(said("r", 3).find("is (2, 16): it is [r, in]") != std::string::npos);
  CHECK(said("lora_dropout", 1.0).find("'lora_dropout' is 1.0: it is a number from 0 to below 1") != std::string::npos);
  const ChangedAdapters scale, no_rank, null;
  null.set("use_rslora", nullptr);  // PEFT takes it as false
  null.open();
  scale.set("lora_alpha", "16");
  CHECK_THROWS_WITH_AS(scale.open(), Contains("adapter_config.json, line"), DefinitionError);
  auto json = nlohmann::ordered_json::parse(std::ifstream(no_rank.config));
  json.erase("r");
  no_rank.folder.write("adapter_config.json", json.dump(2));
  CHECK(no_rank.complaint().find("'r' is 8, but '") != std::string::npos);  // PEFT's default
}

TEST_CASE("adapters: the modules are those of the tensors, and target_modules must agree") {
  const ChangedAdapters fewer, more, regular, renamed, head;
  CHECK(fewer.complaint_of("target_modules", {"v_proj"})
            .find("'target_modules' does not name 'model.layers.0.self_attn.q_proj', of which '") != std::string::npos);
  CHECK(more.complaint_of("target_modules", {"v_proj", "q_proj", "mlp.up_proj"})
            .find("'target_modules' names 'model.layers.0.mlp.up_proj', and '") != std::string::npos);
  more.set("layers_to_transform", {5});  // then it is not known which modules have one
  more.open();
  more.set("target_modules", {"v_proj", "q_proj", "absent"});  // PEFT ignores names of no module
  more.open();
  regular.set("target_modules", ".*self_attn[.](q|v)_proj");
  regular.open();
  renamed.set("target_modules", {"q_prj", "v_proj"});
  renamed.change([](std::string& name, Array&) {
    if (const std::size_t at = name.find("q_proj"); at != std::string::npos) name.replace(at, 6, "q_prj");
  });
  CHECK(renamed.complaint().find("'base_model.model.model.layers.0.self_attn.q_prj.lora_A.weight', but model "
                                 "'llama_lora' has no linear map 'model.layers.0.self_attn.q_prj'; did you mean "
                                 "'model.layers.0.self_attn.q_proj'?") != std::string::npos);
  head.set("target_modules", {"embed_tokens", "v_proj", "q_proj"});
  head.change([](std::string& name, Array&) {
    if (name == first_a) name = "base_model.model.model.embed_tokens.lora_A.weight";
    if (name == first_b) name = "base_model.model.model.embed_tokens.lora_B.weight";
  });
  head.set("layers_to_transform", {0, 1});
  CHECK(head.complaint().find(head.weights + "' has adapters for which the definition has no place, such as those of "
                                             "an embedding or of the head: ") != std::string::npos);
  CHECK(head.complaint().find("is named 'embed_tokens'") != std::string::npos);
}

TEST_CASE("adapters: NAME_lora is NAME with linear maps that have adapters, if it has no file of its own") {
  const std::string models = source_root() + "/models/";
  ModelOptions small;
  small.hyper = {{"vocab_size", "9"}, {"d_model", "8"}, {"heads", "2"}, {"layers", "1"}, {"rank", "3"}};
  const auto adapters_of = [&](const Model& model) {
    std::vector<std::string> names;
    for (const std::string& name : model.weights().names())
      if (name.ends_with("lora_A")) names.push_back(name);
    return names;
  };
  const std::vector<std::string> of_phi = {"layers.0.attention.q_proj.lora_A", "layers.0.attention.v_proj.lora_A"};
  const Model phi = Model::load(models + "phi_lora.json", small);
  CHECK(phi.name() == "phi_lora");
  CHECK(adapters_of(phi) == of_phi);
  CHECK(adapters_of(Model::parse(phi.definition_text())) == of_phi);
  CHECK(adapters_of(Model::parse(R"({"xtape": 2, "name": "own", "extends": "phi_lora.json"})", small,
                                 models + "own.json")) == of_phi);
  const auto said = [&](const std::string& name) { return error_of([&] { Model::load(models + name); }); };
  CHECK(said("phj_lora.json").find("there is no file '" + models + "phj_lora.json'") != std::string::npos);
  // Linear maps in blocks of used files have adapters, too.
  ModelOptions all = small;
  all.hyper.emplace_back("targets", "'*'");
  const Model opt = Model::load(models + "opt_lora.json", all);
  std::vector<std::string> of_opt;
  for (const char* map :
       {"attention.query", "attention.key", "attention.value", "attention.output", "mlp.up", "mlp.down"})
    of_opt.push_back(std::string("layers.0.") + map + ".lora_A");
  CHECK(adapters_of(opt) == of_opt);
  CHECK(adapters_of(Model::parse(opt.definition_text())) == of_opt);
  // The queries of three attentions, and two feed-forwards.
  all.hyper = {{"source_vocab_size", "9"}, {"d_model", "8"},        {"heads", "2"},
               {"encoder_layers", "1"},    {"decoder_layers", "1"}, {"targets", "('query', 'linear1')"}};
  CHECK(adapters_of(Model::load(models + "transformer_lora.json", all)).size() == 5);
  // A definition that extends another has the adapters of the other, here those of [in, out] matrices.
  const ModelOptions tiny = {
      .hyper = {{"n_embd", "8"}, {"n_layer", "1"}, {"n_head", "2"}, {"vocab_size", "9"}, {"targets", "'*'"}}};
  const std::vector<std::string> of_gpt2 = {"h.0.attn.c_attn.lora_A", "h.0.attn.c_proj.lora_A", "h.0.mlp.c_fc.lora_A",
                                            "h.0.mlp.c_proj.lora_A"};
  for (const std::string name : {"packed_gpt2_lora", "padded_gpt2_lora", "gpt2_lora"}) {
    const Model made = Model::load(models + name + ".json", tiny);
    CHECK(made.name() == name);
    CHECK(adapters_of(made) == of_gpt2);
    CHECK(adapters_of(Model::parse(made.definition_text())) == of_gpt2);
    const bool has_mapping = name != "padded_gpt2_lora";  // as padded_gpt2 has none
    CHECK((made.definition_text().find(R"("fan_in_fan_out": true)") != std::string::npos) == has_mapping);
  }
  // Adapters need no mapping to folders.
  const Model mlp = Model::load(models + "mlp_lora.json", {.hyper = {{"in", "4"}, {"targets", "'*'"}}});
  CHECK(adapters_of(mlp).size() == 3);
  CHECK(error_of([&] { save_adapter(mlp, "none", ""); }).find("has no entry \"hugging_face\"") != std::string::npos);
}

TEST_CASE("adapters: damaged files") {
  const auto said = [](const std::function<void(const ChangedAdapters&)>& damage) {
    const ChangedAdapters changed;
    damage(changed);
    const std::string complaint = changed.complaint();
    CHECK_MESSAGE(complaint.find(changed.folder.path()) != std::string::npos, complaint);
    return complaint;
  };
  const auto changed = [&](const std::function<void(std::string & name, Array & value)>& change) {
    return said([&](const ChangedAdapters& adapters) { adapters.change(change); });
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  has(changed([](std::string& name, Array&) {
        if (name == first_b) name.clear();
      }),
      "has '" + first_a + "' and no '" + first_b + "': an adapter needs both");
  has(changed([](std::string& name, Array&) {
        if (name == first_a) name.clear();
      }),
      "has '" + first_b + "' and no '" + first_a + "': an adapter needs both");
  has(changed([](std::string& name, Array&) { name.clear(); }), "has no adapters");
  for (const char* name : {"lora_A.weight", "base_model.model.lora_A.weight", "base_model.model..lora_A.bias"})
    has(changed([&](std::string& each, Array&) {
          if (each == first_a) each = name;
        }),
        "has '" + std::string(name) + "': the adapters of a linear map are base_model.model.MODULE.lora_A.weight and ");
  for (const char* name :
       {"base_model.model.model.embed_tokens.lora_embedding_A", "base_model.model.lm_head.base_layer.weight"})
    has(changed([&](std::string& each, Array&) {
          if (each == first_a) each = name;
        }),
        "has '" + std::string(name) + "': adapters of embeddings or of the head are not supported; those of a linear");
  has(changed([](std::string& name, Array& value) {
        if (name == first_a) value = Array(Dtype::float32, {2, 17});
      }),
      "of another shape: " + first_a + " is (2, 17), the model's is (2, 16)");
  has(changed([](std::string& name, Array& value) {
        if (name == first_b) value = Array(Dtype::float32, {15, 2});
      }),
      "of another shape: " + first_b + " is (15, 2), the model's is (");
  has(changed([](std::string& name, Array& value) {
        if (name == first_b) value = Array(Dtype::float32, {2, 16});
      }),
      "is (2, 16): it is [out, r]");
  has(changed([](std::string& name, Array& value) {
        if (name == first_b) value = Array(Dtype::float32, {16});
      }),
      "is (16,): it is [out, r]");
  has(changed([](std::string& name, Array& value) {
        if (name == first_b) value = Array(Dtype::int64, {24, 2});
      }),
      "of another dtype: " + first_b + " is int64");
  const std::string whole = read_file(ChangedAdapters().weights);
  for (std::size_t kept = 0; kept < whole.size(); kept += kept < 40 || kept + 10 > whole.size() ? 1 : 97)
    said([&](const ChangedAdapters& adapters) {
      adapters.folder.write("adapter_model.safetensors", whole.substr(0, kept));
    });
  const std::string config = read_file(ChangedAdapters().config);
  for (std::size_t kept = 0; kept < config.size(); kept += 13)
    said(
        [&](const ChangedAdapters& adapters) { adapters.folder.write("adapter_config.json", config.substr(0, kept)); });
  has(said([](const ChangedAdapters& adapters) { adapters.folder.write("adapter_config.json", "[]"); }),
      "an object belongs here");
  has(said([](const ChangedAdapters& adapters) { std::filesystem::remove(adapters.weights); }),
      "has no adapter_model.safetensors: adapters can only be read from a safetensors file");
  has(said([](const ChangedAdapters& adapters) { std::filesystem::remove(adapters.config); }),
      "has no adapter_config.json: it is not a folder of adapters");
}

TEST_CASE("adapters: halves, unknown keys, and the base that the config names") {
  const ChangedAdapters changed;
  Model before = changed.open();
  changed.set("from_tomorrow", true);
  changed.set("off_tomorrow", false);
  const std::vector<std::string> warnings =
      hugging_face_warnings(adapter_base, adapter_definition, changed.folder.path());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == changed.config + " has a key that xtape does not know and ignores: 'from_tomorrow'");
  CHECK(is_adapter(changed.folder.path()));
  CHECK(!is_adapter(adapter_base));
  CHECK(!is_hugging_face(changed.folder.path()));
  CHECK_THROWS_WITH_AS(base_of_adapter(changed.folder.path()),
                       Contains("'base_model_name_or_path' is \"../../llama/nested\", which is no folder"),
                       DefinitionError);
  changed.set("base_model_name_or_path", nullptr);
  CHECK_THROWS_AS(base_of_adapter(changed.folder.path()), DefinitionError);
  changed.set("base_model_name_or_path", adapter_base);
  CHECK(base_of_adapter(changed.folder.path()) == adapter_base);
  CHECK(base_of_adapter(source_root() + "/tests/golden/data/adapters/llama") ==
        source_root() + "/tests/golden/data/adapters/llama/../../llama/nested");
}

TEST_CASE("adapters: other definitions, and models without any") {
  const ChangedAdapters changed;
  CHECK_THROWS_WITH_AS(
      open_hugging_face(adapter_base, {}, source_root() + "/models/llama.json", {}, changed.folder.path()),
      Contains("llama.json has no \"adapter\""), DefinitionError);
  CHECK_THROWS_WITH_AS(
      save_adapter(Model::load(source_root() + "/models/llama.json", {.hyper = {{"layers", "1"}}, .initialise = false}),
                   changed.folder / "to", "base"),
      Contains("has no \"adapter\": add it to save adapters"), DefinitionError);
  const Model none =
      Model::load(adapter_definition, {.hyper = {{"layers", "1"}, {"targets", "()"}}, .initialise = false});
  CHECK_THROWS_WITH_AS(save_adapter(none, changed.folder / "to", "base"), Contains("has no adapters"), DefinitionError);
  CHECK(!std::filesystem::exists(changed.folder / "to"));
}

TEST_CASE("adapters are written only if PEFT computes what the definition does") {
  const Folder folder;
  const auto written = [&](const std::string& block) {
    const std::string path = folder.write("changed.json", R"json({
      "xtape": 2, "name": "changed", "extends": ")json" + adapter_definition +
                                                              R"json(",
      "blocks": {"linear": {"change": {)json" + block + "}}}}");
    const Model model = Model::load(
        path, {.hyper = {{"layers", "1"}, {"d_model", "8"}, {"heads", "2"}, {"d_ff", "8"}, {"vocab_size", "9"}}});
    for (const Store::Entry& entry : model.weights())
      if (entry.name.ends_with("lora_B"))
        for (std::int64_t i = 0; i < entry.value.count(); ++i) Array(entry.value).as<float>()[i] = 0.25F;
    return error_of([&] { save_adapter(model, folder / "to", "base"); });
  };
  CHECK(written(R"("about": "the same")").empty());
  std::filesystem::remove_all(folder / "to");
  for (const char* other :
       {R"("export": {"weight": "weight + 2 * alpha / rank * lora_B @ lora_A if adapted else none"})",
        R"("export": {"weight": "weight if adapted else none"})"}) {
    const std::string said = written(other);
    CHECK_MESSAGE(said.find("PEFT would compute weight + alpha / rank * B @ A, and \"export\"") != std::string::npos,
                  said);
    CHECK(!std::filesystem::exists(folder / "to"));
  }
  const std::string said =
      written(R"("export": {"weight": "weight + alpha / rank * lora_B @ lora_A if adapted else 2 * weight"})");
  CHECK_MESSAGE(
      said.find("exports 'layers.0.self_attn.k_proj.weight', which is no weight with an adapter") != std::string::npos,
      said);
}

TEST_CASE("mappings of adapters: what they may say") {
  const auto said = [](const std::string& mapping, const std::string& extends = R"("extends": "llama.json", )") {
    const std::string text = R"json({"xtape": 2, "name": "own", )json" + extends +
                             R"json("hyper": {"rank": 1, "alpha": 2.0)json" +
                             (extends.empty() ? "" : R"(, "layers": 1, "vocab_size": 9, "d_model": 24, "d_ff": 8)") +
                             R"json(},
      "hugging_face": )json" +
                             mapping + "}";
    return error_of([&] { Model::parse(text, {}, source_root() + "/models/own.json"); });
  };
  const auto adapter = [&](const std::string& entry) { return said(R"({"change": {"adapter": )" + entry + "}}"); };
  CHECK(
      adapter(R"({"hyper": {"r": "rank", "lora_alpha": "alpha"}, "weights": {"lora_A": "a", "lora_B": "b"}})").empty());
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"hyper": {"r": "rnk", "lora_alpha": "alpha"}, "weights": {"lora_A": "a", "lora_B": "b"}})",
       "there is no hyper-parameter 'rnk'; did you mean 'rank'?"},
      {R"({"hyper": {"r": "rank"}, "weights": {"lora_A": "a", "lora_B": "b"}})", "lora_alpha"},
      {R"({"hyper": {"r": "rank", "lora_alpha": "alpha", "use_dora": "alpha"}, "weights": {}})", "use_dora"},
      {R"({"hyper": {"r": "rank", "lora_alpha": "alpha"}, "weights": {"lora_A": "a"}})", "lora_B"},
      {R"({"hyper": {"r": "rank", "lora_alpha": "alpha"}})", "weights"},
      {R"("hugging_face/lora.json")", "an object belongs here"}};
  for (const auto& each : wrong)
    CHECK_MESSAGE(adapter(each.first).find(each.second) != std::string::npos, adapter(each.first));
  CHECK(said(R"({"change": {}, "model_type": "own"})").find("model_type") != std::string::npos);
  CHECK(said(R"({"change": "hugging_face/none.json"})").find("none.json") != std::string::npos);
  CHECK(said(R"({"change": {}})", "").find("there is no mapping to change: no file that this one extends has any") !=
        std::string::npos);
}
