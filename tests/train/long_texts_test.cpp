// Runs on texts whose tokens do not stay in memory, and on token files.
#include <doctest/doctest.h>

#include <filesystem>
#include <random>

#include "data/texts/token_files.hpp"
#include "run_files.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"

using namespace xtape;

namespace long_texts_tests {
namespace {
/// More characters than TokenWriter keeps in memory.
std::string long_text() {
  std::mt19937 random(5);
  std::string text;
  while (text.size() < TokenWriter::usually_held * 5 / 4) {
    const auto a = random() % 10;
    text += std::to_string(a) + "+1=" + std::to_string((a + 1) % 10) + "\n";
  }
  return text;
}

Recipe recipe_of(const tiny::Directory& directory, const std::string& file, std::vector<Setting> settings = {}) {
  settings.insert(settings.begin(), {{"data", R"({"kind": "text", "text": ")" + file + R"(", "block_size": 12})"},
                                     {"measure", "null"},
                                     {"steps", "6"},
                                     {"evaluate_every", "6"},
                                     {"batch.size", "4"}});
  return tiny::load(directory, settings);
}

/// Leaves little to evaluate.
const Setting short_validation = {"data.split", "0.9999"};

std::string trained(const Recipe& recipe, const std::string& path) {
  Run run = Run::create(recipe, path);
  CHECK(run.train());
  return path + "/checkpoints/00000006";
}

std::string complaint(const Recipe& recipe, const std::string& path) {
  try {
    Run::create(recipe, path);
  } catch (const Error& error) {
    CHECK(!tiny::fs::exists(path));
    CHECK(!tiny::fs::exists(path + ".cache.writing"));
    return error.what();
  }
  return "nothing";
}

template <class T>
std::string bytes_of(const Tokens& tokens) {
  const std::vector<T> numbers(tokens.begin(), tokens.end());
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}
}  // namespace

TEST_CASE("a run on a long text draws the batches of its tokens in memory, and continues from its cache") {
  const tiny::Directory directory;
  const std::string text = long_text();
  const std::string file = directory.write("long.txt", text);
  const Recipe recipe = recipe_of(directory, file, {short_validation});
  {
    Run run = Run::create(recipe, directory / "whole");
    const TextSplit split = split_text(text, 0.9999);
    const CharacterTokenizer tokenizer(split.training);
    const TextBatches expected(tokenizer.encode(split.training), tokenizer.encode(split.validation),
                               {.rows = 4, .block_size = 12, .seed = 4});
    BatchArrays a = expected.blank(), b = expected.blank();
    for (const std::uint64_t index : {0, 1, 1000}) {
      expected.training(index, a);
      run.batches().training(index, b);
      for (const char* name : {"tokens", "targets"})
        CHECK(std::equal(a.at(name).as<std::int64_t>(), a.at(name).as<std::int64_t>() + 48,
                         b.at(name).as<std::int64_t>()));
    }
    CHECK(run.batches().validation_batches() == expected.validation_batches());
    CHECK(run.train());
  }
  CHECK(tiny::fs::file_size(directory / "whole/cache/training.npy") == 128 + split_text(text, 0.9999).training.size());
  CHECK(!tiny::fs::exists(directory / "whole.cache.writing"));
  const std::string whole = directory / "whole/checkpoints/00000006";

  {
    Run first = Run::create(recipe, directory / "begun");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return first.trainer().step() == 3; };
    CHECK(!first.train(callbacks));
  }
  for (const std::string cache : {"kept", "damaged"}) {
    CAPTURE(cache);
    tiny::fs::remove_all(directory / "parts");
    tiny::fs::copy(directory / "begun", directory / "parts", tiny::fs::copy_options::recursive);
    const auto made = [&] { return tiny::fs::last_write_time(directory / "parts/cache/training.npy"); };
    const auto before = made();
    if (cache == "damaged") directory.write("parts/cache/training.json", "{");
    CHECK(Run::resume(directory / "parts").train());
    CHECK((made() == before) == (cache == "kept"));
    CHECK(same_bits(whole, directory / "parts/checkpoints/00000006"));
  }
}

TEST_CASE("an evaluation plays as many batches as it may, spread over the split") {
  const tiny::Directory directory;
  const std::string text = long_text().substr(0, 2000);
  const Recipe all = recipe_of(directory, directory.write("text.txt", text), {{"data.split", "0.5"}});
  const Recipe few = recipe_of(directory, directory / "text.txt", {{"data.split", "0.5"}, {"evaluate_batches", "3"}});
  const TextSplit split = split_text(text, 0.5);
  const CharacterTokenizer tokenizer(split.training);
  const TextBatches expected(tokenizer.encode(split.training), tokenizer.encode(split.validation),
                             {.rows = 4, .block_size = 12, .seed = 4});
  REQUIRE(expected.validation_batches() == 21);
  Run run = Run::create(few, directory / "few");
  CHECK(run.batches().validation_batches() == 3);
  BatchArrays a = expected.blank(), b = expected.blank();
  for (const std::int64_t index : {0, 1, 2}) {
    expected.validation(7 * index, a);
    run.batches().validation(index, b);
    CHECK(std::equal(a.at("tokens").as<std::int64_t>(), a.at("tokens").as<std::int64_t>() + 48,
                     b.at("tokens").as<std::int64_t>()));
  }
  CHECK(run.evaluate().tokens == 3 * 48);
  CHECK(Run::create(all, directory / "all").evaluate().tokens == 999);
  const Recipe many = recipe_of(directory, directory / "text.txt", {{"data.split", "0.5"}, {"evaluate_batches", "99"}});
  CHECK(Run::create(many, directory / "many").evaluate().tokens == 999);
}

TEST_CASE("ranks share the cache of a long text, and a text that has changed is read again") {
  const tiny::Directory directory;
  std::string text = long_text();
  const std::string file = directory.write("long.txt", text);
  const Recipe recipe = recipe_of(directory, file, {short_validation, {"batch.shards", "2"}});
  const std::string one = trained(recipe, directory / "one");
  testing::run_ranks({0, 0}, [&](const std::shared_ptr<Communicator>& communicator) {
    Run run = Run::create(recipe, directory / "two", communicator);
    CHECK(run.train());
  });
  CHECK(same_bits(one, directory / "two/checkpoints/00000006"));

  const Evaluation before = Run::open(directory / "one").evaluate();
  text.replace(text.size() - 6, 6, "9+9=9\n");
  directory.write("long.txt", text);
  CHECK(Run::open(directory / "one").evaluate().loss != before.loss);
}

TEST_CASE("token files train like the text of their tokens") {
  const tiny::Directory directory;
  const std::string text = tiny::sums_text() + tiny::sums_text();
  const std::size_t end = text.size() / 10 * 9;
  const std::string a = directory.write("a.txt", text.substr(0, end)), b = directory.write("b.txt", text.substr(end));
  const Setting of_text = {"data.validation_text", b};
  Run run = Run::create(recipe_of(directory, a, {of_text}), directory / "text");
  CHECK(run.train());
  const std::string expected = directory / "text/checkpoints/00000006";
  const Tokens training = run.tokenizer().encode(text.substr(0, end)),
               validation = run.tokenizer().encode(text.substr(end));
  const Setting saved = {"tokenizer", R"({"kind": "saved", "path": ")" + directory / "text/tokenizer.json" + "\"}"};

  const std::string first = directory.write("a.bin", bytes_of<std::uint16_t>(training)),
                    second = directory.write("b.bin", bytes_of<std::uint16_t>(validation));
  CHECK(same_bits(expected, trained(recipe_of(directory, first,
                                              {{"data.validation_text", second}, {"data.token_type", "uint16"}, saved}),
                                    directory / "raw")));
  CHECK(Run::open(directory / "raw").evaluate().loss == run.evaluate().loss);

  const auto written = [&](const char* name, const Tokens& tokens) {
    TokenWriter writer(directory / name, 13, 0);
    writer.add(tokens.data(), tokens.size());
    writer.finish();
    return directory / name;
  };
  Tokens all = training;
  all.insert(all.end(), validation.begin(), validation.end());
  const Recipe npy = recipe_of(
      directory, written("all.npy", all),
      {{"data.split", std::to_string(static_cast<double>(training.size()) / static_cast<double>(all.size()))}, saved});
  CHECK(same_bits(expected, trained(npy, directory / "npy")));

  const auto refused = [&](const std::string& file, const std::vector<Setting>& settings) {
    return complaint(recipe_of(directory, file, settings), directory / "refused");
  };
  CHECK(refused(written("c.npy", training), {}) ==
        directory / "c.npy" +
            " has tokens, from which no tokenizer can be made: give the one that made them, as "
            "\"tokenizer\": {\"kind\": \"saved\", \"path\": …}");
  all[7] = 13;
  CHECK(refused(directory.write("d.bin", bytes_of<std::uint16_t>(all)), {saved, {"data.token_type", "uint16"}}) ==
        directory / "d.bin" +
            ": token 13 at place 7 is not in the tokenizer's vocabulary of 13: the tokens are those "
            "of another tokenizer, or of another type");
  all[7] = -1;
  CHECK(refused(directory.write("d.bin", bytes_of<std::int32_t>(all)), {saved, {"data.token_type", "int32"}})
            .find(": token -1 at place 7 is not") != std::string::npos);
  CHECK(refused(directory.write("d.bin", "123"), {saved, {"data.token_type", "uint16"}})
            .find("d.bin': 3 bytes are no whole number of tokens of type uint16") != std::string::npos);
  const Setting mixed = {"data.text", "[\"" + a + "\", \"" + directory / "c.npy" + "\"]"};
  CHECK(refused(a, {mixed, saved}) == directory / "c.npy" +
                                          " has tokens, but the files before it have text: tokenise "
                                          "all files of a split, or none");
}

TEST_CASE("an epoch of shuffled blocks, stopped and continued, equals the uninterrupted one") {
  const tiny::Directory directory;
  const std::string file = directory.write("sums.txt", tiny::sums_text());
  const Recipe recipe = recipe_of(directory, file, {{"data.windows", "shuffled"}});
  const std::string whole = trained(recipe, directory / "whole");
  {
    Run first = Run::create(recipe, directory / "parts");
    Trainer::Callbacks callbacks;
    callbacks.stop = [&] { return first.trainer().step() == 3; };
    CHECK(!first.train(callbacks));
  }
  CHECK(Run::resume(directory / "parts").train());
  CHECK(same_bits(whole, directory / "parts/checkpoints/00000006"));
}

}  // namespace long_texts_tests
