#include <algorithm>
#include <cmath>

#include "base/memory/lengths.hpp"
#include "train/trainer/evaluator.hpp"

namespace xtape {

namespace {
constexpr std::int64_t tokens_at_once = 1024;
constexpr std::int64_t not_counted = -1;

/// Cuts a text into windows, which are the rows of batches.
class Windows {
 public:
  Windows(const Tokens& tokens, const TextWindows& options)
      : tokens_(tokens),
        context_(static_cast<std::size_t>(options.context)),
        stride_(static_cast<std::size_t>(options.stride)),
        columns_(static_cast<std::int64_t>(std::min(tokens.size(), context_)) - 1) {
    const std::size_t beyond_first = tokens.size() - static_cast<std::size_t>(columns_) - 1;
    left_ = static_cast<std::int64_t>(ceiling(beyond_first, stride_)) + 1;
    rows_ = std::min(left_, std::max<std::int64_t>(1, tokens_at_once / options.context));
    batches_ = static_cast<std::size_t>(ceiling(left_, rows_));
  }

  std::size_t batches() const { return batches_; }

  /// Returns a batch of the next windows. The last batch may have fewer rows.
  const BatchArrays& next() {
    const Shape shape{std::min(rows_, left_), columns_};
    left_ -= shape[0];
    if (batch_.empty() || batch_.at("tokens").shape() != shape)
      batch_ = {{"tokens", Array(Dtype::int64, shape)}, {"targets", Array(Dtype::int64, shape)}};
    Array inputs = batch_.at("tokens");
    Array targets = batch_.at("targets");
    for (std::int64_t row = 0; row < inputs.shape()[0]; ++row)
      fill(inputs.as<std::int64_t>() + row * columns_, targets.as<std::int64_t>() + row * columns_);
    return batch_;
  }

 private:
  void fill(std::int64_t* inputs, std::int64_t* targets) {
    std::fill_n(inputs, columns_, std::int64_t{0});
    std::fill_n(targets, columns_, not_counted);
    const std::size_t end = std::min(begin_ + context_, tokens_.size());
    for (std::size_t i = begin_ + 1; i < end; ++i) {
      inputs[i - begin_ - 1] = tokens_[i - 1];
      if (i >= counted_) targets[i - begin_ - 1] = tokens_[i];
    }
    counted_ = end;
    begin_ += stride_;
  }

  const Tokens& tokens_;
  std::size_t context_, stride_;
  std::int64_t columns_;
  std::size_t begin_ = 0;    // the first token of the next window
  std::size_t counted_ = 0;  // the end of the last window; all earlier tokens have been counted
  std::size_t batches_ = 0;
  std::int64_t left_ = 0;  // windows that no batch has had
  std::int64_t rows_ = 0;  // the most windows of a batch
  BatchArrays batch_;
};
}  // namespace

TextEvaluation evaluate_text(Model& model, const Tokens& tokens, const TextWindows& options,
                             const std::shared_ptr<Communicator>& communicator) {
  if (options.context < 2)
    throw Error("a window needs at least 2 tokens, one to read and one to predict, not " +
                std::to_string(options.context));
  if (options.stride < 1 || options.stride > options.context)
    throw Error("the stride of windows must be 1 to their length of " + std::to_string(options.context) + ", not " +
                std::to_string(options.stride));
  if (tokens.size() < 2)
    throw Error("a text of " + std::to_string(tokens.size()) + " tokens has no token to predict: it needs at least 2");
  train::Evaluator evaluator(model);
  Windows windows(tokens, options);
  ranks::RankGroup group(communicator);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < windows.batches(); ++i)
    ranks.push_back(static_cast<int>(i % static_cast<std::size_t>(group.size())));
  std::size_t made = 0;  // number of batches
  train::add_shared(evaluator, ranks, group, [&](std::size_t i) {
    for (; made < i; ++made) windows.next();
    ++made;
    return evaluator.play(i, windows.next());
  });
  const Evaluation measured = evaluator.measured();
  return {measured.tokens, measured.perplexity ? std::log(*measured.perplexity) : measured.loss};
}

}  // namespace xtape
