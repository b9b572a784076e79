/// Generating tokens with a model: by drawing, and by searching for the most likely.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 8
#error "this layer of xtape may not see the decode layer"
#endif

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xtape/model.hpp"
#include "xtape/predict.hpp"
#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// How the next token is chosen from its logits. The three cuts apply in this order: temperature, top_k, top_p.
struct Sampling {
  double temperature = 1;  ///< Logits are divided by it; 0: always the most likely token.
  std::int64_t top_k = 0;  ///< Only the k most likely tokens; 0: all.
  double top_p = 1;  ///< Only the most likely tokens that together reach this probability (Holtzman et al., 2020).
  std::uint64_t seed = 0;
};

/// One token drawn from `logits`, whose classes are the tokens. Draw number `draw` of the sampling's seed: equal draws
/// give equal tokens. Equally likely tokens are cut in the order of their numbers. Throws Error where an option is out
/// of its range, or no logit is finite.
std::int32_t sample(const std::vector<double>& logits, const Sampling& sampling, std::uint64_t draw);

/// The probabilities that `sample` draws by.
std::vector<double> sampling_probabilities(const std::vector<double>& logits, const Sampling& sampling);

struct GenerateOptions {
  std::int64_t tokens = 100;    ///< How many to generate.
  std::int64_t context = 1024;  ///< The most tokens that the model sees at once. When it is full, the older half goes.
  std::int32_t end_token = -1;  ///< Generation ends after this token; -1: there is none.
  Sampling sampling;
  /// Called by `generate` with each token as it comes; true ends the generation.
  std::function<bool(std::int32_t)> each;
  std::int64_t samples = 1;     ///< Of generate_batch: how often each prompt is continued.
  std::int64_t batch_size = 8;  ///< Of generate_batch: rows at a time. Up to 8, they share the reading of the weights.
  bool cached = true;           ///< False plays all that the model sees again for every token: for comparing.
};

/// Continues `prompt` by the model's function `logits(tokens)`, played in mode predict, and returns what was generated. The
/// prompt is played in a few pieces, then every token by itself. Throws Error where the prompt is empty.
Tokens generate(Model& model, const Tokens& prompt, const GenerateOptions& options);
/// The same with players that are kept for the next call. `cached` must be true.
Tokens generate(Predictor& predictor, const Tokens& prompt, const GenerateOptions& options);

/// Continues many prompts, rows of different lengths in one batch, and returns what was generated: sample j of prompt i is
/// number i * samples + j. A row ends by itself; sample j draws from stream j of the seed, so that what it says does not
/// depend on the prompts beside it, other than by rounding. `each` is called with the number of a row and its next token;
/// true ends that row. Throws Error where a prompt is empty, or an option out of its range.
std::vector<Tokens> generate_batch(Model& model, const std::vector<Tokens>& prompts, const GenerateOptions& options,
                                   const std::function<bool(std::int64_t, std::int32_t)>& each = {});
/// The same with players that are kept for the next call. `cached` must be true.
std::vector<Tokens> generate_batch(Predictor& predictor, const std::vector<Tokens>& prompts,
                                   const GenerateOptions& options,
                                   const std::function<bool(std::int64_t, std::int32_t)>& each = {});

/// The text that tokens add to a prompt, as they come: in whole characters (what is not UTF-8 becomes U+FFFD), up to the
/// first of some texts to stop at, which may span tokens. What may be the beginning of one is held back.
class TextStream {
 public:
  /// `before` is the prompt's last token. The tokenizer must outlive the stream. Throws Error where a stop is empty.
  TextStream(const Tokenizer& tokenizer, std::int32_t before, std::vector<std::string> stops = {});
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  std::string add(std::int32_t token);  ///< The text that is certain with this token; none after a stop.
  std::string finish();                 ///< No more tokens come: what was held back.
  bool stopped() const;                 ///< A stop has come.

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

/// How log-probabilities of hypotheses of different lengths are compared: score = log_probability / penalty, where a
/// hypothesis of L tokens, its end token included, has the penalty
enum class LengthPenalty : std::uint8_t {
  none,  ///< 1;
  wu,    ///< ((5 + L) / 6)^alpha (Wu et al., 2016, Google's neural machine translation system);
  power  ///< L^alpha.
};
const char* name_of(LengthPenalty penalty);
LengthPenalty length_penalty_named(const std::string& name);  ///< Throws Error, naming the valid names.
double penalty_of(LengthPenalty penalty, double alpha, std::int64_t length);

struct SearchOptions {
  std::int64_t beam_size = 1;  ///< Hypotheses a sentence that go on at each step. 1: greedy, up to the first end token.
  LengthPenalty length_penalty = LengthPenalty::none;
  double alpha = 0.6;             ///< Of the penalty.
  std::int64_t max_length = 256;  ///< The most tokens of a hypothesis, its end token included.
  /// Where one of the two is not 0, hypotheses have at most length_factor * (tokens of the source) + length_extra tokens,
  /// too, but may have one.
  double length_factor = 0;
  std::int64_t length_extra = 0;
  std::int64_t n_best = 1;  ///< How many hypotheses of a sentence are wanted; at most beam_size.
  /// False: a sentence goes on until no hypothesis can still beat the n_best that are finished. True: until beam_size
  /// hypotheses are finished, which is cheaper.
  bool early_stopping = false;
  std::int32_t start = 2;  ///< Comes before the first token of every target; never generated.
  std::int32_t end = 3;    ///< Ends a target.
  std::int32_t pad = 0;    ///< Fills sources up; never generated.
  std::int64_t batch_size = 64;  ///< Sentences at a time; those of like length go together.
  bool cached = true;            ///< False plays whole hypotheses again at every step: for comparing.
  std::function<void()> between;  ///< Called before every step; what it throws ends the search.
};

struct Hypothesis {
  Tokens tokens;               ///< Without start and end.
  double log_probability = 0;  ///< The sum of its tokens' log-probabilities, that of the end token included.
  double score = 0;            ///< Penalised.
  bool finished = false;       ///< It has its end token. False: it was cut at the greatest length.
};

/// The best targets for each of `sources`, by beam search with the model's function logits(source, tokens): int64 [b, s],
/// padded on the right, and [b, t], to float [b, t, classes]. Per source: up to n_best hypotheses, the finished ones
/// first, by falling score. Which sentences share a batch changes scores by rounding at most. docs/decoding.md says how
/// the search goes. Throws Error where an option is out of its range, a source has no token, or a logit is NaN.
std::vector<std::vector<Hypothesis>> search(Model& model, const std::vector<Tokens>& sources,
                                            const SearchOptions& options);
/// The same with players that are kept for the next call. `cached` must be true.
std::vector<std::vector<Hypothesis>> search(Predictor& predictor, const std::vector<Tokens>& sources,
                                            const SearchOptions& options);

}  // namespace xtape
