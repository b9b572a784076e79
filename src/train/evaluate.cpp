#include "evaluate.hpp"

#include <algorithm>

#include "next_token.hpp"

namespace xtape {

Evaluation train::evaluate(Meter& meter, Model& model, const Batches& batches,
                            const std::function<void()>& between) {
  meter.restart();
  Batch batch = batches.blank();
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    if (between) between();
    batches.validation(index, batch);
    meter.add(batch, batches.validation_continues(index));
  }
  Evaluation evaluation = meter.measured();
  const std::vector<Question> questions = batches.questions();
  evaluation.questions = static_cast<std::int64_t>(questions.size());
  if (!questions.empty())
    evaluation.exact_match = static_cast<double>(exact_matches(model, questions, batches.rows(), between)) /
                             static_cast<double>(questions.size());
  return evaluation;
}

Evaluation evaluate(Model& model, const Batches& batches) {
  train::Meter meter(model);
  return train::evaluate(meter, model, batches);
}

double sampled_loss(Model& model, const Batches& batches, std::int64_t count) {
  train::Meter meter(model);
  Batch batch = batches.blank();
  for (std::int64_t index = 0; index < count; ++index) {
    batches.validation_sample(static_cast<std::uint64_t>(index), batch);
    meter.add(batch);
  }
  return meter.measured().loss;
}

std::int64_t exact_matches(Model& model, const std::vector<Question>& questions, std::int64_t rows,
                           const std::function<void()>& between) {
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
      if (between) between();
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
