// Private trainings: draws of rows, clipped gradients, noise and epsilon.
#include "xtape/privacy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "private_training.hpp"
#include "recurrent.hpp"
#include "source_root.hpp"
#include "thread_ranks.hpp"
#include "tiny.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

using namespace xtape;
using namespace private_training;

namespace {
/// What an update adds to the weights, in double precision, by weight.
std::vector<std::vector<double>> change(const Store& before, const Store& after) {
  std::vector<std::vector<double>> changes;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const float *a = after[i].value.as<float>(), *b = before.at(after[i].name).as<float>();
    auto& of_weight = changes.emplace_back();
    for (std::int64_t k = 0; k < after[i].value.count(); ++k) of_weight.push_back(static_cast<double>(a[k]) - b[k]);
  }
  return changes;
}

std::vector<std::vector<double>> change_of_update(Private& made) {
  const Store before = recurrent::copy_of(made.model.weights());
  Trainer trainer = made.trainer();
  trainer.update();
  return change(before, made.model.weights());
}

/// The drawn rows of an update, each as a batch of its own.
std::vector<BatchArrays> rows_of_update(const Private& made, std::uint64_t update) {
  std::vector<BatchArrays> rows;
  BatchArrays batch = made.batches.blank();
  const auto parts = static_cast<std::uint64_t>(made.options.accumulate);
  for (std::uint64_t part = 0; part < parts; ++part) {
    made.batches.training(update * parts + part, batch);
    const Array used = batch.at(drawn_rows);
    const std::int64_t columns = batch.at("tokens").shape()[1];
    for (std::int64_t i = 0; i < used.count(); ++i) {
      if (used.as<float>()[i] == 0) continue;
      BatchArrays& row = rows.emplace_back();
      for (const char* name : {"tokens", "targets"}) {
        Array array(Dtype::int64, {1, columns});
        std::copy_n(batch.at(name).as<std::int64_t>() + i * columns, columns, array.as<std::int64_t>());
        row.add(name, array);
      }
    }
  }
  return rows;
}

/// Loss and gradients of a row's mean loss, by weight.
std::pair<double, std::vector<std::vector<double>>> gradients_of(const Private& made, const BatchArrays& row) {
  Tape tape(Mode::train);
  const NamedVars inputs = made.model.inputs(tape, "loss", {{"b", 1}, {"t", row[0].value.shape()[1]}});
  const NamedVars results = made.model.record(tape, "loss", inputs);
  const Var loss = results[0].value / cast(results[1].value, Dtype::float32);
  Vars weights;
  for (const auto& weight : made.model.weights()) weights.push_back(made.model.weight(tape, weight.name));
  Vars outputs = grad(loss, weights);
  outputs.push_back(loss);
  Player player(tape, outputs);
  player.play({{inputs.at("tokens"), row.at("tokens")}, {inputs.at("targets"), row.at("targets")}});
  std::vector<std::vector<double>> gradients;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Array gradient = Array(player.view(outputs[i]));
    gradients.emplace_back(gradient.as<float>(), gradient.as<float>() + gradient.count());
  }
  return {player.scalar(loss), gradients};
}

void check_near(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b, double most) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    for (std::size_t k = 0; k < a[i].size(); ++k) largest = std::max(largest, std::abs(a[i][k] - b[i][k]));
  }
  CHECK(largest < most);
}
}  // namespace

TEST_CASE("a private update is the sum of the rows' clipped gradients over the expected number of rows") {
  constexpr int on_average = 11;
  Private made(on_average);
  const std::vector<BatchArrays> rows = rows_of_update(made, 0);
  REQUIRE(rows.size() % 8 != 0);  // so that there is padding
  std::vector<std::vector<double>> expected;
  double losses = 0;
  int clipped = 0;
  for (const BatchArrays& row : rows) {
    const auto [loss, gradients] = gradients_of(made, row);
    losses += loss;
    double squares = 0;
    for (const auto& gradient : gradients)
      for (const double x : gradient) squares += x * x;
    const double factor = std::min(1.0, made.options.privacy.clip_norm / std::sqrt(squares));
    clipped += factor < 1 ? 1 : 0;
    expected.resize(gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      expected[i].resize(gradients[i].size());
      for (std::size_t k = 0; k < gradients[i].size(); ++k) expected[i][k] -= factor * gradients[i][k] / on_average;
    }
  }
  CHECK(clipped > 0);
  const Store before = recurrent::copy_of(made.model.weights());
  Trainer trainer = made.trainer();
  const StepReport report = trainer.update();
  check_near(change(before, made.model.weights()), expected, 1e-6);
  CHECK(report.loss == doctest::Approx(losses / static_cast<double>(rows.size())).epsilon(1e-5));
  CHECK(report.tokens == static_cast<std::int64_t>(rows.size()));
}

TEST_CASE("rows of padding have no effect, also of numbers, which cannot be ignored") {
  DataRows rows = {{{"x", Column::Kind::number, 0, 2}, {"y", Column::Kind::number}}, {}};
  for (int i = 0; i < 40; ++i) {
    const float x = 0.1F * static_cast<float>(i % 7) - 0.2F, z = 0.5F - 0.03F * static_cast<float>(i);
    rows.rows.push_back({{{}, {x, z}}, {{}, {1 + x * z}}});
  }
  // The bias gives a row of zeros a gradient.
  const char* definition = R"json({
    "xtape": 2, "name": "line",
    "model": {
      "weights": {"w": {"shape": [2], "init": "ones"}, "bias": {"shape": [1], "init": "ones"}},
      "functions": {"loss": {
        "inputs": {"x": "float [b, 2]", "y": "float [b]"},
        "result": "sum((matmul(x, w) + bias - y) ** 2), sum(y * 0 + 1)"
      }}
    }
  })json";
  const RowBatches batches(rows, rows, {.rows = 9, .seed = 3, .draws = 1});
  Model model = Model::parse(definition, {}, "line.json");
  BatchArrays batch = batches.blank();
  batches.training(0, batch);
  const Array used = batch.at(drawn_rows), x = batch.at("x"), y = batch.at("y");
  double sum[3] = {0, 0, 0}, losses = 0;
  int count = 0;
  for (std::int64_t i = 0; i < used.count(); ++i) {
    if (used.as<float>()[i] == 0) continue;
    ++count;
    const double a = x.as<float>()[2 * i], b = x.as<float>()[2 * i + 1], error = a + b + 1 - y.as<float>()[i];
    const double norm = 2 * std::abs(error) * std::sqrt(a * a + b * b + 1), factor = std::min(1.0, 0.8 / norm);
    losses += error * error;
    sum[0] += factor * 2 * error * a;
    sum[1] += factor * 2 * error * b;
    sum[2] += factor * 2 * error;
  }
  REQUIRE(count < used.count());
  TrainerOptions options;
  options.optimizer.kind = OptimizerOptions::Kind::sgd;
  options.schedule.rate = 1;
  options.privacy = {.clip_norm = 0.8, .noise_multiplier = 0, .delta = 1e-3};
  Trainer trainer(model, batches, options);
  CHECK(trainer.update().loss == doctest::Approx(losses / count).epsilon(1e-5));
  const Array w = model.weights().at("w").clone(), bias = model.weights().at("bias").clone();
  CHECK(w.as<float>()[0] == doctest::Approx(1 - sum[0] / 9).epsilon(1e-5));
  CHECK(w.as<float>()[1] == doctest::Approx(1 - sum[1] / 9).epsilon(1e-5));
  CHECK(bias.as<float>()[0] == doctest::Approx(1 - sum[2] / 9).epsilon(1e-5));
}

TEST_CASE("padding has no effect where the loss of zeros is infinite, and a mean may be over less than one target") {
  DataRows rows = {{{"y", Column::Kind::number}}, {}};
  for (int i = 0; i < 20; ++i) rows.rows.push_back({{{}, {1 + 0.1F * static_cast<float>(i)}}});
  const char* definition = R"json({
    "xtape": 2, "name": "scale",
    "model": {
      "weights": {"w": {"shape": [1], "init": "ones"}},
      "functions": {"loss": {
        "inputs": {"y": "float [b]"},
        "result": "sum(w * log(y) / 4), sum(y * 0 + 0.25)"
      }}
    }
  })json";
  const RowBatches batches(rows, rows, {.rows = 3, .seed = 3, .draws = 1});
  Model model = Model::parse(definition, {}, "scale.json");
  BatchArrays batch = batches.blank();
  batches.training(0, batch);
  const Array used = batch.at(drawn_rows), y = batch.at("y");
  double losses = 0, gradient = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < used.count(); ++i) {
    if (used.as<float>()[i] == 0) continue;
    const double loss = std::log(y.as<float>()[i]);
    losses += loss;
    gradient += std::min(loss, 0.6);
    ++count;
  }
  REQUIRE(count > 0);
  REQUIRE(count < used.count());
  TrainerOptions options;
  options.optimizer.kind = OptimizerOptions::Kind::sgd;
  options.schedule.rate = 1;
  options.privacy = {.clip_norm = 0.6, .noise_multiplier = 0, .delta = 1e-3};
  Trainer trainer(model, batches, options);
  CHECK(trainer.update().loss == doctest::Approx(losses / static_cast<double>(count)).epsilon(1e-5));
  CHECK(model.weights().at("w").as<float>()[0] == doctest::Approx(1 - gradient / 3).epsilon(1e-5));
  for (int i = 0; i < 20; ++i) CHECK_NOTHROW(trainer.update());  // among them draws without rows
}

TEST_CASE("neither the number of micro-batches nor that of shards changes a private update") {
  Private whole(24), parts(4, 6), shards(24);
  shards.options.shards = 3;
  const auto expected = change_of_update(whole);
  check_near(change_of_update(parts), expected, 1e-6);
  check_near(change_of_update(shards), expected, 1e-6);
}

TEST_CASE("noise is added once, with the deviation that the privacy asks for, and anew in each update") {
  Private quiet(4, 3, "0", "500"), noisy(4, 3, "0", "500");
  noisy.options.shards = quiet.options.shards = 2;
  noisy.options.privacy.noise_multiplier = 5;
  const auto without = change_of_update(quiet), with = change_of_update(noisy);
  std::vector<double> noise;
  for (std::size_t i = 0; i < with.size(); ++i)
    for (std::size_t k = 0; k < with[i].size(); ++k) noise.push_back(with[i][k] - without[i][k]);
  const auto deviation_of = [](const std::vector<double>& numbers) {
    double squares = 0;
    for (const double x : numbers) squares += x * x;
    return std::sqrt(squares / static_cast<double>(numbers.size()));
  };
  REQUIRE(noise.size() == 3 * 13 * 500);
  CHECK(deviation_of(noise) == doctest::Approx(5 * 0.3 / 12).epsilon(0.03));
  double sum = 0, next = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < noise.size(); ++i) {
    sum += noise[i];
    next += noise[i] * noise[i + 1];
    squares += noise[i] * noise[i];
  }
  const double root = std::sqrt(static_cast<double>(noise.size()));
  CHECK(std::abs(sum) < 5 * root * deviation_of(noise));
  CHECK(std::abs(next) < 5 * squares / root);  // neighbours are not correlated

  // Draws without rows, of which there are some: noise alone.
  Private few(1);
  few.options.privacy.noise_multiplier = 1;
  Trainer trainer = few.trainer();
  int empty = 0;
  std::vector<std::vector<double>> last;
  for (std::uint64_t update = 0; update < 16; ++update) {
    const Store before = recurrent::copy_of(few.model.weights());
    const StepReport report = trainer.update();
    if (!rows_of_update(few, update).empty()) continue;
    ++empty;
    CHECK(report.tokens == 0);
    CHECK(std::isnan(report.loss));
    const auto changed = change(before, few.model.weights());
    CHECK(deviation_of(changed[0]) == doctest::Approx(0.3).epsilon(0.3));
    if (!last.empty()) CHECK(changed != last);
    last = changed;
  }
  CHECK(empty > 1);
}

TEST_CASE("a private training has the same bits on any number of ranks and threads, with dropout") {
  const auto trained = [](const std::vector<int>& hosts, int threads) {
    std::vector<Store> weights(hosts.size());
    std::vector<double> numbers(hosts.size());
    testing::run_ranks(hosts, [&](const std::shared_ptr<Communicator>& communicator) {
      Private made(6, 2, "0.2", "600");
      made.options.optimizer.kind = OptimizerOptions::Kind::adamw;
      made.options.schedule.rate = 0.01;
      made.options.privacy.noise_multiplier = 0.7;
      made.options.clip = 0.5;
      made.options.threads = threads;
      made.options.shards = 3;
      made.options.communicator = hosts.size() == 1 ? nullptr : communicator;
      Trainer trainer = made.trainer();
      const auto rank = static_cast<std::size_t>(communicator->rank());
      for (int i = 0; i < 3; ++i) numbers[rank] += trainer.update().norm;
      const Evaluation evaluation = trainer.evaluate();
      numbers[rank] += evaluation.loss + evaluation.epsilon.value();
      weights[rank] = recurrent::copy_of(made.model.weights());
    });
    for (std::size_t rank = 1; rank < hosts.size(); ++rank) {
      CHECK(recurrent::same_weights(weights[rank], weights[0]));
      CHECK(numbers[rank] == numbers[0]);
    }
    return std::pair(weights[0], numbers[0]);
  };
  const auto alone = trained({0}, 1);
  for (const auto& [hosts, threads] :
       std::vector<std::pair<std::vector<int>, int>>{{{0}, 3}, {{0, 0}, 1}, {{0, 1}, 2}, {{0, 0, 1}, 1}}) {
    const auto other = trained(hosts, threads);
    CHECK(recurrent::same_weights(other.first, alone.first));
    CHECK(other.second == alone.second);
  }
}

TEST_CASE("epsilon is Opacus', also of a training that was resumed, which has the same bits") {
  const auto json = nlohmann::json::parse(read_text(source_root() + "/tests/golden/data/privacy.json"));
  const auto& golden = json.at("cases").at(4);
  REQUIRE(golden.at("updates") == nlohmann::json({{2.0, 0.5, 10}}));
  const auto set = [&](Private& made) {
    made.options.privacy = {.clip_norm = 1, .noise_multiplier = 2, .delta = golden.at("delta").get<double>()};
  };
  const tiny::Directory directory;
  Private whole(20, 2, "0.2"), part(20, 2, "0.2"), rest(20, 2, "0.2");
  for (Private* made : {&whole, &part, &rest}) set(*made);
  Trainer trainer = whole.trainer(), interrupted = part.trainer(), resumed = rest.trainer();
  CHECK(trainer.evaluate().epsilon == 0);
  for (int i = 0; i < 10; ++i) trainer.update();
  for (int i = 0; i < 4; ++i) interrupted.update();
  interrupted.save(directory / "checkpoint");
  resumed.load(directory / "checkpoint");
  for (int i = 0; i < 6; ++i) resumed.update();
  CHECK(recurrent::same_weights(whole.model.weights(), rest.model.weights()));
  PrivacyAccountant accountant;
  accountant.count(2, 0.5, 10);
  for (Trainer* each : {&trainer, &resumed}) {
    CHECK(each->evaluate().epsilon == accountant.epsilon(1e-3));
    CHECK(each->evaluate().epsilon.value() == doctest::Approx(golden.at("epsilon").get<double>()).epsilon(1e-9));
  }
  // What updates revealed must not be counted as if they had been others.
  const auto refused = [&](std::int64_t rows, std::int64_t accumulate, const auto& change) {
    Private made(rows, accumulate, "0.2");
    set(made);
    change(made.options.privacy);
    Trainer other = made.trainer();
    const Store before = recurrent::copy_of(made.model.weights());
    CHECK_THROWS_WITH_AS(other.load(directory / "checkpoint"), doctest::Contains("other privacy"), FileError);
    CHECK(recurrent::same_weights(made.model.weights(), before));
    CHECK(other.step() == 0);
  };
  const auto nothing = [](PrivacyOptions&) {};
  refused(20, 2, [](PrivacyOptions& privacy) { privacy.noise_multiplier = 3; });
  refused(20, 2, [](PrivacyOptions& privacy) { privacy = {}; });
  refused(10, 2, nothing);
  refused(10, 4, nothing);  // the same rows on average, but the cursor would be at another draw
}

TEST_CASE("frozen weights stay as they are in a private training, and their noise is not drawn") {
  Private made(12);
  made.options.frozen = {"here*"};
  made.options.privacy.noise_multiplier = 1;
  const Store before = recurrent::copy_of(made.model.weights());
  Trainer trainer = made.trainer();
  trainer.update();
  for (const auto& weight : made.model.weights()) {
    const ArrayView was = before.at(weight.name);
    const bool same = std::memcmp(weight.value.data(), was.data(), weight.value.bytes()) == 0;
    CHECK(same == weight.name.starts_with("here"));
  }
}

TEST_CASE("what does not combine with privacy is refused") {
  const auto refused = [](const char* what, const auto& change) {
    Private made(12);
    change(made.options);
    CHECK_THROWS_WITH_AS(made.trainer(), doctest::Contains(what), Error);
  };
  const double nan = std::nan("");
  for (const double bad : {0.0, -1.0, nan, HUGE_VAL})
    refused("privacy: clip_norm must be above 0", [&](TrainerOptions& options) { options.privacy.clip_norm = bad; });
  for (const double bad : {-1.0, nan, HUGE_VAL})
    refused("privacy: noise_multiplier must be at least 0",
            [&](TrainerOptions& options) { options.privacy.noise_multiplier = bad; });
  refused("noise_multiplier * clip_norm must be finite", [](TrainerOptions& options) {
    options.privacy = {1e200, 1e200, 1e-3};
  });
  for (const double bad : {0.0, 1.0, -1.0, nan})
    refused("privacy: delta must be above 0 and below 1",
            [&](TrainerOptions& options) { options.privacy.delta = bad; });
  refused("precision must be float32 or bf16x3", [](TrainerOptions& options) { options.precision = Precision::bf16; });
  refused("one draw of 1 batches, but accumulate is 2", [](TrainerOptions& options) { options.accumulate = 2; });
  Private made(12);
  const CharacterTokenizer tokenizer(tiny::sums_text());
  const tiny::SumBatches sums(tokenizer, 4);
  CHECK_THROWS_WITH_AS(Trainer(made.model, sums, made.options), doctest::Contains("rows are drawn by chance"), Error);
  Model carrying = recurrent::model_of();
  CHECK_THROWS_WITH_AS(Trainer(carrying, made.batches, made.options), doctest::Contains("carried state 'h'"), Error);
}
