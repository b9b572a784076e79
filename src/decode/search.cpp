#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "choices.hpp"
#include "target_steps.hpp"
#include "threads.hpp"
#include "xtape/decode.hpp"

namespace xtape {

namespace {
using decode::Choice;
using decode::TargetSteps;

/// An unfinished hypothesis.
struct Running {
  Tokens tokens;
  double log_probability = 0;
  std::int32_t parent = 0;  ///< The index of the sentence's hypothesis that it extends.
};

/// The search for one sentence.
class SentenceSearch {
 public:
  SentenceSearch(const SearchOptions& options, std::int64_t source_length)
      : options_(&options), limit_(options.max_length), running_(1) {
    if (options.length_factor == 0 && options.length_extra == 0) return;
    const double most =
        options.length_factor * static_cast<double>(source_length) + static_cast<double>(options.length_extra);
    if (most < static_cast<double>(limit_))
      limit_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(most)));
  }

  bool done() const { return done_; }
  const std::vector<Running>& running() const { return running_; }

  /// Takes one step. choices[j] are the most probable next tokens of hypothesis j.
  void advance(const std::vector<Choice>* choices) {
    std::vector<Candidate> candidates;
    for (std::size_t j = 0; j < running_.size(); ++j)
      for (const Choice& choice : choices[j])
        candidates.push_back(
            {running_[j].log_probability + choice.log_probability, static_cast<std::int32_t>(j), choice.token});
    std::sort(candidates.begin(), candidates.end());
    std::vector<Running> next;
    for (const Candidate& candidate : candidates) {
      if (next.size() == static_cast<std::size_t>(options_->beam_size)) break;
      Running grown{running_[static_cast<std::size_t>(candidate.parent)].tokens, candidate.log_probability,
                    candidate.parent};
      if (candidate.token == options_->end) {
        finish(std::move(grown.tokens), candidate.log_probability);
        continue;
      }
      grown.tokens.push_back(candidate.token);
      next.push_back(std::move(grown));
    }
    running_ = std::move(next);
    ++length_;
    done_ = running_.empty() || length_ == limit_ || nothing_better_can_come();
  }

  /// The best hypotheses: the finished ones and, if these are fewer than n_best, the best unfinished ones.
  std::vector<Hypothesis> best() const {
    std::vector<Hypothesis> best = finished_;
    std::vector<Hypothesis> cut;
    for (const Running& each : running_)
      cut.push_back({each.tokens, each.log_probability, score(each.log_probability, length_), false});
    std::stable_sort(cut.begin(), cut.end(), better);
    for (Hypothesis& each : cut)
      if (best.size() < static_cast<std::size_t>(options_->n_best)) best.push_back(std::move(each));
    return best;
  }

 private:
  struct Candidate {
    double log_probability;
    std::int32_t parent;
    std::int32_t token;
    bool operator<(const Candidate& other) const {
      if (log_probability != other.log_probability) return log_probability > other.log_probability;
      return parent != other.parent ? parent < other.parent : token < other.token;
    }
  };

  static bool better(const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; }

  double score(double log_probability, std::int64_t length) const {
    return log_probability / penalty_of(options_->length_penalty, options_->alpha, length);
  }

  /// Adds a finished hypothesis, and keeps the n_best best ones.
  void finish(Tokens tokens, double log_probability) {
    ++ended_;
    Hypothesis made{std::move(tokens), log_probability, score(log_probability, length_ + 1), true};
    finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), made, better), std::move(made));
    if (finished_.size() > static_cast<std::size_t>(options_->n_best)) finished_.pop_back();
  }

  bool nothing_better_can_come() const {
    // The first end token ends a greedy search.
    if (options_->early_stopping || options_->beam_size == 1) return ended_ >= options_->beam_size;
    if (finished_.size() < static_cast<std::size_t>(options_->n_best)) return false;
    // Every token lowers the log-probability of a running hypothesis, and a penalty is monotone in the length. So the
    // best possible score is that of the present log-probability with the smallest or the largest possible length.
    const double most = running_.front().log_probability;
    return finished_.back().score >= std::max(score(most, length_ + 1), score(most, limit_));
  }

  const SearchOptions* options_;
  std::int64_t limit_;
  std::int64_t length_ = 0;  // of the running hypotheses
  std::int64_t ended_ = 0;
  bool done_ = false;
  std::vector<Running> running_;      // by falling probability
  std::vector<Hypothesis> finished_;  // by falling score
};

void check(const std::vector<Tokens>& sources, const SearchOptions& options) {
  const auto at_least_one = [](std::int64_t value, const char* name) {
    if (value < 1) throw Error(std::string(name) + " must be at least 1, got " + std::to_string(value));
  };
  at_least_one(options.beam_size, "beam_size");
  at_least_one(options.max_length, "max_length");
  at_least_one(options.n_best, "n_best");
  at_least_one(options.batch_size, "batch_size");
  if (options.n_best > options.beam_size)
    throw Error("n_best must be at most beam_size, got " + std::to_string(options.n_best) + " of " +
                std::to_string(options.beam_size));
  if (!std::isfinite(options.alpha)) throw Error("alpha must be finite");
  if (!(options.length_factor >= 0)) throw Error("length_factor must be at least 0");
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].empty()) throw Error("source " + std::to_string(i) + " has no tokens: there is nothing to read");
}

/// The search for a batch of sentences. Each sentence has beam_size rows, even if it has fewer hypotheses.
class BatchSearch {
 public:
  BatchSearch(TargetSteps& steps, const SearchOptions& options, int threads)
      : steps_(steps), options_(options), threads_(threads), beam_(static_cast<std::size_t>(options.beam_size)) {
    for (const std::int32_t token : {options.pad, options.start})
      if (token != options.end) never_.push_back(token);
  }

  std::vector<std::vector<Hypothesis>> run(const std::vector<Tokens>& sources, const std::vector<std::size_t>& batch) {
    constexpr std::int64_t multiple = 8;  // lengths of sources are rounded up to it, so that few players are planned
    sentences_.clear();
    std::vector<Tokens> rows;
    for (const std::size_t i : batch) {
      sentences_.emplace_back(options_, static_cast<std::int64_t>(sources[i].size()));
      rows.push_back(sources[i]);
    }
    present_.resize(batch.size());
    std::iota(present_.begin(), present_.end(), std::size_t{0});
    steps_.begin(token_array(rows, options_.pad, multiple), options_.beam_size);
    std::vector<std::int32_t> tokens(batch.size() * beam_, options_.start);
    for (bool first = true; active() > 0; first = false) {
      if (options_.between) options_.between();
      if (!first) tokens = select_rows();
      advance(steps_.step(tokens));
    }
    std::vector<std::vector<Hypothesis>> results;
    for (const SentenceSearch& sentence : sentences_) results.push_back(sentence.best());
    return results;
  }

 private:
  std::size_t active() const {
    return static_cast<std::size_t>(
        std::count_if(sentences_.begin(), sentences_.end(), [](const auto& each) { return !each.done(); }));
  }

  void advance(const decode::LogitRows& logits) {
    std::vector<std::int64_t> rows;
    for (std::size_t slot = 0; slot < present_.size(); ++slot) {
      const SentenceSearch& sentence = sentences_[present_[slot]];
      if (sentence.done()) continue;
      for (std::size_t j = 0; j < sentence.running().size(); ++j)
        rows.push_back(static_cast<std::int64_t>(slot * beam_ + j));
    }
    // At most one of a row's choices is the end token, so that the others fill the beam even if all come from one row.
    decode::likeliest(logits, rows, options_.beam_size + 1, never_, threads_, choices_);
    const std::vector<Choice>* choices = choices_.data();
    for (const std::size_t index : present_) {
      SentenceSearch& sentence = sentences_[index];
      if (sentence.done()) continue;
      const std::size_t count = sentence.running().size();
      sentence.advance(choices);
      choices += count;
    }
  }

  /// Moves the state of every running hypothesis to its row, and returns the last token of each row.
  std::vector<std::int32_t> select_rows() {
    const std::vector<std::size_t> slots = remaining_slots();
    std::vector<std::int32_t> rows, tokens;
    std::vector<std::size_t> present;
    for (const std::size_t slot : slots) {
      present.push_back(present_[slot]);
      const SentenceSearch& sentence = sentences_[present_[slot]];
      for (std::size_t j = 0; j < beam_; ++j) {
        const bool used = !sentence.done() && j < sentence.running().size();
        rows.push_back(static_cast<std::int32_t>(slot * beam_ +
                                                 (used ? static_cast<std::size_t>(sentence.running()[j].parent) : j)));
        tokens.push_back(used ? sentence.running()[j].tokens.back() : options_.start);
      }
    }
    present_ = std::move(present);
    steps_.select(rows);
    return tokens;
  }

  /// The slots that stay. Halves the batch once at most half of its sentences continue, so that players for few
  /// different numbers of rows are planned. Sentences that are done fill the remaining slots.
  std::vector<std::size_t> remaining_slots() const {
    std::vector<std::size_t> slots(present_.size());
    std::iota(slots.begin(), slots.end(), std::size_t{0});
    std::size_t count = slots.size();
    while (count > 1 && active() <= (count + 1) / 2) count = (count + 1) / 2;
    if (count == slots.size()) return slots;
    const auto goes_on = [&](std::size_t slot) { return !sentences_[present_[slot]].done(); };
    std::stable_partition(slots.begin(), slots.end(), goes_on);
    slots.resize(count);
    std::sort(slots.begin(), slots.end());
    return slots;
  }

  TargetSteps& steps_;
  const SearchOptions& options_;
  int threads_;
  std::size_t beam_;
  std::vector<std::int32_t> never_;
  std::vector<SentenceSearch> sentences_;
  std::vector<std::size_t> present_;  // per slot of beam_size rows: the index of its sentence
  std::vector<std::vector<Choice>> choices_;
};

std::vector<std::vector<Hypothesis>> search_by(TargetSteps& steps, const std::vector<Tokens>& sources,
                                               const SearchOptions& options, int threads) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  std::vector<std::vector<Hypothesis>> results(sources.size());
  BatchSearch search(steps, options, threads);
  const auto size = static_cast<std::size_t>(options.batch_size);
  for (std::size_t first = 0; first < order.size(); first += size) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
    const std::vector<std::size_t> batch(begin,
                                         begin + static_cast<std::ptrdiff_t>(std::min(size, order.size() - first)));
    std::vector<std::vector<Hypothesis>> found = search.run(sources, batch);
    for (std::size_t i = 0; i < batch.size(); ++i) results[batch[i]] = std::move(found[i]);
  }
  return results;
}
}  // namespace

std::vector<std::vector<Hypothesis>> search(Model& model, const std::vector<Tokens>& sources,
                                            const SearchOptions& options) {
  if (options.cached) {
    Predictor predictor(model);
    return search(predictor, sources, options);
  }
  check(sources, options);
  const int threads = model.player_options().threads;
  return search_by(*decode::replayed_steps(model), sources, options,
                   threads > 0 ? threads : std::max(1, omp_get_max_threads()));
}

std::vector<std::vector<Hypothesis>> search(Predictor& predictor, const std::vector<Tokens>& sources,
                                            const SearchOptions& options) {
  check(sources, options);
  if (!options.cached) throw Error("a predictor always caches: to search without caches, pass the model");
  return search_by(*decode::cached_steps(predictor), sources, options, predictor.threads());
}

}  // namespace xtape
