#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "recipe_complaint.hpp"
#include "train/recipe/recipe_parts.hpp"

using namespace xtape;
using tiny::complaint;

TEST_CASE("all keys of a recipe are read") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(directory);
  CHECK(recipe.name == "tiny");
  CHECK(recipe.definition == directory / "tiny.json");
  CHECK(recipe.hyper.size() == 1);
  CHECK(recipe.hyper[0].from_data);
  CHECK(recipe.hyper[0].text == "vocabulary");
  CHECK(recipe.data.kind == "documents");
  CHECK(recipe.data.training == Recipe::Data::Files{{directory / "sums.txt"}});
  CHECK(recipe.data.held_out == 20);
  CHECK(recipe.data.prompt_end == "=");
  CHECK(recipe.batch_size == 8);
  CHECK(recipe.trainer.accumulate == 1);
  CHECK(recipe.trainer.optimizer.kind == OptimizerOptions::Kind::adamw);
  CHECK(recipe.trainer.optimizer.beta2 == 0.99);
  CHECK(recipe.trainer.optimizer.weight_decay == 0.1);
  CHECK(recipe.trainer.schedule.kind == ScheduleOptions::Kind::cosine);
  CHECK(recipe.trainer.schedule.steps == 12);
  CHECK(recipe.trainer.clip == 1);
  CHECK(recipe.trainer.seed == 4);
  CHECK(recipe.fit.steps == 12);
  CHECK(recipe.fit.evaluate_every == 5);
  CHECK(recipe.checkpoint_every == 5);
}

TEST_CASE("settings change a recipe, its text, and what depends on them") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(
      directory, {Setting::parse("steps=30"), Setting::parse("optimizer.weight_decay=0"),
                  Setting::parse("hyper.width=2 * 8"), Setting::parse("tokenizer.unknown=token"),
                  Setting::parse("schedule={\"kind\": \"noam\", \"rate\": 2, \"warmup\": 10, \"width\": 64}")});
  CHECK(recipe.fit.steps == 30);
  CHECK(recipe.trainer.optimizer.weight_decay == 0);
  CHECK(recipe.hyper.at(1).name == "width");
  CHECK(recipe.hyper.at(1).text == "2 * 8");
  CHECK(recipe.tokenizer.unknown == CharacterTokenizer::Unknown::token);
  CHECK(recipe.trainer.schedule.kind == ScheduleOptions::Kind::noam);
  CHECK(recipe.trainer.schedule.width == 64);
  const auto json = nlohmann::json::parse(recipe.text);
  CHECK(json["steps"] == 30);
  CHECK(json["definition"] == directory / "tiny.json");
}

TEST_CASE("settings change elements of lists") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(
      directory, {{"updates", R"([{"loss": "loss", "trains": "here.*"}, {"loss": "loss", "trains": ["out.*", "b"]}])"},
                  {"updates.1.repeat", "3"},
                  {"updates.1.trains.1", "before.*"},
                  {"start", R"([{"into": "here.*"}, {"into": "out.*"}])"},
                  {"start.0.from", "2020"},
                  {"start.1.from", "/runs/b"}});
  CHECK(recipe.trainer.updates[0].repeat == 1);
  CHECK(recipe.trainer.updates[1].repeat == 3);
  CHECK(recipe.trainer.updates[1].trains == std::vector<std::string>{"out.*", "before.*"});
  CHECK(recipe.start[0].from == std::filesystem::current_path() / "2020");
  CHECK(recipe.start[1].from == "/runs/b");
  CHECK(recipe.start[1].into == "out.*");
  for (const char* key : {"measure.1", "measure.first", "measure.0x"})
    CHECK(complaint(std::string(key) + "=bleu").find("'measure' is a list of 1: its elements are called measure.0") !=
          std::string::npos);
}

TEST_CASE("noam has the published warm-up, and a cosine without steps ends with the epochs") {
  const tiny::Directory directory;
  const Recipe noam = tiny::load(directory, {Setting::parse(R"(schedule={"kind": "noam", "rate": 1})")});
  CHECK(noam.trainer.schedule.warmup == 4000);
  CHECK(noam.trainer.schedule.width == 512);
  const Recipe cosine = tiny::load(directory, {Setting::parse("steps=0"), Setting::parse("epochs=3")});
  CHECK(cosine.trainer.schedule.steps == 0);
  CHECK(cosine.trainer.schedule.epochs == 3);
}

TEST_CASE("the width of noam is that of the model, by an expression over its hyper-parameters") {
  const tiny::Directory directory;
  const auto width = [&](const std::string& text) {
    TrainerOptions options =
        tiny::load(directory, {{"schedule", R"({"kind": "noam", "rate": 1, "width": ")" + text + "\"}"}}).trainer;
    Hyper hyper;
    hyper.set("d_model", 64);
    hyper.set("rate", 0.5);
    return train::schedule_of(options.schedule, options, hyper, 0).width;
  };
  CHECK(width("d_model") == 64);
  CHECK(width("2 * d_model") == 128);
  CHECK_THROWS_WITH_AS(width("d_modle"), doctest::Contains("unknown name 'd_modle'; did you mean 'd_model'?"),
                       DefinitionError);
  CHECK_THROWS_WITH_AS(width("d_model / 0.7"), doctest::Contains("'schedule.width': an integer belongs here"),
                       DefinitionError);
}

TEST_CASE("text in consecutive windows has epochs, text in random blocks has none") {
  const tiny::Directory directory;
  const auto with = [&](const std::string& windows) {
    return tiny::load(
        directory, {Setting::parse(R"(data={"kind": "text", "text": "a.txt", "windows": ")" + windows + "\"}"),
                    Setting::parse("epochs=3"), Setting::parse("evaluate_every=epoch"), Setting::parse("measure=[]")});
  };
  const Recipe recipe = with("consecutive");
  CHECK(recipe.data.order == TextOrder::consecutive);
  CHECK(recipe.fit.epochs == 3);
  CHECK(recipe.fit.evaluate_epochs);
  CHECK(recipe.checkpoint_epochs);
  CHECK_THROWS_WITH_AS(with("random"), doctest::Contains("'epochs' needs epochs, which this data does not have"),
                       DefinitionError);
}

TEST_CASE("paths in the file are relative to it, those of settings to the working directory") {
  const tiny::Directory directory;
  directory.write("tiny.json", tiny::definition);
  std::string text = tiny::recipe;
  const std::size_t begin = text.find("{\"kind\": \"documents\"");
  text.replace(begin, text.find('}', begin) + 1 - begin,
               R"({"kind": "text", "text": "../some/words.txt", "block_size": 8})");
  text.replace(text.find("[\"exact_match\"]"), 15, "[]");
  const std::string path = directory.write("recipe.json", text);
  const std::string base = tiny::fs::path(directory / "").parent_path().parent_path().string();
  CHECK(Recipe::load(path).data.training.at(0).at(0) == base + "/some/words.txt");
  CHECK(Recipe::load(path, {Setting::parse("data.text=a/b.txt")}).data.training.at(0).at(0) ==
        (tiny::fs::current_path() / "a/b.txt").string());
  CHECK(Recipe::load(path, {Setting::parse("data.text=/a/b.txt")}).data.training.at(0).at(0) == "/a/b.txt");
  CHECK(Recipe::load(path, {Setting::parse(R"(data={"kind": "text", "text": "a/b.txt"})")}).data.training.at(0).at(0) ==
        (tiny::fs::current_path() / "a/b.txt").string());
  CHECK(Recipe::load(path, {Setting::parse("data.split=0.5")}).data.split == 0.5);
  CHECK(Recipe::load(path, {Setting::parse("data.split=0.5"), Setting::parse("data.split=null")}).data.split == 0.9);
  CHECK(Recipe::load(path, {Setting::parse("data.validation_text=null")}).data.validation.empty());
  CHECK_THROWS_WITH_AS(Recipe::load(path, {Setting::parse("data.text=null")}),
                       doctest::Contains("needs the key 'text'"), DefinitionError);
  CHECK(Recipe::load(path, {Setting::parse("data.text=2020")}).data.training.at(0).at(0) ==
        (tiny::fs::current_path() / "2020").string());
  const Recipe bytes =
      Recipe::load(path, {Setting::parse(R"(tokenizer={"kind": "gpt2", "vocab": "v.json", "merges": "/a/m.txt"})"),
                          Setting::parse("tokenizer.end_in_text=true")});
  CHECK(bytes.tokenizer.vocab == (tiny::fs::current_path() / "v.json").string());
  CHECK(bytes.tokenizer.merges == "/a/m.txt");
  CHECK(bytes.tokenizer.gpt2.end_in_text);
  text.replace(text.find("../some/words.txt"), 17, "words.txt");  // missing, but resolved
  CHECK(Recipe::load(directory.write("recipe.json", text)).data.training.at(0).at(0) == directory / "words.txt");
}

TEST_CASE("a wrong recipe is one error that names the key and the nearest known key") {
  CHECK(complaint("step=3").find("'step' is not a known key; did you mean 'steps'?") != std::string::npos);
  CHECK(complaint("optimizer.weight_decy=0")
            .find("'optimizer.weight_decy' is not a known key; did you mean "
                  "'weight_decay'?") != std::string::npos);
  CHECK(complaint("optimizer.kind=adamww").find("did you mean 'adamw'?") != std::string::npos);
  CHECK(complaint("schedule.kind=cosin").find("did you mean 'cosine'?") != std::string::npos);
  CHECK(complaint("optimizer.momentum=0.9").find("'optimizer.momentum'") != std::string::npos);  // not a key of adamw
  CHECK(complaint("steps=many").find("'steps' must be a whole number from 0 to 1000000000000, not \"many\"") !=
        std::string::npos);
  CHECK(complaint("steps=-1").find("'steps' must be a whole number") != std::string::npos);
  CHECK(complaint("clip=-1").find("'clip' must be at least 0") != std::string::npos);
  CHECK(complaint("precision=bf61")
            .find("'precision' must be \"float32\", \"bf16x3\", \"bf16\", \"int8\" or \"int8_training\", not \"bf61\"; "
                  "did you mean "
                  "'bf16'?") != std::string::npos);
  CHECK(complaint("bits=sane")
            .find("'bits' must be \"usual\", \"same\" or \"fast\", not \"sane\"; did you mean 'same'?") !=
        std::string::npos);
  CHECK(complaint("bits=same", {"precision=bf16"}).find("'bits' is \"same\", which needs 'precision' \"float32\"") !=
        std::string::npos);
  for (const std::string name : {"float16", "fp16"})
    CHECK(complaint("precision=" + name).find("in float16, which has no faster products here either; use \"bf16\"") !=
          std::string::npos);
  CHECK(complaint("batch.size=0").find("'batch.size' must be a whole number from 1 to 2147483648, not 0") !=
        std::string::npos);
  CHECK(complaint("batch.accumulate=0").find("'batch.accumulate'") != std::string::npos);
  CHECK(complaint("optimizer.betas=0.9").find("'optimizer.betas' must be a list of two numbers") != std::string::npos);
  CHECK(complaint("optimizer.betas=[0.9,1.5]").find("two numbers in [0, 1)") != std::string::npos);
  CHECK(complaint("data.kind=words")
            .find("'data.kind' must be \"text\", \"documents\", \"chats\", \"preferences\", \"pairs\", \"table\", "
                  "\"tags\", \"images\" or \"arrays\", not \"words\"") != std::string::npos);
  CHECK(complaint("data={\"kind\":\"text\"}").find("use --set data.text=FILE") != std::string::npos);
  CHECK(complaint("data=3").find("'data' must be an object") != std::string::npos);
  CHECK(complaint("steps.more=3").find("'steps' is not an object") != std::string::npos);
  CHECK(complaint("hyper.width={\"from\":\"sky\"}").find("'hyper.width' is not a valid expression over the data: ") !=
        std::string::npos);
  const std::vector<std::string> on_text = {R"(data={"kind": "text", "text": "a"})"};
  CHECK(complaint("epochs=3", on_text)
            .find("'epochs' needs epochs, which this data does not have: rows, and text with "
                  "'windows' \"consecutive\" or \"shuffled\" have them") != std::string::npos);
  CHECK(complaint("evaluate_every=epoch", on_text).find("'evaluate_every' \"epoch\" needs epochs") !=
        std::string::npos);
  CHECK(complaint(R"(data={"kind":"text","text":"a","windows":"all"})")
            .find("'data.windows' must be \"random\", \"consecutive\" or \"shuffled\", not \"all\"") !=
        std::string::npos);
  CHECK(complaint("xtape=1").find("must be 2: 'xtape check --fix FILE' rewrites a recipe of version 1") !=
        std::string::npos);
  CHECK(complaint("name=a/b").find("'name' must be a name without '/'") != std::string::npos);
  CHECK(complaint("tokenizer.kind=bytes").find("'tokenizer.kind'") != std::string::npos);
  for (const char* wrong : {"steps", "=3", ".a=3", "a..b=3", "a.=3"})
    CHECK_THROWS_WITH_AS(Setting::parse(wrong), doctest::Contains("must have the form key=value"), DefinitionError);
}

TEST_CASE("a private recipe, and errors in it") {
  const std::string privacy = R"(privacy={"clip_norm": 0.5, "noise_multiplier": 1.5, "delta": 1e-5})";
  const tiny::Directory directory;
  const PrivacyOptions read = tiny::load(directory, {Setting::parse(privacy)}).trainer.privacy;
  CHECK(read.clip_norm == 0.5);
  CHECK(read.noise_multiplier == 1.5);
  CHECK(read.delta == 1e-5);
  CHECK(tiny::load(directory).trainer.privacy.clip_norm == 0);
  const auto says = [&](const std::string& setting, const char* what) {
    CHECK_MESSAGE(complaint(privacy, {setting}).find(what) != std::string::npos, setting);
  };
  says("privacy={}", "'privacy' needs the key 'clip_norm'");
  says("privacy.clip_norm=0", "'privacy.clip_norm' must be above 0");
  says("privacy.clip_norm=true", "'privacy.clip_norm' must be a number");
  says("privacy.noise_multiplier=-1", "'privacy.noise_multiplier' must be at least 0");
  says("privacy.delta=0", "'privacy.delta' must be above 0 and below 1");
  says("privacy.delta=1", "'privacy.delta' must be above 0 and below 1");
  says("privacy.epsilon=1", "'privacy.epsilon' is not a known key");
  says("precision=bf16", "'privacy' needs 'precision' \"float32\" or \"bf16x3\"");
  says(R"(batch={"tokens": 64})", "'privacy' needs 'batch.size'");
  const std::string text = R"(data={"kind": "text", "text": "a"})";
  CHECK(complaint(text, {"measure=[]", privacy})
            .find("'privacy' protects rows, which data of kind 'text' does not have") != std::string::npos);
}

TEST_CASE("errors in the file have their line; files that are not recipes are errors") {
  const tiny::Directory directory;
  std::string text = tiny::recipe;
  text.replace(text.find("\"clip\""), 6, "\"clop\"");
  const std::string path = directory.write("recipe.json", text);
  CHECK_THROWS_WITH_AS(Recipe::load(path),
                       doctest::Contains(", line 11: 'clop' is not a known key; did you mean 'clip'?"),
                       DefinitionError);
  CHECK_THROWS_AS(Recipe::load(directory.write("list.json", "[]")), DefinitionError);
  CHECK_THROWS_AS(Recipe::load(directory.write("cut.json", "{\"xtape\": 2,")), DefinitionError);
  CHECK_THROWS_AS(Recipe::load(directory / "none.json"), FileError);
  CHECK_THROWS_WITH_AS(Recipe::load(directory.write("empty.json", "{}")), doctest::Contains("needs the key 'xtape'"),
                       DefinitionError);
}

TEST_CASE("a recipe that is not JSON, or has the wrong structure, is one error with line and caret") {
  const tiny::Directory directory;
  const auto error = [&](const std::string& text) -> std::string {
    try {
      Recipe::load(directory.write("wrong.json", text));
    } catch (const DefinitionError& error) {
      return std::string(error.what()).substr((directory / "").size());
    }
    return "nothing";
  };
  CHECK(error("") == "wrong.json: the text is empty: JSON text must contain a value");
  CHECK(error(std::string("\xEF\xBB\xBF") + tiny::recipe) == "nothing");
  CHECK(error(std::string(tiny::recipe) + std::string(1, '\0') + "\"").find("a NUL byte") != std::string::npos);
  CHECK(error(std::string(20000, '[')).find("nested more than 256 deep") != std::string::npos);
  CHECK(error("[]") == "wrong.json, line 1: the recipe must be an object\n    []\n    ^");
  std::string text = tiny::recipe;
  text.replace(text.find("\"steps\""), 7, "\"stepz\"");
  CHECK(error(text).find("\n    ") != std::string::npos);
  text =
      "{\"xtape\": 2, \"name\": \"a\", \"definition\": \"a\",\n \"batch\": {}, \"optimizer\": {}, \"schedule\": {},\n"
      " \"data\": {\"kind\": 7}}";
  CHECK(error(text) ==
        "wrong.json, line 3: 'data.kind' must be a string, not 7\n     \"data\": {\"kind\": 7}}\n"
        "                      ^");
}

TEST_CASE("an error about a setting names the setting, not the file's line") {
  CHECK(complaint("data.held_out=many").find(", --set data.held_out: 'data.held_out' must be a whole number") !=
        std::string::npos);
  CHECK(complaint("hyper.width=\xFF").find("a setting or a path is not UTF-8") != std::string::npos);
  CHECK(complaint("steps=9223372036854775808").find("to 1000000000000, not 9223372036854775808") != std::string::npos);
  CHECK(complaint("hyper.width=" + std::string(20000, '[')) == "nothing");  // not valid JSON, and thus text
}

TEST_CASE("integers out of range are errors with the key and the range") {
  const std::string text = R"(data={"kind": "text", "text": "a", "split": 0.9)";
  const std::string pairs = R"(data={"kind": "pairs", "pairs": "a", )";
  const std::string words = R"(tokenizer={"kind": "words", )", pieces = R"(tokenizer={"kind": "sentencepiece", )";
  const std::string noam = R"(schedule={"kind": "noam", "rate": 1, "warmup": 9, )";
  struct Case {
    std::string setting, key, end;
    std::int64_t low, high;
  };
  const Case cases[] = {
      {"steps=", "steps", "", 0, 1000000000000},
      {"epochs=", "epochs", "", 0, 1000000000000},
      {"evaluate_every=", "evaluate_every", "", 0, 1000000000000},
      {"checkpoint_every=", "checkpoint_every", "", 0, 1000000000000},
      {"patience=", "patience", "", 0, 1000000000000},
      {"keep=", "keep", "", 1, 1000000000000},
      {"threads=", "threads", "", 0, 4096},
      {"seed=", "seed", "", 0, INT64_MAX},
      {"batch.size=", "batch.size", "", 1, std::int64_t{1} << 31},
      {"batch.accumulate=", "batch.accumulate", "", 1, 1 << 20},
      {"search.beam_size=", "search.beam_size", "", 1, 4096},
      {"search.max_length=", "search.max_length", "", 1, 1 << 24},
      {"search.length_extra=", "search.length_extra", "", 0, 1 << 24},
      {"schedule.warmup=", "schedule.warmup", "", 0, 1000000000000},
      {noam + "\"width\": ", "schedule.width", "}", 1, 1000000000000},
      {text + ", \"block_size\": ", "data.block_size", "}", 1, 1 << 24},
      {R"(data={"kind": "documents", "text": "a", "max_length": )", "data.max_length", "}", 0, 1 << 24},
      {pairs + "\"held_out\": ", "data.held_out", "}", 1, 1000000000000},
      {pairs + "\"longest_row\": ", "data.longest_row", "}", 0, std::int64_t{1} << 31},
      {words + "\"multiple\": ", "tokenizer.multiple", "}", 1, 1 << 20},
      {words + "\"minimum_count\": ", "tokenizer.minimum_count", "}", 1, 1000000000000},
      {pieces + "\"vocabulary_size\": ", "tokenizer.vocabulary_size", "}", 5, 1 << 20},
  };
  for (const Case& each : cases) {
    const std::string range = "'" + each.key + "' must be a whole number from " + std::to_string(each.low) + " to " +
                              std::to_string(each.high);
    const auto refused = [&](const std::string& number) {
      const std::string found = complaint(each.setting + number + each.end);
      CHECK_MESSAGE(found.find(range) != std::string::npos, found);
      CHECK_MESSAGE(found.find("--set") != std::string::npos, found);
    };
    refused(std::to_string(each.low - 1));
    if (each.high < INT64_MAX) refused(std::to_string(each.high + 1));
    if (each.high < INT64_MAX) refused("9223372036854775807");
    refused("9223372036854775808");
    refused("18446744073709551615");
    refused("-9223372036854775808");
    refused("2.0");
    refused("true");
    CHECK(complaint(each.setting + std::to_string(each.low) + each.end).find(range) == std::string::npos);
    CHECK(complaint(each.setting + std::to_string(each.high) + each.end).find(range) == std::string::npos);
  }
  for (const char* split : {"0", "1.5", "-0.5"})
    CHECK(complaint(R"(data={"kind": "text", "text": "a", "split": )" + std::string(split) + "}")
              .find("'data.split' must be above 0 and at most 1") != std::string::npos);
}

TEST_CASE("a batch of text has at most the maximum number of tokens, for any size and block_size") {
  const auto with = [&](const std::string& size) {
    return complaint(R"(data={"kind": "text", "text": "a", "block_size": 1048576})", {"batch.size=" + size});
  };
  CHECK(with("2049").find("'batch.size' must be a whole number from 1 to 2048, not 2049") != std::string::npos);
  CHECK(with("2048").find("'batch.size'") == std::string::npos);
}

TEST_CASE("the error for a number out of range shows its line of the file") {
  const tiny::Directory directory;
  tiny::load(directory);
  std::string text = read_text(directory / "recipe.json");
  const std::string size = "\"size\": 8";
  REQUIRE(text.find(size) != std::string::npos);
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(size)), '\n');
  text.replace(text.find(size), size.size(), "\"size\": 9223372036854775807");
  const std::string file = directory.write("large.json", text);
  CHECK_THROWS_WITH_AS(
      Recipe::load(file),
      doctest::Contains((file + ", line " + std::to_string(line) +
                         ": 'batch.size' must be a whole number from 1 to 2147483648, not 9223372036854775807\n")
                            .c_str()),
      DefinitionError);
}
