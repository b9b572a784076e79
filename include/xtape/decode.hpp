/// Generation of tokens with a model, by sampling or beam search.
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

/// Options of sampling the next token from its logits. They apply in this order: temperature, top_k, top_p.
struct Sampling {
  double temperature = 1;  ///< The divisor of the logits, >= 0. With 0, sampling returns the most likely token.
  std::int64_t top_k = 0;  ///< Keeps only the k most likely tokens. 0: all.
  /// Keeps only the most likely tokens whose probabilities add up to this share, in (0, 1] (Holtzman et al., 2020).
  double top_p = 1;
  std::uint64_t seed = 0;
};

/// Draws a token from `logits`, which has one number per token. `draw` selects one of the seed's random numbers. Equal
/// arguments give equal tokens. Equally likely tokens are ordered by index. Throws Error if an option is out of range,
/// a logit is NaN or +infinity, or no logit is finite.
std::int32_t sample(const std::vector<double>& logits, const Sampling& sampling, std::uint64_t draw);

/// Returns the sampling that generation_config.json of a folder of the Hugging Face Hub describes: its `temperature`,
/// `top_k` and `top_p`, or temperature 0 if `do_sample` is false. Other options are those of `otherwise`. If there is
/// no such file, returns `otherwise`. Throws FileError if the file is damaged or a value is out of range.
Sampling published_sampling(const std::string& folder, const Sampling& otherwise = {});

/// Returns the probability with which `sample` draws each token. Errors are those of `sample`.
std::vector<double> sampling_probabilities(const std::vector<double>& logits, const Sampling& sampling);

struct GenerateOptions {
  std::int64_t tokens = 100;  ///< The most tokens to generate.
  /// The most tokens that the model reads at once. When this context is full, the older half is dropped.
  std::int64_t context = 1024;
  Tokens end_tokens = {};  ///< Generation ends after any of these tokens.
  Sampling sampling = {};
  /// `generate` calls this function with each new token. Returning true ends the generation.
  std::function<bool(std::int32_t)> each;
  std::int64_t samples = 1;  ///< For generate_batch: the number of continuations per prompt.
  /// For generate_batch: the number of rows per batch. With up to 8 rows, each step reads the weights only once.
  std::int64_t batch_size = 8;
};

/// Continues `prompt` and returns the new tokens. Plays the model's function `logits(tokens)` in mode predict: first
/// for the prompt in a few chunks, then for each token separately. The function maps int64 [b, t] to floats [b, t,
/// classes]. Throws Error if the prompt is empty, an option is out of range, or logits cannot be sampled. Throws
/// DefinitionError if `logits` does not have this form.
Tokens generate(Model& model, const Tokens& prompt, const GenerateOptions& options);
/// The same, but keeps the players for the next call.
Tokens generate(Predictor& predictor, const Tokens& prompt, const GenerateOptions& options);

/// Continues many prompts in batches, whose rows can differ in length. Returns the new tokens: row i * samples + j is
/// sample j of prompt i. Each row ends separately. Sample j draws from stream j of the seed. Its text therefore does
/// not depend on the other prompts, except through rounding. generate_batch calls `each` with the number of a row and
/// its new token. Returning true ends this row. Errors are those of `generate`.
std::vector<Tokens> generate_batch(Model& model, const std::vector<Tokens>& prompts, const GenerateOptions& options,
                                   const std::function<bool(std::int64_t, std::int32_t)>& each = {});
/// The same, but keeps the players for the next call.
std::vector<Tokens> generate_batch(Predictor& predictor, const std::vector<Tokens>& prompts,
                                   const GenerateOptions& options,
                                   const std::function<bool(std::int64_t, std::int32_t)>& each = {});

/// Decodes generated tokens one by one into text. The text consists of complete characters (invalid UTF-8 becomes
/// U+FFFD) and ends before the first stop text. Stop texts can span several tokens. The stream holds back text that
/// could be the beginning of a stop text.
class TextStream {
 public:
  /// `before` is the last token of the prompt. The tokenizer must outlive the stream. Throws Error if a stop text is
  /// empty.
  TextStream(const Tokenizer& tokenizer, std::int32_t before, std::vector<std::string> stops = {});

  std::string add(std::int32_t token);  ///< Returns the text that this token completes, or "" after a stop.
  std::string finish();                 ///< Returns the text held back. Call it after the last token.
  bool stopped() const;                 ///< Whether a stop text has occurred.

 private:
  struct Data;
  Owner<Data> data_;
};

/// Makes scores of hypotheses with different lengths comparable: score = log_probability / penalty. The penalty depends
/// on the number L of tokens, including the end token:
enum class LengthPenalty : std::uint8_t {
  none,  ///< 1.
  wu,    ///< ((5 + L) / 6)^alpha (Wu et al., 2016, Google's neural machine translation system, eq. 14).
  power  ///< L^alpha.
};
const char* name_of(LengthPenalty penalty);  ///< "none", "wu", "power".
/// The inverse of name_of. Throws Error with a list of the valid names.
LengthPenalty length_penalty_named(const std::string& name);
double penalty_of(LengthPenalty penalty, double alpha, std::int64_t length);

struct SearchOptions {
  /// The number of hypotheses per source that are extended at each step. 1 means greedy search.
  std::int64_t beam_size = 1;
  LengthPenalty length_penalty = LengthPenalty::none;
  double alpha = 0.6;             ///< The exponent of the length penalty.
  std::int64_t max_length = 256;  ///< The most tokens of a hypothesis, including the end token.
  /// If length_factor or length_extra is not 0, a hypothesis also has at most length_factor * (tokens of the source) +
  /// length_extra tokens, but at least one token is always allowed.
  double length_factor = 0;
  std::int64_t length_extra = 0;
  std::int64_t n_best = 1;  ///< The number of hypotheses to return per source, at most beam_size.
  /// If true, a search ends when beam_size hypotheses are finished. If false, it ends when no other hypothesis can beat
  /// the n_best finished ones, which takes longer. A greedy search ends at the first end token.
  bool early_stopping = false;
  std::int32_t start = 2;         ///< Precedes the first token of every target. Never generated.
  Tokens ends = {3};              ///< Each of these tokens ends a target.
  std::int32_t pad = 0;           ///< Pads sources. Never generated.
  std::int64_t batch_size = 64;   ///< The number of sources per batch. Sources of similar length share a batch.
  std::function<void()> between;  ///< Called between steps, on the caller's thread. An exception ends the search.
};

struct Hypothesis {
  Tokens tokens;               ///< Does not include the start and end tokens.
  double log_probability = 0;  ///< The sum over its tokens, including the end token.
  double score = 0;            ///< log_probability / penalty.
  bool finished = false;       ///< Whether it has an end token. If false, it was cut at the maximum length.
  std::int32_t end = -1;       ///< The end token, or -1.
};

/// Returns the best targets for each of `sources`, by beam search (docs/how_to/decoding.md). The model's function
/// logits(source, tokens) maps int64 [b, s], padded on the right, and int64 [b, t] to floats [b, t, classes]. Returns
/// up to n_best hypotheses per source: first the finished ones, then the others, both by descending score. Batching
/// changes scores only by rounding. Throws Error if an option is out of range, a source is empty, a logit is NaN or
/// +infinity, or a row has no finite logit. Throws DefinitionError if `logits` does not have this form.
std::vector<std::vector<Hypothesis>> search(Model& model, const std::vector<Tokens>& sources,
                                            const SearchOptions& options);
/// The same, but keeps the players for the next call.
std::vector<std::vector<Hypothesis>> search(Predictor& predictor, const std::vector<Tokens>& sources,
                                            const SearchOptions& options);

/// Searches with several predictors of one model, and keeps their players for the next search. If there are at least as
/// many batches as threads, each thread searches complete batches. Results are bitwise the same as with one predictor.
/// Each search packs the weights once. The packed copy takes as much memory as the weights. The weights must not be
/// written during a search.
///
/// Only one thread at a time may use a searcher. The model must outlive the searcher and must not be moved.
class Searcher {
 public:
  explicit Searcher(const Model& model);  ///< Uses as many threads as the model's players.

  /// The same as the function `search`. Calls `options.between` only on the calling thread.
  std::vector<std::vector<Hypothesis>> search(const std::vector<Tokens>& sources, const SearchOptions& options);

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
