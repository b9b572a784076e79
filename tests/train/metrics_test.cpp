// Reading of metrics.jsonl.
#include "train/run/metrics.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tiny.hpp"

using namespace xtape;

TEST_CASE("metrics are read back as they were written") {
  const tiny::Directory directory;
  const std::string path = directory / "metrics.jsonl";
  {
    train::Metrics metrics(path, 0);
    metrics.add(StepReport{1, 2.5, 0.01, 3, 40, 0.5});
    metrics.add(StepReport{2, std::nan(""), 0.01, 3, 0, 0.5});  // without rows
    Evaluation evaluation;
    evaluation.step = 1;
    evaluation.loss = 2.25;
    evaluation.tokens = 7;
    evaluation.perplexity = INFINITY;
    evaluation.bleu = 31;
    metrics.add(evaluation);
    Range range;
    range.min = -2;
    range.max = 1.5;
    range.count = 4;
    range.nans = range.negative_infinities = 1;
    metrics.add(3, std::vector<WatchedValue>{{"h.scores", "float32 (4)", range}});
  }
  const std::vector<train::Measured> lines = train::read_metrics(path);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].step == 1);
  CHECK(*lines[0].find("loss") == 2.5);
  CHECK(*lines[0].find("tokens_per_s") == 80);
  CHECK(lines[0].find("validation_loss") == nullptr);
  CHECK(lines[1].find("loss") == nullptr);
  CHECK(*lines[1].find("gradient_norm") == 3);
  CHECK(*lines[2].find("validation_loss") == 2.25);
  CHECK(*lines[2].find("bleu") == 31);
  CHECK(lines[2].find("perplexity") == nullptr);  // it was not finite
  CHECK(lines[3].step == 3);
  CHECK(lines[3].numbers.empty());
  CHECK(lines[3].watched ==
        train::Measured::Groups{{"h.scores", {{"least", -2}, {"largest", 1.5}, {"not_finite", 2}}}});
}

TEST_CASE("only the last line of a metrics file may be cut off") {
  const tiny::Directory directory;
  CHECK(train::read_metrics(directory.write("one", "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"lo")).size() == 1);
  CHECK(train::read_metrics(directory.write("none", "{\"st")).empty());
  CHECK_THROWS_WITH_AS(train::read_metrics(directory.write("broken", "{\"step\": 1, \"lo\n{\"step\": 2}\n")),
                       doctest::Contains("broken, line 1: this is not a measurement of a training step"), FileError);
  CHECK_THROWS_AS(train::read_metrics(directory / "missing"), FileError);
}
