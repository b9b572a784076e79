#include <algorithm>
#include <cmath>

#include "feeding.hpp"
#include "loss.hpp"
#include "next_token.hpp"
#include "xtape/train.hpp"

namespace xtape {

namespace {
/// Sums losses and counts over batches, in mode eval.
class LossMeter {
 public:
  LossMeter(Model& model, const Batches& batches) : batch_(batches.blank()) {
    function_ = model.player("loss", Mode::eval, decode::sizes_of(model, "loss", batch_));
    loss_ = train::loss_of(model, function_->results);
    feeds_ = decode::feeds_of(function_->inputs, batch_);
  }
  Batch& batch() { return batch_; }
  void play() {
    function_->player.play(feeds_);
    sum_ += function_->player.scalar(loss_.sum);
    count_ += function_->player.scalar(loss_.count);
  }
  double mean() const { return sum_ / count_; }
  std::int64_t count() const { return std::llround(count_); }

 private:
  Batch batch_;
  std::shared_ptr<PlayableFunction> function_;
  train::Loss loss_;
  std::vector<Feed> feeds_;
  double sum_ = 0;
  double count_ = 0;
};
}  // namespace

Evaluation evaluate(Model& model, const Batches& batches) {
  Evaluation evaluation;
  {
    LossMeter meter(model, batches);
    for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
      batches.validation(index, meter.batch());
      meter.play();
    }
    evaluation.loss = meter.mean();
    evaluation.tokens = meter.count();
  }
  const std::vector<Question> questions = batches.questions();
  evaluation.questions = static_cast<std::int64_t>(questions.size());
  if (!questions.empty())
    evaluation.exact_match =
        static_cast<double>(exact_matches(model, questions, batches.rows())) / static_cast<double>(questions.size());
  return evaluation;
}

double sampled_loss(Model& model, const Batches& batches, std::int64_t count) {
  LossMeter meter(model, batches);
  for (std::int64_t index = 0; index < count; ++index) {
    batches.validation_sample(static_cast<std::uint64_t>(index), meter.batch());
    meter.play();
  }
  return meter.mean();
}

std::int64_t exact_matches(Model& model, const std::vector<Question>& questions, std::int64_t rows) {
  std::size_t columns = 1;
  std::size_t longest_answer = 0;
  for (const Question& question : questions) {
    if (question.prompt.empty() || question.answer.empty()) throw Error("a question has a prompt and an answer");
    columns = std::max(columns, question.prompt.size() + question.answer.size() - 1);
    longest_answer = std::max(longest_answer, question.answer.size());
  }
  decode::NextToken next(model, rows, static_cast<std::int64_t>(columns));
  std::int64_t right = 0;
  std::vector<double> logits;
  for (std::size_t first = 0; first < questions.size(); first += static_cast<std::size_t>(rows)) {
    const std::size_t count = std::min(questions.size() - first, static_cast<std::size_t>(rows));
    std::vector<Tokens> answers(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t* row = next.row(static_cast<std::int64_t>(i));
      std::fill_n(row, columns, 0);
      const Tokens& prompt = questions[first + i].prompt;
      std::copy(prompt.begin(), prompt.end(), row);
    }
    for (std::size_t step = 0; step < longest_answer; ++step) {
      next.play();
      for (std::size_t i = 0; i < count; ++i) {
        const Question& question = questions[first + i];
        if (step >= question.answer.size()) continue;
        const std::size_t last = question.prompt.size() + step - 1;
        next.logits(static_cast<std::int64_t>(i), static_cast<std::int64_t>(last), logits);
        const auto token = std::max_element(logits.begin(), logits.end()) - logits.begin();
        answers[i].push_back(static_cast<std::int32_t>(token));
        if (last + 1 < columns) next.row(static_cast<std::int64_t>(i))[last + 1] = token;
      }
    }
    for (std::size_t i = 0; i < count; ++i) right += answers[i] == questions[first + i].answer ? 1 : 0;
  }
  return right;
}

}  // namespace xtape
