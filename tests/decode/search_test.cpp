// Searching for targets, against scoring by the model alone and against trying all there are.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/messages/wording.hpp"
#include "hypotheses.hpp"
#include "small_models.hpp"
#include "whole.hpp"

using namespace xtape;

namespace {
const small::Settings sharp = {{"sharpness", "2.0"}};

std::vector<double> next_of(Model& model, const Tokens& source, const Tokens& target, std::int32_t start) {
  std::vector<std::int64_t> tokens{start};
  tokens.insert(tokens.end(), target.begin(), target.end());
  return small::log_softmax(small::last_logits(model, tokens, {source.begin(), source.end()}));
}

/// All finished targets of a source.
void enumerate(Model& model, const Tokens& source, const SearchOptions& options, const Tokens& target, double so_far,
               std::vector<Hypothesis>& all) {
  const std::vector<double> next = next_of(model, source, target, options.start);
  const auto length = static_cast<std::int64_t>(target.size()) + 1;
  for (const std::int32_t end : options.ends) {
    const double ended = so_far + next[static_cast<std::size_t>(end)];
    all.push_back({target, ended, ended / penalty_of(options.length_penalty, options.alpha, length), true, end});
  }
  if (length == options.max_length) return;
  for (std::size_t token = 0; token < next.size(); ++token) {
    const auto each = static_cast<std::int32_t>(token);
    if (contains(options.ends, each) || each == options.start || each == options.pad) continue;
    Tokens longer = target;
    longer.push_back(each);
    enumerate(model, source, options, longer, so_far + next[token], all);
  }
}

const std::vector<Tokens> inputs_of_search = {
    {3, 4, 5}, {6}, {5, 3, 3, 6, 4, 4, 5, 6, 3, 5}, {4, 6, 3, 3, 5, 4, 6}, {3, 3}, {6, 5, 4, 3}};
}  // namespace

TEST_CASE("a beam wide enough finds the best of all targets, under every penalty, with one end token or two") {
  Model model = small::made(small::translator, {{"vocab_size", "6"}});
  for (const Tokens& ends : {Tokens{3}, Tokens{5, 3}})
    for (const LengthPenalty penalty : {LengthPenalty::none, LengthPenalty::wu, LengthPenalty::power})
      for (const double alpha : {0.7, 1.5, -0.5}) {
        SearchOptions options;
        options.ends = ends;
        options.length_penalty = penalty;
        options.alpha = alpha;
        options.max_length = 4;
        options.beam_size = 27;
        options.n_best = 5;
        const Tokens source = {3, 5, 4};
        std::vector<Hypothesis> all;
        enumerate(model, source, options, {}, 0, all);
        REQUIRE(all.size() == (ends.size() == 1 ? 1 + 3 + 9 + 27 : 2 * (1 + 2 + 4 + 8)));
        std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
        all.resize(5);
        small::check_equal(search(model, {source}, options), {all}, 1e-12);
      }
}

TEST_CASE("with caches and without, in one batch and one by one: the same hypotheses") {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
    Model model = small::made(small::translator, sharp, dtype);
    const double tolerance = dtype == Dtype::float64 ? 1e-11 : 1e-4;
    for (const std::int64_t beam : {1, 2, 5}) {
      CAPTURE(beam);
      SearchOptions options;
      options.beam_size = beam;
      options.n_best = std::min<std::int64_t>(beam, 3);
      options.length_penalty = LengthPenalty::wu;
      options.max_length = 40;  // grows the caches
      const auto together = search(model, inputs_of_search, options);
      small::check_equal(whole::search(model, inputs_of_search, options), together, tolerance);
      SearchOptions small_batches = options;
      small_batches.batch_size = 4;
      small::check_equal(search(model, inputs_of_search, small_batches), together, tolerance);
      Predictor predictor(model);
      for (std::size_t i = 0; i < inputs_of_search.size(); ++i)
        small::check_equal(search(predictor, {inputs_of_search[i]}, options), {together[i]}, tolerance);
      small::check_equal(search(model, inputs_of_search, options), together, 1e-300);  // the same bits again
    }
  }
}

TEST_CASE("a beam of one is greedy") {
  Model model = small::made(small::translator, sharp);
  SearchOptions options;
  options.max_length = 12;
  const auto found = search(model, inputs_of_search, options);
  for (std::size_t i = 0; i < inputs_of_search.size(); ++i) {
    Tokens target;
    bool finished = false;
    while (!finished && target.size() < 12) {
      std::vector<double> next = next_of(model, inputs_of_search[i], target, options.start);
      next[0] = next[1] = -1e300;
      const auto best = static_cast<std::int32_t>(std::max_element(next.begin(), next.end()) - next.begin());
      finished = best == options.ends[0];
      if (!finished) target.push_back(best);
    }
    REQUIRE(found[i].size() == 1);
    CHECK(found[i][0].tokens == target);
    CHECK(found[i][0].finished == finished);
  }
}

TEST_CASE("the n best are sorted, differ, and have the scores that the model gives them") {
  Model model = small::made(small::translator, sharp);
  SearchOptions options;
  options.beam_size = 6;
  options.n_best = 6;
  options.length_penalty = LengthPenalty::power;
  options.alpha = 0.9;
  options.max_length = 9;
  for (const bool early : {false, true}) {
    options.early_stopping = early;
    const auto found = search(model, inputs_of_search, options);
    for (std::size_t i = 0; i < inputs_of_search.size(); ++i) {
      REQUIRE(found[i].size() == 6);
      for (std::size_t k = 0; k < 6; ++k) {
        const Hypothesis& each = found[i][k];
        CHECK(std::abs(each.log_probability - small::scored(model, inputs_of_search[i], each, options)) < 1e-11);
        const auto length = static_cast<std::int64_t>(each.tokens.size()) + (each.finished ? 1 : 0);
        CHECK(length <= 9);
        CHECK(each.score == doctest::Approx(each.log_probability / std::pow(length, 0.9)));
        CHECK(std::find_if(each.tokens.begin(), each.tokens.end(), [](std::int32_t t) { return t < 3; }) ==
              each.tokens.end());
        if (k == 0) continue;
        const Hypothesis& above = found[i][k - 1];
        CHECK(above.finished >= each.finished);
        if (above.finished == each.finished) CHECK(above.score >= each.score);
        CHECK(above.tokens != each.tokens);
      }
    }
  }
}

TEST_CASE("stopping early is never better") {
  bool worse = false;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Model model = small::made(small::translator, {}, Dtype::float64, seed);
    SearchOptions options;
    options.beam_size = 2;
    options.length_penalty = LengthPenalty::power;
    options.alpha = 1;
    options.max_length = 20;
    const auto whole = search(model, inputs_of_search, options);
    options.early_stopping = true;
    const auto early = search(model, inputs_of_search, options);
    for (std::size_t i = 0; i < inputs_of_search.size(); ++i) {
      if (!early[i][0].finished) continue;
      CHECK(whole[i][0].score >= early[i][0].score - 1e-12);
      worse = worse || whole[i][0].score > early[i][0].score + 1e-9;
    }
  }
  CHECK(worse);  // the rules differ
}

TEST_CASE("lengths are limited, absolutely and by the source's") {
  Model model = small::made(small::translator);
  SearchOptions options;
  options.beam_size = 3;
  options.n_best = 3;
  options.length_factor = 0.5;
  options.length_extra = 2;
  options.max_length = 6;
  const auto found = search(model, inputs_of_search, options);
  for (std::size_t i = 0; i < inputs_of_search.size(); ++i) {
    const std::int64_t limit = std::min<std::int64_t>(6, static_cast<std::int64_t>(inputs_of_search[i].size()) / 2 + 2);
    std::int64_t longest = 0;
    for (const Hypothesis& each : found[i])
      longest = std::max(longest, static_cast<std::int64_t>(each.tokens.size()) + (each.finished ? 1 : 0));
    CHECK(longest <= limit);
  }
  options.max_length = 1;
  for (const auto& each : search(model, inputs_of_search, options)) {
    REQUIRE(each.size() == 3);
    CHECK(!each[1].finished);
    for (const Hypothesis& hypothesis : each) CHECK(hypothesis.tokens.size() == (hypothesis.finished ? 0 : 1));
  }
}

TEST_CASE("players serve batch after batch, in few sizes") {
  Model model = small::made(small::translator);
  Predictor predictor(model);
  SearchOptions options;
  options.beam_size = 2;
  options.max_length = 30;
  const auto first = search(predictor, inputs_of_search, options);
  search(predictor, inputs_of_search, options);  // what was planned on memory that has moved since is planned again
  const std::int64_t planned = predictor.planned();
  small::check_equal(search(predictor, inputs_of_search, options), first, 1e-300);
  CHECK(predictor.planned() == planned);
}

TEST_CASE("a searcher gives the same bits on any number of threads, search after search") {
  Model model = small::made(small::translator, sharp);
  SearchOptions options;
  options.beam_size = 3;
  options.batch_size = 2;
  options.max_length = 40;
  const std::thread::id caller = std::this_thread::get_id();
  std::int64_t steps = 0;
  options.between = [&] {
    CHECK(std::this_thread::get_id() == caller);
    ++steps;
  };
  Predictor predictor(model);
  const auto expected = search(predictor, inputs_of_search, options);
  for (const int threads : {1, 2, 3, 7}) {
    CAPTURE(threads);
    PlayerOptions playing;
    playing.threads = threads;
    model.set_player_options(16, playing);
    Searcher searcher(model);
    for (int i = 0; i < 2; ++i) small::check_equal(searcher.search(inputs_of_search, options), expected, 1e-300);
  }
  CHECK(steps > 0);
}

TEST_CASE("errors on any thread of a searcher reach its caller") {
  Model model = small::made(small::translator);
  PlayerOptions playing;
  playing.threads = 3;
  model.set_player_options(16, playing);
  Searcher searcher(model);
  SearchOptions options;
  options.batch_size = 1;
  options.between = [] { throw Error("enough"); };
  const std::vector<Tokens> wrong(6, Tokens{3, 99});
  CHECK_THROWS_AS(searcher.search(wrong, options), Error);
  options.between = nullptr;
  CHECK_THROWS_WITH_AS(searcher.search(wrong, options), doctest::Contains("out of range"), Error);
}

TEST_CASE("what a search takes and refuses") {
  Model model = small::made(small::translator);
  SearchOptions options;
  CHECK(search(model, {}, options).empty());
  CHECK_THROWS_WITH_AS(search(model, {{3}, {}}, options), "source 1 has no tokens: there is nothing to read", Error);
  options.n_best = 2;
  CHECK_THROWS_WITH_AS(search(model, inputs_of_search, options), "n_best must be at most beam_size, got 2 of 1", Error);
  options.n_best = 0;
  CHECK_THROWS_AS(search(model, inputs_of_search, options), Error);
  options = {};
  options.beam_size = 0;
  CHECK_THROWS_AS(search(model, inputs_of_search, options), Error);
  options = {};
  options.max_length = 0;
  CHECK_THROWS_AS(search(model, inputs_of_search, options), Error);
  CHECK(length_penalty_named("wu") == LengthPenalty::wu);
  CHECK_THROWS_WITH_AS(length_penalty_named("Wu"), "unknown length penalty 'Wu': use none, wu or power", Error);
  const std::string name = "out.weight";
  model.weight(name).as<double>()[9] = NAN;
  CHECK_THROWS_AS(search(model, inputs_of_search, SearchOptions{}), Error);
}
