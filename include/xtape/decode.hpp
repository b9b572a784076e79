/// Generating tokens with a model, by sampling and by beam search.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xtape/model.hpp"
#include "xtape/owner.hpp"
#include "xtape/predict.hpp"
#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// How the next token is drawn from its logits. The options apply in this order: temperature, top_k, top_p.
struct Sampling {
  double temperature = 1;  ///< Logits are divided by it. 0: the most likely token. >= 0.
  std::int64_t top_k = 0;  ///< Only the k most likely tokens; 0: all.
  double top_p = 1;  ///< Only the most likely tokens that together reach this share, in (0, 1] (Holtzman et al., 2020).
  std::uint64_t seed = 0;
};

/// Draws a token from `logits`, which has one per token, with number `draw` of the seed's random numbers: equal
/// arguments give equal tokens. Of equally likely tokens, the lowest come first. Throws Error if an option is out of
/// range, a logit is NaN or +infinity, or no logit is finite.
std::int32_t sample(const std::vector<double>& logits, const Sampling& sampling, std::uint64_t draw);

/// The probability of each token in `sample`. Throws as it does.
std::vector<double> sampling_probabilities(const std::vector<double>& logits, const Sampling& sampling);

struct GenerateOptions {
  std::int64_t tokens = 100;    ///< The most to generate.
  std::int64_t context = 1024;  ///< The most tokens the model reads at once; when full, the older half is dropped.
  std::int32_t end_token = -1;  ///< Generation ends after this token; -1: none.
  Sampling sampling;
  /// Called by `generate` with each new token; returning true ends the generation.
  std::function<bool(std::int32_t)> each;
  std::int64_t samples = 1;     ///< For generate_batch: continuations per prompt.
  std::int64_t batch_size = 8;  ///< For generate_batch: rows at a time. Up to 8 rows read the weights once.
};

/// Continues `prompt` with the model's function `logits(tokens)`, floats [b, t, classes] in mode predict, and returns
/// the new tokens. Plays the prompt in a few pieces, then each token by itself. Throws Error if the prompt is empty, an
/// option is out of range, or logits cannot be sampled; DefinitionError if `logits` is not of this form.
Tokens generate(Model& model, const Tokens& prompt, const GenerateOptions& options);
/// The same, keeping the players for the next call.
Tokens generate(Predictor& predictor, const Tokens& prompt, const GenerateOptions& options);

/// Continues many prompts, in batches of rows of different lengths, and returns the new tokens: sample j of prompt i is
/// row i * samples + j. Each row ends on its own. Sample j draws from stream j of the seed, so that its text does not
/// depend on the other prompts, except by rounding. `each` is called with a row's number and new token; returning true
/// ends that row. Throws as `generate`.
std::vector<Tokens> generate_batch(Model& model, const std::vector<Tokens>& prompts, const GenerateOptions& options,
                                   const std::function<bool(std::int64_t, std::int32_t)>& each = {});
/// The same, keeping the players for the next call.
std::vector<Tokens> generate_batch(Predictor& predictor, const std::vector<Tokens>& prompts,
                                   const GenerateOptions& options,
                                   const std::function<bool(std::int64_t, std::int32_t)>& each = {});

/// Decodes generated tokens one by one into text: in whole characters (invalid UTF-8 becomes U+FFFD), up to the first
/// of some stop texts, which may span tokens. Text that may begin a stop text is held back.
class TextStream {
 public:
  /// `before` is the last token of the prompt. The tokenizer must outlive the stream. Throws Error if a stop text is
  /// empty.
  TextStream(const Tokenizer& tokenizer, std::int32_t before, std::vector<std::string> stops = {});

  std::string add(std::int32_t token);  ///< The text that this token completes; "" after a stop.
  std::string finish();                 ///< To be called after the last token: the text held back.
  bool stopped() const;                 ///< Whether a stop text has occurred.

 private:
  struct Data;
  Owner<Data> data_;
};

/// How hypotheses of different lengths are compared: score = log_probability / penalty. The penalty, for L tokens with
/// the end token:
enum class LengthPenalty : std::uint8_t {
  none,  ///< 1.
  wu,    ///< ((5 + L) / 6)^alpha (Wu et al., 2016, Google's neural machine translation system, eq. 14).
  power  ///< L^alpha.
};
const char* name_of(LengthPenalty penalty);                  ///< "none", "wu", "power".
LengthPenalty length_penalty_named(const std::string& name);  ///< The inverse; throws Error, listing the valid names.
double penalty_of(LengthPenalty penalty, double alpha, std::int64_t length);

struct SearchOptions {
  std::int64_t beam_size = 1;  ///< Hypotheses per source that are extended at each step. 1: greedy.
  LengthPenalty length_penalty = LengthPenalty::none;
  double alpha = 0.6;             ///< The exponent of the length penalty.
  std::int64_t max_length = 256;  ///< The most tokens of a hypothesis, the end token included.
  /// If one of these is not 0, hypotheses also have at most length_factor * (tokens of the source) + length_extra
  /// tokens, but may always have one.
  double length_factor = 0;
  std::int64_t length_extra = 0;
  std::int64_t n_best = 1;  ///< Hypotheses to return per source; at most beam_size.
  /// True: a search ends when beam_size hypotheses are finished. False: when none can still beat the n_best finished
  /// ones, which is more expensive. A greedy search ends at the first end token.
  bool early_stopping = false;
  std::int32_t start = 2;         ///< Precedes the first token of every target; never generated.
  std::int32_t end = 3;           ///< Ends a target.
  std::int32_t pad = 0;           ///< Pads sources; never generated.
  std::int64_t batch_size = 64;   ///< Sources at a time; those of similar length share a batch.
  std::function<void()> between;  ///< Called before steps, on the caller's thread; an exception ends the search.
};

struct Hypothesis {
  Tokens tokens;               ///< Without the start and end tokens.
  double log_probability = 0;  ///< The sum over its tokens, the end token included.
  double score = 0;            ///< log_probability / penalty.
  bool finished = false;       ///< It has an end token. False: it was cut at the maximum length.
};

/// The best targets for each of `sources`, by beam search (docs/decoding.md) with the model's function logits(source,
/// tokens): from int64 [b, s], padded on the right, and int64 [b, t] to floats [b, t, classes]. Returns up to n_best
/// hypotheses per source, first the finished ones, each by descending score. Batching changes scores by rounding at
/// most. Throws Error if an option is out of range, a source is empty, a logit is NaN or +infinity or a row has no
/// finite logit; DefinitionError if `logits` is not of this form.
std::vector<std::vector<Hypothesis>> search(Model& model, const std::vector<Tokens>& sources,
                                            const SearchOptions& options);
/// The same, keeping the players for the next call.
std::vector<std::vector<Hypothesis>> search(Predictor& predictor, const std::vector<Tokens>& sources,
                                            const SearchOptions& options);

/// Searches with several predictors of one model, and keeps their players for the next search. If there are at least as
/// many batches as threads, each thread searches for whole batches on its own; results are the same bits as with one
/// predictor. Weights are packed once for each search, in as much memory as they take, and must not be written
/// meanwhile.
///
/// For one thread at a time. The model must outlive the searcher and stay where it is.
class Searcher {
 public:
  explicit Searcher(const Model& model);  ///< With the threads of the model's players.

  /// As the function `search`. `options.between` is called on the calling thread only.
  std::vector<std::vector<Hypothesis>> search(const std::vector<Tokens>& sources, const SearchOptions& options);

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
