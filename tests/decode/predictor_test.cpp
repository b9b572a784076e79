// What a predictor gives, piece by piece, is what the model gives for the whole.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "allocations.hpp"
#include "needs.hpp"
#include "small_models.hpp"
#include "source_root.hpp"
#include "xtape/predict.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using small::Rows;

namespace {
Rows some_rows(std::size_t count, std::size_t length, std::int64_t classes, std::int64_t first = 1) {
  Rows rows(count, std::vector<std::int64_t>(length));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < length; ++j)
      rows[i][j] = first + static_cast<std::int64_t>(i * 5 + j * 3 + i * j * j + j * j) % (classes - first);
  return rows;
}

Rows columns_of(const Rows& rows, std::size_t from, std::size_t count) {
  Rows part;
  for (const auto& row : rows)
    part.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(from),
                      row.begin() + static_cast<std::ptrdiff_t>(from + count));
  return part;
}

std::vector<std::int64_t> beginning(const std::vector<std::int64_t>& row, std::size_t count) {
  return {row.begin(), row.begin() + static_cast<std::ptrdiff_t>(count)};
}

Model gpt2(Dtype dtype) {
  ModelOptions options;
  options.dtype = dtype;
  options.seed = 5;
  options.hyper = {{"vocab_size", "11"}, {"n_positions", "32"}, {"n_embd", "12"},
                   {"n_layer", "2"},     {"n_head", "3"},       {"std", "0.3"}};
  return Model::load(source_root() + "/models/gpt2.json", options);
}

PredictorOptions with_capacity(std::int64_t capacity) {
  PredictorOptions options;
  options.capacity = capacity;
  return options;
}
}  // namespace

TEST_CASE("GPT-2 in pieces of any size, with caches that grow, is GPT-2 as a whole") {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
    Model model = gpt2(dtype);
    const double tolerance = dtype == Dtype::float64 ? 1e-12 : 1e-5;
    const Rows rows = some_rows(3, 20, 11, 0);
    Predictor predictor(model, "logits", with_capacity(3));
    for (const std::vector<std::size_t>& pieces : {std::vector<std::size_t>{20},
                                                   {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                                   {7, 1, 2, 1, 9}}) {
      predictor.begin(3);
      CHECK(predictor.capacity() == 3);
      std::size_t read = 0;
      for (const std::size_t piece : pieces) {
        const ArrayView result = predictor.step(small::array_of(columns_of(rows, read, piece)));
        CHECK(result.shape() == Shape{3, static_cast<std::int64_t>(piece), 11});
        for (std::size_t row = 0; row < 3; ++row)
          for (std::size_t i = 0; i < piece; ++i)
            CHECK(small::difference(result, static_cast<std::int64_t>(row), static_cast<std::int64_t>(i),
                                    small::last_logits(model, beginning(rows[row], read + i + 1))) < tolerance);
        read += piece;
      }
      CHECK(predictor.past() == std::vector<std::int64_t>(3, static_cast<std::int64_t>(read)));
    }
    CHECK(predictor.capacity() == 24);
  }
}

TEST_CASE("rows of different pasts, padded on the right, are each what they are alone") {
  Model model = small::made(small::decoder);
  const Rows rows = some_rows(3, 16, 13);
  const std::vector<std::int64_t> lengths = {5, 1, 8};
  Predictor predictor(model, "logits", with_capacity(8));
  predictor.begin(3);
  const ArrayView prompts = predictor.step(small::array_of(columns_of(rows, 0, 8)), lengths);
  for (std::size_t row = 0; row < 3; ++row)
    CHECK(small::difference(prompts, static_cast<std::int64_t>(row), lengths[row] - 1,
                            small::last_logits(model, beginning(rows[row], static_cast<std::size_t>(lengths[row])))) <
          1e-12);
  std::vector<std::vector<std::int64_t>> said(3);
  for (std::size_t row = 0; row < 3; ++row) said[row] = beginning(rows[row], static_cast<std::size_t>(lengths[row]));
  for (std::int64_t step = 0; step < 6; ++step) {
    Rows next(3);
    for (std::size_t row = 0; row < 3; ++row) next[row] = {(step * 4 + static_cast<std::int64_t>(row)) % 13};
    const std::vector<std::int64_t> counts = {1, step % 2, 1};  // the second row waits at times
    const ArrayView result = predictor.step(small::array_of(next), counts);
    for (std::size_t row = 0; row < 3; ++row) {
      std::vector<std::int64_t> whole = said[row];
      whole.push_back(next[row][0]);
      CHECK(small::difference(result, static_cast<std::int64_t>(row), 0, small::last_logits(model, whole)) < 1e-12);
      if (counts[row] == 1) said[row] = whole;
    }
  }
  CHECK(predictor.past() == std::vector<std::int64_t>{11, 4, 14});
}

namespace {
/// A model without products.
constexpr const char* adding = R"json({
    "xtape": 2,
    "name": "adds",
    "hyper": {"width": 4},
    "model": {
      "functions": {
        "sums": {
          "inputs": {"source": "float [b, width]", "tokens": "int [b, t]"},
          "do": [
            "x = cast(tokens, 'float')[..., none] * ones((1, 1, width), dtype='float')",
            "seen = masked_fill(cache(x)[:, none], causal_mask(tokens)[:, 0, ..., none], 0.0)"
          ],
          "result": "sum(seen, axis=2) + abs(source)[:, none]"
        }
      }
    }
  })json";
}  // namespace

TEST_CASE("a step of known sizes is not planned") {
  Model model = small::made(adding);
  const xt::xarray<double> source{{-1, -2, -3, -4}, {10, 20, 30, 40}};
  Predictor predictor(model, "sums");
  const Array token = small::array_of({{1}, {2}, {3}, {4}});
  predictor.begin(2, {{"source", source}}, 2);
  CHECK(predictor.planned() == 1);
  predictor.step(token);
  CHECK(predictor.planned() == 2);
  for (int i = 0; i < 20; ++i) predictor.step(token);
  CHECK(predictor.planned() == 2);
  const auto sums = predictor.step(token).to<double>();
  for (std::size_t row = 0; row < 4; ++row)
    CHECK(sums(row, 0, 1) == 22 * static_cast<double>(row + 1) + (row < 2 ? 2 : 20));
}

TEST_CASE("a step of known sizes allocates nothing" * needs_no_sanitizer()) {
  Model model = small::made(adding);
  Predictor predictor(model, "sums");
  const Array token = small::array_of({{1}, {2}, {3}, {4}});
  predictor.begin(2, {{"source", xt::xarray<double>{{-1, -2, -3, -4}, {10, 20, 30, 40}}}}, 2);
  predictor.step(token);
  const AllocationCount count;
  for (int i = 0; i < 20; ++i) predictor.step(token);
  CHECK(count.count() == 0);
}

TEST_CASE("batches and selected rows of known sizes are not planned for") {
  Model model = small::made(small::translator);
  Predictor predictor(model);
  const Array source = small::array_of(some_rows(2, 5, 7));
  const Array token = small::array_of({{1}, {2}, {3}, {4}});
  for (int batch = 0; batch < 3; ++batch) {
    predictor.begin(2, {{"source", source}}, 2);
    for (int i = 0; i < 5; ++i) {
      predictor.step(token);
      predictor.select({1, 1, 3, 2});
    }
    CHECK(predictor.planned() == (batch == 0 ? 2 : 3));
    predictor.select({0, 1});  // half of the rows: another player, of the same memory
    predictor.step(small::array_of({{1}, {2}}));
    CHECK(predictor.planned() == 3);
  }
}

TEST_CASE("what a source gives is computed once, and rows of its sentences are selected with it") {
  Model model = small::made(small::translator);
  Rows sources = some_rows(3, 6, 7);
  sources[1][4] = sources[1][5] = 0;  // padding
  for (const std::int64_t repeat : {1, 2}) {
    Predictor predictor(model, "logits", with_capacity(2));
    for (int batch = 0; batch < 2; ++batch) {
      predictor.begin(3, {{"source", small::array_of(sources)}}, repeat);
      std::vector<std::size_t> sentence;
      for (std::size_t i = 0; i < 3; ++i) sentence.insert(sentence.end(), static_cast<std::size_t>(repeat), i);
      Rows said(sentence.size());
      const auto step_and_check = [&](std::int64_t seed) {
        Rows next(said.size());
        for (std::size_t i = 0; i < said.size(); ++i) {
          next[i] = {1 + (seed * 2 + static_cast<std::int64_t>(i) * 3) % 6};
          said[i].push_back(next[i][0]);
        }
        const ArrayView result = predictor.step(small::array_of(next));
        for (std::size_t i = 0; i < said.size(); ++i)
          CHECK(small::difference(result, static_cast<std::int64_t>(i), 0,
                                  small::last_logits(model, said[i], sources[sentence[i]])) < 1e-12);
      };
      const auto select = [&](const std::vector<std::int32_t>& rows) {
        predictor.select(rows);
        Rows kept;
        std::vector<std::size_t> kept_sentence;
        for (const std::int32_t row : rows) {
          kept.push_back(said[static_cast<std::size_t>(row)]);
          kept_sentence.push_back(sentence[static_cast<std::size_t>(row)]);
        }
        said = kept;
        sentence = kept_sentence;
      };
      for (std::int64_t i = 0; i < 3; ++i) step_and_check(i);
      select(repeat == 1 ? std::vector<std::int32_t>{2, 0, 1} : std::vector<std::int32_t>{1, 0, 2, 2, 5, 4});
      for (std::int64_t i = 3; i < 6; ++i) step_and_check(i);
      select({2, 0});  // fewer
      step_and_check(6);
      select({1, 0, 1, 1, 0, 0, 1, 0});  // more than ever
      for (std::int64_t i = 7; i < 10; ++i) step_and_check(i);
    }
  }
}

TEST_CASE("the axis of the rows is found wherever it is, and values without one are shared") {
  const std::string definition = R"json({
    "xtape": 2,
    "name": "odd",
    "hyper": {"width": 4},
    "model": {
      "functions": {
        "mix": {
          "inputs": {"source": "float [b, s, width]", "weight": "float [s]", "tokens": "int [b, t]"},
          "do": [
            "turned = tanh(rearrange(source, 'b s d -> s d b'))",
            "shared = tanh(weight)",
            "x = cumsum(cast(tokens, 'float'), axis=1)[..., none] * ones((1, 1, width), dtype='float')"
          ],
          "result": "einsum('sdb,s,btd->btd', turned, shared, x)"
        }
      }
    }
  })json";
  Model model = small::made(definition);
  const xt::xarray<double> source = xt::reshape_view(xt::arange<double>(0, 24), {2, 3, 4});
  const xt::xarray<double> weight{0.5, -1.0, 2.0};
  Predictor predictor(model, "mix");
  predictor.begin(2, {{"weight", weight}, {"source", source}}, 2);
  predictor.select({0, 1, 3, 0});
  const auto result = predictor.step(small::array_of({{1, 2}, {3, 4}, {5, 6}, {7, 8}})).to<double>();
  const std::size_t sentence[] = {0, 0, 1, 0};
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t d = 0; d < 4; ++d) {
      double sum = 0;
      for (std::size_t s = 0; s < 3; ++s) sum += std::tanh(source(sentence[row], s, d)) * std::tanh(weight(s));
      CHECK(result(row, 0, d) == doctest::Approx(sum * static_cast<double>(2 * row + 1)));
      CHECK(result(row, 1, d) == doctest::Approx(sum * static_cast<double>(4 * row + 3)));
    }
}

TEST_CASE("room is made as it is needed, or before") {
  Model model = small::made(small::decoder);
  Predictor predictor(model, "logits", with_capacity(4));
  const Rows rows = some_rows(2, 20, 13);
  predictor.begin(2);
  predictor.step(small::array_of(columns_of(rows, 0, 3)));
  predictor.reserve(17);
  CHECK(predictor.capacity() == 32);
  predictor.reserve(2);
  CHECK(predictor.capacity() == 32);
  const ArrayView result = predictor.step(small::array_of(columns_of(rows, 3, 17)));
  for (std::int64_t row = 0; row < 2; ++row)
    CHECK(small::difference(result, row, 16, small::last_logits(model, rows[static_cast<std::size_t>(row)])) < 1e-12);
  CHECK(predictor.planned() == 2);
}

TEST_CASE("no step copies a state as a whole") {
  Model model = gpt2(Dtype::float32);
  Tape tape(Mode::predict);
  const NamedVars inputs = model.inputs(tape, "logits", {{"b", 2}, {"t", 1}});
  const Var past = tape.input("past", {2}, Dtype::int64);
  tape.set_past(inputs.at("tokens"), past, 500);
  const Var logits = model.record(tape, "logits", inputs)[0].value;
  PlayerOptions options;
  options.carries = tape.states();
  CHECK(options.carries.size() == 4);
  const Player player(tape, {logits}, options);
  int written = 0;
  for (const Plan::Step& step : player.plan().steps)
    if (step.outputs == to_string(options.carries[0].input.type())) {
      CHECK(step.op == "cache");
      ++written;
    }
  CHECK(written == 4);
  const std::size_t state_bytes = 2 * 500 * 12 * sizeof(float);
  CHECK(player.plan().output_bytes < 5 * state_bytes);
  CHECK(player.plan().arena_bytes < 2 * state_bytes);  // scores and the mask: three heads of 500 keys
}

TEST_CASE("caches in Q8_0 take little more than a quarter of the memory, and give nearly the same in any pieces") {
  ModelOptions made;
  made.seed = 5;
  made.hyper = {{"vocab_size", "11"}, {"n_positions", "32"}, {"n_embd", "64"}, {"n_layer", "2"}, {"n_head", "2"}};
  Model model = Model::load(source_root() + "/models/gpt2.json", made);
  const Rows rows = some_rows(3, 20, 11, 0);
  PredictorOptions options = with_capacity(3);
  options.player = PlayerOptions();
  options.player->caches = Dtype::q8_0;
  Predictor predictor(model, "logits", options), exact(model, "logits", with_capacity(3));
  for (const std::vector<std::size_t>& pieces :
       {std::vector<std::size_t>{20}, {1, 1, 1, 1, 1, 1, 1}, {7, 1, 2, 1, 9}}) {
    predictor.begin(3);
    exact.begin(3);
    std::size_t read = 0;
    double least = 1;
    for (const std::size_t piece : pieces) {
      const Array tokens = small::array_of(columns_of(rows, read, piece));
      const Array wanted(exact.step(tokens)), result(predictor.step(tokens));
      double difference = 0, size = 0;
      for (std::int64_t i = 0; i < wanted.count(); ++i) {
        difference += std::abs(result.as<float>()[i] - wanted.as<float>()[i]);
        size += std::abs(wanted.as<float>()[i]);
      }
      CHECK(difference / size < 0.01);
      if (read > 0) least = std::min(least, difference);
      read += piece;
      predictor.select({2, 0, 0});
      exact.select({2, 0, 0});
      predictor.select({1, 2, 0});
      exact.select({1, 2, 0});
    }
    CHECK(least > 0);  // it does round
  }
  Tape tape(Mode::predict);
  const NamedVars inputs = model.inputs(tape, "logits", {{"b", 3}, {"t", 1}});
  tape.set_past(inputs.at("tokens"), tape.input("past", {3}, Dtype::int64), 500, Dtype::q8_0);
  model.record(tape, "logits", inputs);
  CHECK(tape.states().size() == 4);
  for (const Carry& state : tape.states())
    CHECK(Array(state.input.dtype(), state.input.shape()).bytes() * 32 * 4 == 34 * 3 * 500 * 64 * 4);
  options.player->caches = Dtype::q4_0;
  CHECK_THROWS_WITH_AS(Predictor(model, "logits", options), "caches are stored as float32 or Q8_0, not Q4_0",
                       DtypeError);
}

TEST_CASE("what a predictor refuses") {
  Model model = small::made(small::translator);
  const Array source = small::array_of(some_rows(2, 5, 7));
  PredictorOptions options;
  options.limit = 3;
  Predictor predictor(model, "logits", options);
  const Array one = small::array_of({{1}, {2}});
  CHECK_THROWS_WITH_AS(predictor.step(one), "a step needs a batch: call begin first", Error);
  CHECK_THROWS_WITH_AS(predictor.reserve(2), "reserve needs a batch: call begin first", Error);
  CHECK_THROWS_WITH_AS(predictor.begin(2),
                       "function 'logits' of model 'translator' takes an input 'source', but no array is given", Error);
  CHECK_THROWS_AS(predictor.begin(3, {{"source", source}}), ShapeError);
  CHECK_THROWS_AS(predictor.begin(0, {{"source", source}}), Error);
  CHECK_THROWS_AS(predictor.begin(2, {{"source", source}, {"sauce", source}}), Error);
  predictor.begin(2, {{"source", source}});
  CHECK_THROWS_AS(predictor.step(small::array_of({{1}})), ShapeError);
  CHECK_THROWS_AS(predictor.step(one, {1}), Error);
  CHECK_THROWS_AS(predictor.step(one, {2, 1}), Error);
  CHECK_THROWS_AS(predictor.select({2}), Error);
  CHECK_THROWS_AS(predictor.select({}), Error);
  for (int i = 0; i < 3; ++i) predictor.step(one);
  CHECK_THROWS_WITH_AS(predictor.step(one), "a row would have 4 positions; the limit is 3", Error);
  CHECK_THROWS_AS(predictor.reserve(4), Error);
  CHECK(predictor.past() == std::vector<std::int64_t>{3, 3});
  options.stepped = "token";
  CHECK_THROWS_WITH_AS(Predictor(model, "logits", options),
                       "function 'logits' of model 'translator' has no input 'token' to be given step by step; did you "
                       "mean 'tokens'?",
                       DefinitionError);
}

TEST_CASE("a predictor plays as its model does, unless it is told how") {
  Model model = small::made(small::decoder);
  PlayerOptions playing;
  playing.threads = 3;
  model.set_player_options(4, playing);
  CHECK(Predictor(model).threads() == 3);
  PredictorOptions options;
  options.player.emplace();
  options.player->threads = 2;
  CHECK(Predictor(model, "logits", options).threads() == 2);
}
