/// The beam search for one sentence.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/messages/wording.hpp"
#include "decode/sampler.hpp"
#include "xtape/decode.hpp"

namespace xtape::decode {

/// An unfinished hypothesis.
struct Running {
  Tokens tokens;
  double log_probability = 0;
  std::size_t parent = 0;  ///< The row, within the sentence, of the hypothesis that this one extends (its parent).
  std::size_t row = 0;     ///< Its own row. It is the parent's row unless a better child of the parent has this row.
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

  /// Takes one step. choices[j] contains the most probable next tokens of hypothesis j.
  void advance(const std::vector<ScoredToken>* choices) {
    std::vector<Candidate> candidates;
    for (std::size_t j = 0; j < running_.size(); ++j)
      for (const ScoredToken& choice : choices[j])
        candidates.push_back(
            {running_[j].log_probability + choice.log_probability, static_cast<std::int32_t>(j), choice.token});
    std::sort(candidates.begin(), candidates.end());
    std::vector<Running> next;
    for (const Candidate& candidate : candidates) {
      if (next.size() == static_cast<std::size_t>(options_->beam_size)) break;
      const Running& parent = running_[candidate.parent];
      Running grown{parent.tokens, candidate.log_probability, parent.row};
      if (contains(options_->ends, candidate.token)) {
        finish(std::move(grown.tokens), candidate);
        continue;
      }
      grown.tokens.push_back(candidate.token);
      next.push_back(std::move(grown));
    }
    place(next);
    running_ = std::move(next);
    ++length_;
    done_ = running_.empty() || length_ == limit_ || nothing_better_can_come();
  }

  /// Returns the best hypotheses. Unfinished hypotheses count only if fewer than n_best are finished.
  std::vector<Hypothesis> best() const {
    std::vector<Hypothesis> best = finished_;
    std::vector<Hypothesis> cut;
    for (const Running& each : running_)
      cut.push_back({each.tokens, each.log_probability, score(each.log_probability, length_), false});
    std::ranges::stable_sort(cut, better);
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

  /// Assigns rows to hypotheses so that few hypotheses change their rows.
  void place(std::vector<Running>& next) const {
    std::vector<Running*> at(static_cast<std::size_t>(options_->beam_size), nullptr);
    for (Running& each : next)
      if (at[each.parent] == nullptr) at[each.row = each.parent] = &each;
    std::size_t free = 0;
    for (Running& each : next) {
      if (at[each.parent] == &each) continue;
      while (at[free] != nullptr) ++free;
      at[each.row = free] = &each;
    }
  }

  static bool better(const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; }

  double score(double log_probability, std::int64_t length) const {
    return log_probability / penalty_of(options_->length_penalty, options_->alpha, length);
  }

  /// Adds a finished hypothesis. Keeps only the n_best best hypotheses.
  void finish(Tokens tokens, const Candidate& last) {
    ++ended_;
    Hypothesis made{std::move(tokens), last.log_probability, score(last.log_probability, length_ + 1), true,
                    last.token};
    finished_.insert(std::upper_bound(finished_.begin(), finished_.end(), made, better), std::move(made));
    if (finished_.size() > static_cast<std::size_t>(options_->n_best)) finished_.pop_back();
  }

  bool nothing_better_can_come() const {
    // The first end token ends a greedy search.
    if (options_->early_stopping || options_->beam_size == 1) return ended_ >= options_->beam_size;
    if (finished_.size() < static_cast<std::size_t>(options_->n_best)) return false;
    // Every token lowers the log-probability of a running hypothesis, and the penalty is monotone in the length. The
    // best possible score therefore combines the current log-probability with the smallest or the largest possible
    // length.
    const double most = running_.front().log_probability;
    return finished_.back().score >= std::max(score(most, length_ + 1), score(most, limit_));
  }

  const SearchOptions* options_;
  std::int64_t limit_;
  std::int64_t length_ = 0;  // the length of the running hypotheses
  std::int64_t ended_ = 0;
  bool done_ = false;
  std::vector<Running> running_;      // by falling probability
  std::vector<Hypothesis> finished_;  // by falling score
};

}  // namespace xtape::decode
