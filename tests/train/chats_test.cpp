// Runs on chats and preferences.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "chat_runs.hpp"
#include "xtape/decode.hpp"

namespace chat_runs {

TEST_CASE("a run on chats learns the answers alone, exactly, and answers") {
  const InstalledTemplates installed;
  const tiny::Directory directory;
  directory.write("chats.jsonl", chat_lines());
  Run run = check_exact(directory, chat_recipe());
  const Tokenizer& tokenizer = run.tokenizer();
  const std::int32_t start = tokenizer.token_of("<|im_start|>"), end = tokenizer.token_of("<|im_end|>");
  CHECK(tokenizer.size() == end + 1);
  CHECK(start == end - 1);
  CHECK(run.model().hyper().integer("vocab_size") == tokenizer.size());
  CHECK(run.end_tokens() == Tokens{tokenizer.end(), end});
  CHECK(run.prompt("say b").front() == start);
  // The targets are the answers and their ends.
  BatchArrays batch = run.batches().blank();
  for (std::int64_t index = 0; index < run.batches().validation_batches(); ++index) {
    run.batches().validation(index, batch);
    const std::int64_t columns = batch.at("targets").shape()[1];
    for (std::int64_t row = 0; row < batch.at("targets").shape()[0]; ++row) {
      Tokens targets;
      const std::int64_t* from = batch.at("targets").as<std::int64_t>() + row * columns;
      for (std::int64_t i = 0; i < columns; ++i)
        if (from[i] >= 0) targets.push_back(static_cast<std::int32_t>(from[i]));
      const std::string text = tokenizer.decode(targets);
      CHECK((text.ends_with("it is") || text.ends_with("it is no more") || text.ends_with("it isno more")));
      CHECK(std::ranges::count(targets, end) == (text.ends_with("more") ? 2 : 1));
    }
  }
}

TEST_CASE("packed chats have the losses of chats in rows of their own") {
  const InstalledTemplates installed;
  const tiny::Directory directory;
  directory.write("chats.jsonl", chat_lines());
  json apart = chat_recipe(), together = apart;
  together["definition"] = chat_models + "packed_gpt2.json";
  together["data"]["pack"] = 60;
  Run rows = check_exact(directory, apart, "apart");
  Run packed = check_exact(directory, together, "packed");
  CHECK(packed.batches().epoch_batches() < rows.batches().epoch_batches());
  check_complaint(
      directory,
      [&] {
        json wrong = apart;
        wrong["data"]["pack"] = 60;
        return wrong;
      }(),
      "takes no input 'segments'");
  for (const char* name : {"gpt2", "llama"}) {
    // In float64 and with the same weights, the sums of the losses agree to rounding.
    const auto sums = [&](const std::string& definition, const Batches& batches) {
      Model model =
          Model::load(
              chat_models + definition + ".json",
              {.hyper =
                   std::string(name) == "gpt2" ? std::vector<std::pair<std::string, std::string>>{{"vocab_size", "42"},
                                                                                                  {"n_positions", "64"},
                                                                                                  {"n_embd", "16"},
                                                                                                  {"n_layer", "2"},
                                                                                                  {"n_head", "2"}}
                                               : std::vector<std::pair<std::string, std::string>>{{"vocab_size", "42"},
                                                                                                  {"d_model", "16"},
                                                                                                  {"d_ff", "24"},
                                                                                                  {"layers", "2"},
                                                                                                  {"heads", "2"}},
               .seed = 5,
               .dtype = Dtype::float64});
      double total = 0, count = 0;
      BatchArrays batch = batches.blank();
      for (std::int64_t index = 0; index < batches.epoch_batches(); ++index) {
        batches.training(static_cast<std::uint64_t>(index), batch);
        NamedArrays arrays;
        for (const auto& [input, array] : batch) arrays.add(input, array);
        const Store results = model.play("loss", arrays, Mode::eval);
        total += *results[0].value.as<double>();
        count += static_cast<double>(*results[1].value.as<std::int64_t>());
      }
      return std::pair(total, count);
    };
    const auto separate = sums(name, rows.batches()), joint = sums(std::string("packed_") + name, packed.batches());
    CHECK(separate.second == joint.second);
    CHECK(separate.second > 100);
    CHECK(std::abs(separate.first - joint.first) / separate.first < 1e-13);
  }
}

TEST_CASE("the template is that of the tokenizer's folder, and an unknown one is shown") {
  const InstalledTemplates installed;
  const tiny::Directory directory;
  directory.write("chats.jsonl", chat_lines());
  const std::string folder = directory / "folder";
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(source_root() + "/tests/golden/data/tokenizers/llama2.json", folder + "/tokenizer.json");
  const auto config = [&](const json& jinja) {
    directory.write("folder/tokenizer_config.json",
                    json{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"chat_template", jinja}}.dump());
  };
  json recipe = chat_recipe();
  recipe["data"].erase("template");
  recipe["tokenizer"] = {{"kind", "saved"}, {"path", folder}};
  const json mistral = json::parse(read_text(chat_models + "chat_templates/mistral.json"));
  const std::string jinja = mistral["published"][0];
  config(jinja);
  const std::string path = directory.write("recipe.json", [&] { return recipe.dump(); }());
  Run run = Run::create(Recipe::load(path), directory / "run");
  const Tokenizer& tokenizer = run.tokenizer();
  CHECK(tokenizer.decode(run.prompt("say a")) == "[INST] say a [/INST]");
  CHECK(run.prompt("say a").front() == 1);
  CHECK(std::filesystem::exists(directory / "run/chat_template.json"));
  CHECK(Run::open(directory / "run").prompt("say a") == run.prompt("say a"));
  config({{{"name", "tool_use"}, {"template", "x"}}, {{"name", "default"}, {"template", jinja}}});
  CHECK(complaint(directory, recipe) == "nothing");
  std::filesystem::remove_all(directory / "bad");
  config("{{ bos_token }}{% for m in messages %}<<{{ m }}>>{% endfor %}");
  check_complaint(directory, recipe, "folder has a chat template that is none of the known ones (chatml, gemma,");
  check_complaint(directory, recipe,
                  "text of the folder's template:\n{{ bos_token }}{% for m in messages %}<<{{ m }}>>");
  recipe["data"]["template"] = "mistrel";
  check_complaint(directory, recipe, "no chat template 'mistrel'");
  check_complaint(directory, recipe, "did you mean 'mistral'");
  recipe["data"]["template"] = "llama3";
  check_complaint(directory, recipe, "chats.jsonl, line 1: the tokenizer has no token '<|start_header_id|>'");
  recipe["data"].erase("template");
  config(nullptr);
  check_complaint(directory, recipe, "chats need a template: give one with --set data.template=NAME (chatml,");
}

TEST_CASE("fields and roles of chats have the names of the file") {
  const InstalledTemplates installed;
  const tiny::Directory directory;
  std::string text;
  for (int i = 0; i < 12; ++i)
    text += R"({"a": {"talk": [{"from": "human", "value": "hi there"}, {"from": "gpt", "value": "so be it"}]}})"
            "\n";
  directory.write("chats.jsonl", text);
  json recipe = chat_recipe();
  recipe["tokenizer"]["vocabulary_size"] = 20;
  check_complaint(directory, recipe, "chats.jsonl, line 1: there is no field 'messages' (fields: a)");
  recipe["data"]["fields"] = {{"messages", "a.talk"}, {"role", "from"}, {"content", "value"}};
  check_complaint(directory, recipe,
                  "chats.jsonl, line 1: the role must be \"system\", \"user\" or \"assistant\"; other names");
  recipe["data"]["roles"] = {{"human", "user"}, {"gpt", "assistant"}};
  check_exact(directory, recipe);
  recipe["data"]["roles"] = {{"human", "person"}};
  check_complaint(directory, recipe,
                  "'data.roles.human' must be \"system\", \"user\" or \"assistant\", not \"person\"");
}

TEST_CASE("errors in chats have their line") {
  const InstalledTemplates installed;
  const tiny::Directory directory;
  const auto refuses = [&](const std::string& bad, const std::string& words) {
    directory.write("chats.jsonl", chat_lines(bad));
    check_complaint(directory, chat_recipe(), "chats.jsonl, line 25");
    check_complaint(directory, chat_recipe(), words);
  };
  refuses(R"({"messages": []})", "the chat has no messages");
  refuses(R"({"messages": "hi"})", "an array");
  refuses(R"({"messages": [{"role": "user"}]})", "there is no field 'content'");
  refuses(R"({"messages": [{"role": "user", "content": null}]})", "a string");
  refuses(R"({"messages": [{"role": "tool", "content": "x"}]})", "the role must be");
  refuses(R"({"messages": [{"role": "user", "content": "x"}]})",
          "no message of \"assistant\": there is nothing to learn");
  refuses(R"({"messages": [{"role": "user", "content": "x"})", "belongs here, but the text ends");
  refuses("{\"messages\": [{\"role\": \"user\", \"content\": \"\xC3\"}]}", "not UTF-8");
}

TEST_CASE("preferences have the answers of both sides as targets, with and without a template") {
  const InstalledTemplates installed;
  const tiny::Directory directory;
  directory.write("preferring.json", R"json({
    "xtape": 2, "name": "preferring", "extends": ")json" +
                                         chat_models + R"json(gpt2.json",
    "model": {"functions": {"loss": {
      "inputs": {"chosen_tokens": "int [b, c]", "chosen_targets": "int [b, c]",
                 "rejected_tokens": "int [b, r]", "rejected_targets": "int [b, r]"},
      "do": ["good, count = cross_entropy(logits(chosen_tokens), chosen_targets, ignore=-1)",
             "bad, others = cross_entropy(logits(rejected_tokens), rejected_targets, ignore=-1)"],
      "result": "good - 0.1 * bad, count"}}}
  })json");
  std::string plain, whole;
  for (int i = 0; i < 16; ++i) {
    const std::string letter(1, static_cast<char>('a' + i % 3));
    plain += json{{"prompt", "say " + letter}, {"chosen", letter + " yes"}, {"rejected", "no"}}.dump() + "\n";
    const json first = {message_of("user", "hi"), message_of("assistant", "hello"),
                        message_of("user", "say " + letter)};
    json chosen = first, rejected = first;
    chosen.push_back(message_of("assistant", letter + " yes"));
    rejected.push_back(message_of("assistant", "no"));
    whole += json{{"chosen", chosen}, {"rejected", rejected}}.dump() + "\n";
  }
  json recipe = chat_recipe();
  recipe["definition"] = directory / "preferring.json";
  recipe["tokenizer"]["vocabulary_size"] = 20;
  for (const bool chats : {false, true}) {
    CAPTURE(chats);
    directory.write("rows.jsonl", chats ? whole : plain);
    recipe["data"] = {{"kind", "preferences"}, {"preferences", "rows.jsonl"}, {"held_out", 4}};
    if (chats) recipe["data"]["template"] = "chatml";
    Run run = check_exact(directory, recipe, chats ? "chats" : "plain");
    const Tokenizer& tokenizer = run.tokenizer();
    BatchArrays batch = run.batches().blank();
    run.batches().validation(0, batch);
    const auto text_of = [&](const char* name, std::int64_t row) {
      const Array& array = batch.at(name);
      Tokens tokens;
      for (std::int64_t i = 0; i < array.shape()[1]; ++i)
        if (const std::int64_t token = array.as<std::int64_t>()[row * array.shape()[1] + i]; token > 0)
          tokens.push_back(static_cast<std::int32_t>(token));
      return tokenizer.decode(tokens);
    };
    for (std::int64_t row = 0; row < batch.at("chosen_tokens").shape()[0]; ++row) {
      const std::string chosen = text_of("chosen_targets", row);
      CHECK(chosen.substr(1) == " yes");
      CHECK(text_of("rejected_targets", row) == "no");
      // The same prompt is on both sides.
      CHECK(text_of("rejected_tokens", row).find("say " + chosen.substr(0, 1)) != std::string::npos);
    }
  }
  directory.write("rows.jsonl", plain + "{\"prompt\": \"x\", \"chosen\": \"y\"}\n");
  recipe["data"].erase("template");
  check_complaint(directory, recipe, "rows.jsonl, line 17: there is no field 'rejected' (fields: prompt, chosen)");
  directory.write("rows.jsonl", whole);
  check_complaint(directory, recipe, "rows.jsonl, line 1: messages need a chat template");
}

}  // namespace chat_runs
