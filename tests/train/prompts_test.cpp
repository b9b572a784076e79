// Prompts that are not targets, and sources of data: held-out rows, validation and test files, pipes.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <sstream>
#include <thread>

#include "run_files.hpp"
#include "tiny.hpp"

using namespace xtape;

namespace {
/// The share of right answers, generated one prompt at a time.
double asked(Run& run, const std::vector<std::string>& lines) {
  GenerateOptions options;
  options.tokens = 5;
  options.context = run.columns();
  options.end_tokens = run.end_tokens();
  options.sampling.temperature = 0;
  double right = 0;
  for (const std::string& line : lines) {
    const std::string prompt = line.substr(0, 4);
    const std::string made = run.tokenizer().decode(generate(run.model(), run.prompt(prompt), options));
    right += prompt + made == line ? 1 : 0;
  }
  return right / static_cast<double>(lines.size());
}

/// A few sums, many times, so that the model soon memorises them.
std::string few_sums() {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "1+1=2\n2+1=3\n4+5=9\n9+9=18\n";
  return text;
}
}  // namespace

TEST_CASE("exact match counts the right greedy answers, prompt by prompt") {
  const tiny::Directory directory;
  const std::vector<Setting> settings = {{"schedule.rate", "0.03"}, {"steps", "60"}, {"hyper.rate", "0"}};
  Run run = Run::create(tiny::load(directory, settings), directory / "run");
  CHECK(run.train());
  std::vector<std::string> held_out = tiny::sums();
  held_out.erase(held_out.begin(), held_out.begin() + 80);
  const Evaluation found = run.evaluate();
  CHECK(found.questions == 20);
  CHECK(*found.exact_match == asked(run, held_out));
  std::int64_t targets = 0;
  for (const std::string& line : held_out) targets += static_cast<std::int64_t>(line.size()) - 4 + 1;  // and the end
  CHECK(found.tokens == targets);
}

TEST_CASE("validation and test files replace a split") {
  const tiny::Directory directory;
  tiny::load(directory);
  directory.write("few.txt", few_sums());
  directory.write("wrong.txt", "1+1=9\n2+1=3\n");
  const std::string data = R"({"kind": "documents", "folder": ")" + directory / "" + R"(", "text": "few.txt",
    "validation_text": "few.txt", "test_text": "wrong.txt", "separator": "line", "prompt_end": "="})";
  const std::vector<Setting> settings = {
      {"data", data}, {"steps", "80"}, {"schedule.rate", "0.03"}, {"hyper.width", "48"}, {"hyper.rate", "0"}};
  Run run = Run::create(tiny::load(directory, settings), directory / "run");
  CHECK(run.train());
  const Evaluation found = run.evaluate(), test = run.evaluate(true);
  CHECK(found.questions == 80);
  CHECK(test.questions == 2);
  CHECK(*found.exact_match == asked(run, read_lines(directory / "few.txt")));
  CHECK(*test.exact_match == asked(run, read_lines(directory / "wrong.txt")));
  CHECK(test.loss > found.loss);
  Run held_out = Run::open(directory / "run", {{"data.held_out", "7"}});  // has no effect with a validation file
  CHECK(held_out.evaluate().questions == 80);
  // Generation needs no data; the run contains the length of its rows.
  std::filesystem::remove(directory / "few.txt");
  Run opened = Run::open(directory / "run");
  CHECK(opened.columns() == 8);
  CHECK_THROWS_WITH_AS(opened.batches(), doctest::Contains("--set data.folder=DIRECTORY"), FileError);
  CHECK_THROWS_WITH_AS(Run::create(tiny::load(directory), directory / "other").evaluate(true),
                       doctest::Contains("the data has no test split"), Error);
}

TEST_CASE("a text without a prompt end is an error, and so are two ways to split") {
  const tiny::Directory directory;
  const Recipe recipe = tiny::load(directory);
  directory.write("sums.txt", "1+1=2\n1+1\n" + tiny::sums_text());
  CHECK_THROWS_WITH_AS(Run::create(recipe, directory / "run"),
                       doctest::Contains("sums.txt, text 2: there is no '=' to end the prompt"), Error);
  CHECK_THROWS_WITH_AS(tiny::load(directory, {{"data.split", "0.5"}}),
                       doctest::Contains("'data.held_out' and 'split' exclude each other"), DefinitionError);
  CHECK_THROWS_WITH_AS(tiny::load(directory, {{"data.prompt_end", ""}}),
                       doctest::Contains("'measure' needs pairs, or documents with a 'prompt_end'"), DefinitionError);
  const Recipe all = tiny::load(directory, {{"data.held_out", "102"}});
  CHECK_THROWS_WITH_AS(Run::create(all, directory / "run"), doctest::Contains("the training split has no rows: "),
                       Error);
}

TEST_CASE("data can come through a pipe, which is read once") {
  const tiny::Directory directory;
  const std::string pipe = directory / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const Recipe recipe = tiny::load(directory, {{"data.text", pipe}});
  std::thread writer([&] { std::ofstream(pipe) << tiny::sums_text(); });
  Run run = Run::create(recipe, directory / "run");
  writer.join();
  CHECK(run.train());
  Run other = Run::create(tiny::load(directory), directory / "other");
  CHECK(other.train());
  CHECK(metrics(directory / "run") == metrics(directory / "other"));
  CHECK(tiny::load(directory, {{"data.text", "-"}}).data.training == Recipe::Data::Files{{"/dev/stdin"}});
}

TEST_CASE("hyper-parameters are computed from the data") {
  const tiny::Directory directory;
  const auto width = [&](const std::string& from) {
    const Recipe recipe = tiny::load(directory, {{"hyper.width", R"({"from": ")" + from + "\"}"}});
    std::filesystem::remove_all(directory / "run");
    return Run::create(recipe, directory / "run").model().hyper().integer("width");
  };
  CHECK(width("columns") == 8);
  CHECK(width("columns + 1") == 9);
  CHECK(width("4 * (vocabulary - columns) // 2") == 16);
  CHECK(width("min(columns, 5)") == 5);
  const auto complaint = [&](const std::string& from) -> std::string {
    try {
      width(from);
    } catch (const DefinitionError& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(
      complaint("colums + 1").find("the data has no 'colums'; did you mean 'columns'? (known: vocabulary, columns)") !=
      std::string::npos);
  CHECK(complaint("columns +").find("'hyper.width' is not a valid expression over the data") != std::string::npos);
  CHECK(complaint("columns // 0").find("'hyper.width'") != std::string::npos);
  CHECK(complaint("columns == 8").find("a number belongs here, not true") != std::string::npos);
}
