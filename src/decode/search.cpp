#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
#include "decode/sentence_search.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/decode.hpp"

namespace xtape {

const char* name_of(LengthPenalty penalty) {
  return penalty == LengthPenalty::none ? "none" : penalty == LengthPenalty::wu ? "wu" : "power";
}

LengthPenalty length_penalty_named(const std::string& name) {
  for (const LengthPenalty penalty : {LengthPenalty::none, LengthPenalty::wu, LengthPenalty::power})
    if (name == name_of(penalty)) return penalty;
  throw Error("unknown length penalty '" + name + "': use none, wu or power");
}

double penalty_of(LengthPenalty penalty, double alpha, std::int64_t length) {
  const auto tokens = static_cast<double>(length);
  switch (penalty) {
    case LengthPenalty::wu:
      return kernels().numbers.pow((5 + tokens) / 6, alpha);
    case LengthPenalty::power:
      return kernels().numbers.pow(tokens, alpha);
    default:
      return 1;
  }
}

namespace {
using decode::Running;
using decode::ScoredToken;
using decode::SentenceSearch;
using Results = std::vector<std::vector<Hypothesis>>;

constexpr std::int64_t most_beam = 1 << 20;

void check(const std::vector<Tokens>& sources, const SearchOptions& options) {
  const auto at_least_one = [](std::int64_t value, const char* name) {
    if (value < 1) throw Error(std::string(name) + " must be at least 1, got " + std::to_string(value));
  };
  at_least_one(options.beam_size, "beam_size");
  if (options.beam_size > most_beam)
    throw Error("beam_size must be at most " + std::to_string(most_beam) + ", got " +
                std::to_string(options.beam_size));
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
  BatchSearch(Predictor& predictor, const SearchOptions& options)
      : predictor_(predictor), options_(options), beam_(static_cast<std::size_t>(options.beam_size)) {
    for (const std::int32_t token : {options.pad, options.start})
      if (!contains(options.ends, token)) never_.push_back(token);
  }

  std::vector<std::vector<Hypothesis>> run(const std::vector<Tokens>& sources, const std::vector<std::size_t>& batch) {
    // lengths of sources are rounded up to a multiple of this number, so that few players are planned
    constexpr std::int64_t multiple = 8;
    sentences_.clear();
    std::vector<Tokens> rows;
    for (const std::size_t i : batch) {
      sentences_.emplace_back(options_, std::ssize(sources[i]));
      rows.push_back(sources[i]);
    }
    present_.resize(batch.size());
    std::iota(present_.begin(), present_.end(), std::size_t{0});
    const Array source = token_array(rows, options_.pad, multiple);
    predictor_.begin(source.shape()[0], {{"source", source}}, options_.beam_size);
    std::vector<std::int32_t> tokens(batch.size() * beam_, options_.start);
    for (bool first = true; active() > 0; first = false) {
      if (options_.between) options_.between();
      if (!first) tokens = select_rows();
      advance(step(tokens));
    }
    std::vector<std::vector<Hypothesis>> results;
    for (const SentenceSearch& sentence : sentences_) results.push_back(sentence.best());
    return results;
  }

 private:
  std::size_t active() const {
    return static_cast<std::size_t>(std::ranges::count_if(sentences_, [](const auto& each) { return !each.done(); }));
  }

  /// Appends one token to each row. Returns the logits of the next token.
  const ArrayView& step(const std::vector<std::int32_t>& tokens) {
    const auto rows = std::ssize(tokens);
    if (!tokens_ || tokens_.shape()[0] != rows) tokens_ = Array(Dtype::int64, {rows, 1});
    std::copy(tokens.begin(), tokens.end(), tokens_.as<std::int64_t>());
    return decode::checked_logits(predictor_.step(tokens_));
  }

  void advance(const ArrayView& logits) {
    std::vector<std::int64_t> rows;
    for (std::size_t slot = 0; slot < present_.size(); ++slot) {
      const SentenceSearch& sentence = sentences_[present_[slot]];
      if (sentence.done()) continue;
      for (const Running& each : sentence.running()) rows.push_back(static_cast<std::int64_t>(slot * beam_ + each.row));
    }
    // At most `ends.size()` choices of a row are end tokens. The other choices fill the beam even if all hypotheses
    // come from one row.
    decode::likeliest(logits, rows, options_.beam_size + std::ssize(options_.ends), never_, predictor_.threads(),
                      choices_);
    const std::vector<ScoredToken>* choices = choices_.data();
    for (const std::size_t index : present_) {
      SentenceSearch& sentence = sentences_[index];
      if (sentence.done()) continue;
      const std::size_t count = sentence.running().size();
      sentence.advance(choices);
      choices += count;
    }
  }

  /// Moves the state of every running hypothesis to its row. Returns the last token of each row.
  std::vector<std::int32_t> select_rows() {
    const std::vector<std::size_t> slots = remaining_slots();
    std::vector<std::int32_t> rows(slots.size() * beam_), tokens(rows.size(), options_.start);
    std::vector<std::size_t> present;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::size_t slot = slots[i];
      present.push_back(present_[slot]);
      std::iota(rows.begin() + static_cast<std::ptrdiff_t>(i * beam_),
                rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * beam_), static_cast<std::int32_t>(slot * beam_));
      const SentenceSearch& sentence = sentences_[present_[slot]];
      if (sentence.done()) continue;
      for (const Running& each : sentence.running()) {
        rows[i * beam_ + each.row] = static_cast<std::int32_t>(slot * beam_ + each.parent);
        tokens[i * beam_ + each.row] = each.tokens.back();
      }
    }
    present_ = std::move(present);
    predictor_.select(rows);
    return tokens;
  }

  /// Returns the slots that stay in the batch. Halves the batch as soon as at most half of its sentences continue, so
  /// that players are planned for few different numbers of rows. Finished sentences fill the remaining slots.
  std::vector<std::size_t> remaining_slots() const {
    std::vector<std::size_t> slots(present_.size());
    std::iota(slots.begin(), slots.end(), std::size_t{0});
    std::size_t count = slots.size();
    while (count > 1 && active() <= (count + 1) / 2) count = (count + 1) / 2;
    if (count == slots.size()) return slots;
    const auto goes_on = [&](std::size_t slot) { return !sentences_[present_[slot]].done(); };
    std::stable_partition(slots.begin(), slots.end(), goes_on);
    slots.resize(count);
    std::ranges::sort(slots);
    return slots;
  }

  Predictor& predictor_;
  const SearchOptions& options_;
  std::size_t beam_;
  std::vector<std::int32_t> never_;
  std::vector<SentenceSearch> sentences_;
  std::vector<std::size_t> present_;  // per slot of beam_size rows: the index of its sentence
  std::vector<std::vector<ScoredToken>> choices_;
  Array tokens_;
};

/// Returns batches of the indices of sources of similar length, from the shortest to the longest.
std::vector<std::vector<std::size_t>> batches_of(const std::vector<Tokens>& sources, std::int64_t batch_size) {
  std::vector<std::size_t> order(sources.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sources[a].size() < sources[b].size(); });
  std::vector<std::vector<std::size_t>> batches;
  const auto size = static_cast<std::size_t>(batch_size);
  for (std::size_t first = 0; first < order.size(); first += size) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
    batches.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(std::min(size, order.size() - first)));
  }
  return batches;
}

void search_batch(Predictor& predictor, const std::vector<Tokens>& sources, const std::vector<std::size_t>& batch,
                  const SearchOptions& options, Results& results) {
  std::vector<std::vector<Hypothesis>> found = BatchSearch(predictor, options).run(sources, batch);
  for (std::size_t i = 0; i < batch.size(); ++i) results[batch[i]] = std::move(found[i]);
}
}  // namespace

struct Searcher::Data {
  explicit Data(const Model& given) : model(given), playing(given.player_options()) {
    playing.packed = make_packed_weights();
    threads = thread_count(playing.threads);
  }

  Predictor& predictor() {
    if (!shared) {
      PredictorOptions options;
      options.player = playing;
      shared.emplace(model, "logits", options);
    }
    return *shared;
  }

  /// Searches all batches. Each batch runs on one thread. The longest batches come first, so that the threads finish at
  /// nearly the same time.
  Results search_apart(const std::vector<Tokens>& sources, const std::vector<std::vector<std::size_t>>& batches,
                       const SearchOptions& options) {
    PredictorOptions alone;
    alone.player = playing;
    alone.player->threads = 1;
    alone.player->arena = nullptr;  // an arena serves one thread
    alone.players = 256;            // enough for the combinations of source lengths and numbers of rows
    while (apart.size() < static_cast<std::size_t>(threads)) apart.emplace_back(model, "logits", alone);
    SearchOptions silent = options;  // for all threads except the caller's
    silent.between = nullptr;
    const auto caller = std::this_thread::get_id();
    Results results(sources.size());
    std::mutex mutex;  // of what follows
    std::vector<Predictor*> idle;
    for (auto each = apart.rbegin(); each != apart.rend(); ++each) idle.push_back(&*each);
    std::exception_ptr error;
    parallel_each(threads, std::ssize(batches), [&](std::int64_t i) {
      Predictor* predictor = nullptr;
      {
        const std::lock_guard lock(mutex);
        if (error) return;
        predictor = idle.back();
        idle.pop_back();
      }
      std::exception_ptr thrown;
      try {
        search_batch(*predictor, sources, batches[batches.size() - 1 - static_cast<std::size_t>(i)],
                     std::this_thread::get_id() == caller ? options : silent, results);
      } catch (...) {
        thrown = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      if (thrown && !error) error = thrown;
      idle.push_back(predictor);
    });
    if (error) std::rethrow_exception(error);
    return results;
  }

  const Model& model;
  PlayerOptions playing;
  int threads = 1;
  std::optional<Predictor> shared;  // uses all threads
  std::vector<Predictor> apart;     // each uses one thread
};

Searcher::Searcher(const Model& model) : data_(std::make_unique<Data>(model)) {}

std::vector<std::vector<Hypothesis>> Searcher::search(const std::vector<Tokens>& sources,
                                                      const SearchOptions& options) {
  check(sources, options);
  repack(*data_->playing.packed);  // the weights may have changed since the last search
  const auto batches = batches_of(sources, options.batch_size);
  if (data_->threads == 1 || batches.size() < static_cast<std::size_t>(data_->threads))
    return xtape::search(data_->predictor(), sources, options);
  return data_->search_apart(sources, batches, options);
}

std::vector<std::vector<Hypothesis>> search(Model& model, const std::vector<Tokens>& sources,
                                            const SearchOptions& options) {
  return Searcher(model).search(sources, options);
}

std::vector<std::vector<Hypothesis>> search(Predictor& predictor, const std::vector<Tokens>& sources,
                                            const SearchOptions& options) {
  check(sources, options);
  Results results(sources.size());
  for (const std::vector<std::size_t>& batch : batches_of(sources, options.batch_size))
    search_batch(predictor, sources, batch, options, results);
  return results;
}

}  // namespace xtape
