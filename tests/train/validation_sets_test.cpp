// Further validation sets by name (data.validation).
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "run_files.hpp"
#include "support/error_of.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"

namespace set_runs {

using namespace xtape;
using test::error_of;

namespace {
/// The first sums with wrong answers, which a training makes less likely.
std::string wrong_text() {
  std::string text;
  for (int i = 0; i < 10; ++i) text += tiny::sums()[static_cast<std::size_t>(i)].substr(0, 4) + "++++\n";
  return text;
}

Recipe with_sets(const tiny::Directory& directory, std::vector<Setting> more = {}) {
  directory.write("wrong.txt", wrong_text());
  directory.write("few.txt", "1+1=2\n9+9=18\n");
  more.insert(more.begin(),
              {{"data.validation.wrong", directory / "wrong.txt"},
               {"data.validation.both", "[\"" + directory / "few.txt" + "\", \"" + directory / "wrong.txt" + "\"]"}});
  return tiny::load(directory, more);
}

double value(const nlohmann::json& line, const std::string& key) {
  REQUIRE(line.contains(key));
  return line[key].get<double>();
}
}  // namespace

TEST_CASE("each set is measured as if it were the validation split, also after a resume and on two ranks") {
  const tiny::Directory directory;
  const Recipe recipe = with_sets(directory, {{"batch.shards", "2"}});
  Run run = Run::create(recipe, directory / "run");
  CHECK(run.train());
  const Evaluation evaluation = run.evaluate();
  REQUIRE(evaluation.sets.size() == 2);
  const std::vector<std::vector<std::string>> files = {{directory / "wrong.txt"},
                                                       {directory / "few.txt", directory / "wrong.txt"}};
  for (std::size_t i = 0; i < 2; ++i) {
    const nlohmann::json list = files[i];
    Run other = Run::open(directory / "run", {{"data.validation_text", list.dump()}, {"data.held_out", "null"}});
    const Evaluation expected = other.evaluate();
    const Evaluation& found = evaluation.sets[i];
    CHECK(found.set == (i == 0 ? "wrong" : "both"));
    CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-6));
    CHECK(found.tokens == expected.tokens);
    CHECK(found.exact_match == expected.exact_match);
    CHECK(found.questions == (i == 0 ? 10 : 12));
  }
  const nlohmann::json last = evaluations(directory / "run").back();
  CHECK(value(last, "validation_loss on wrong") == evaluation.sets[0].loss);
  CHECK(value(last, "exact_match on both") == *evaluation.sets[1].exact_match);
  CHECK(value(last, "validation_loss") == evaluation.loss);

  Run plain = Run::create(tiny::load(directory, {{"batch.shards", "2"}}), directory / "plain");
  CHECK(plain.train());
  CHECK(plain.evaluate().loss == evaluation.loss);  // further sets do not change the training
  CHECK(Run::create(with_sets(directory, {{"batch.shards", "2"}, {"steps", "7"}, {"schedule.steps", "12"}}),
                    directory / "stopped")
            .train());
  CHECK(Run::resume(directory / "stopped", {{"steps", "12"}}).train());
  testing::run_ranks({0, 1}, [&](const std::shared_ptr<Communicator>& communicator) {
    CHECK(Run::create(recipe, directory / "ranks", communicator).train());
  });
  for (const std::string other : {"stopped", "ranks"}) CHECK(evaluations(directory / other).back() == last);
  CHECK(evaluations(directory / "run") == evaluations(directory / "ranks"));
}

TEST_CASE("a measure of a set decides which evaluation is the best") {
  const tiny::Directory directory;
  const auto best = [&](const std::string& of) {
    const std::string folder = directory / ("best " + of);
    Run run = Run::create(with_sets(directory, {{"best", of}, {"keep", "all"}}), folder);
    CHECK(run.train());
    return std::pair(run.trainer().best_step(), evaluations(folder));
  };
  const auto least = [](const std::vector<nlohmann::json>& lines, const std::string& key) {
    return (*std::ranges::min_element(lines, {}, [&](const auto& line) { return value(line, key); }))["step"];
  };
  const auto [step, lines] = best("loss on wrong");
  CHECK(step == least(lines, "validation_loss on wrong"));
  const auto [usual, same] = best("loss");
  CHECK(usual == least(lines, "validation_loss"));
  CHECK(step != usual);
  const std::string unknown = error_of([&] { best("accuracy on wrong"); });
  CHECK(unknown.find("is to be that of 'accuracy on wrong'") != std::string::npos);
  CHECK(unknown.find("loss on wrong, exact_match on wrong") != std::string::npos);
}

TEST_CASE("errors of sets name them") {
  const tiny::Directory directory;
  const auto refused = [&](const std::vector<Setting>& settings) {
    const std::string error = error_of([&] { Run::create(with_sets(directory, settings), directory / "refused"); });
    CHECK(!std::filesystem::exists(directory / "refused"));
    return error;
  };
  const auto tells = [](const std::string& error, const std::string& part) {
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
  };
  tells(refused({{"best", "loss on wrogn"}}), "no set 'wrogn'; did you mean 'wrong'?");
  tells(refused({{"best", "bleu on wrong"}}), "'measure' must list \"bleu\"");
  tells(refused({{"data.validation", "sums.txt"}}), "must be a section of named sets");
  tells(refused({{"data.validation.test", "sums.txt"}}), "is not the name of a set");
  tells(refused({{"data.validation.a b", "sums.txt"}}), "is not the name of a set");
  tells(refused({{"data.validation.none", "[]"}}), "must be a file, or a list with at least one");
  tells(refused({{"data.validation.other", "{\"texts\": \"sums.txt\"}"}}), "did you mean 'text'?");
  tells(refused({{"data.validation.no", directory / "no.txt"}}), "no.txt");
  tells(refused({{"data.validation.empty", directory.write("empty.txt", "\n\n")}}),
        "validation set 'empty' has no rows");
  tells(refused({{"data.validation.odd", directory.write("odd.txt", "1+1=2\n?=1\n")}}), "odd.txt, text 2");
}

TEST_CASE("a set may be given as a section, and verify notices that it has changed") {
  const tiny::Directory directory;
  directory.write("few.txt", "1+1=2\n9+9=18\n");
  Run run = Run::create(
      tiny::load(directory, {{"data.validation", "{\"few\": {\"text\": \"" + directory / "few.txt" + "\"}}"}}),
      directory / "run");
  CHECK(run.train());
  CHECK(Run::verify(directory / "run").same);
  directory.write("few.txt", "1+1=3\n");
  std::string told;
  const Verification found =
      Run::verify(directory / "run", {.tell = [&](const std::string& sentence) { told += sentence + "\n"; }});
  CHECK_FALSE(found.same);
  CHECK(told.find("few.txt differs from the ledger") != std::string::npos);
}

}  // namespace set_runs
