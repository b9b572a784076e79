#include "train/predict/predict.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "kernels/table/kernels.hpp"

namespace xtape::train {

namespace {
/// Returns the shortest text that is read back as the same number.
template <class Number>
std::string text_of(Number number) {
  char text[64];
  if constexpr (std::is_same_v<Number, double> || std::is_integral_v<Number>)
    return {text, std::to_chars(text, text + sizeof text, +number).ptr};
  else
    return {text, std::to_chars(text, text + sizeof text, static_cast<float>(number)).ptr};
}

/// Returns "y", or "y.0", "y.1" … if there are several.
std::vector<std::string> numbered(const std::string& name, std::int64_t count, bool several) {
  if (!several) return {name};
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(name + "." + std::to_string(i));
  return names;
}
}  // namespace

std::string text_of_probability(double probability) {
  char text[32];
  return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.4g", probability))};
}

std::vector<std::pair<std::string, double>> most_likely(const Array& logits, std::int64_t rows,
                                                        const std::vector<std::string>& labels) {
  const auto classes = std::ssize(labels);
  if (logits.shape() != Shape{rows, classes} || logits.dtype() != Dtype::float32)
    throw Error("the function 'logits' returns " + to_string(logits.shape()) + " for " + std::to_string(rows) +
                " rows and " + std::to_string(classes) + " labels");
  std::vector<std::pair<std::string, double>> found;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* row = logits.as<float>() + i * classes;
    const float* best = std::max_element(row, row + classes);
    double sum = 0;
    for (const float* each = row; each < row + classes; ++each)
      sum += kernels().numbers.exp(static_cast<double>(*each - *best));
    found.emplace_back(labels[static_cast<std::size_t>(best - row)], 1 / sum);
  }
  return found;
}

RowPredictor::RowPredictor(Run& run, const PredictSamples& samples) : run_(run), samples_(samples) {
  const Recipe::Data& data = run.recipe().data;
  const Task task = kind_of(data).task;
  if (task == Task::translations)
    throw Error(run.directory() + " is a run on pairs of texts: xtape translate translates");
  if (task == Task::texts) throw Error(run.directory() + " is a run on texts: xtape generate continues them");
  const std::vector<std::string> functions = run.model().functions();
  logits_ = !run.labels().empty() && contains(functions, "logits");
  predict_ = contains(functions, "predict");
  if (!logits_ && !predict_)
    throw Error("the model of " + run.directory() + " has no function 'predict' that gives numbers for each row" +
                (run.labels().empty() ? "" : ", and no function 'logits' that gives one for each label"));
  if (!is_sampled()) return;
  if (samples.count < 2 || samples.count > most_samples)
    throw Error("a deviation needs 2 to " + std::to_string(most_samples) + " samples, not " +
                std::to_string(samples.count));
  sampling_.emplace(model_of_samples(run.model(), samples.seed));
}

bool RowPredictor::reads(const std::string& input) const {
  const auto is_input = [&](const char* function) {
    const std::vector<FunctionInput>& inputs = run_.model().signature(function).inputs;
    return std::ranges::any_of(inputs, [&](const FunctionInput& each) { return each.name == input; });
  };
  return (logits_ && is_input("logits")) || (predict_ && is_input("predict"));
}

std::vector<std::string> RowPredictor::target_names() const {
  const Recipe::Data& data = run_.recipe().data;
  std::vector<std::string> names;
  const auto add = [&](const std::vector<std::string>& more) { names.insert(names.end(), more.begin(), more.end()); };
  for (const ArrayInput& input : data.inputs)
    if (!reads(input.name) && !input.labels) add(input.columns);
  for (const Column& column : data.columns)
    if (column.kind == Column::Kind::number && !column.name.empty() && !reads(column.name))
      add(numbered(column.name, column.width, column.width > 0));
  return names;
}

std::string RowPredictor::label_name() const {
  const Recipe::Data& data = run_.recipe().data;
  std::string name = "label";
  for (const ArrayInput& input : data.inputs)
    if (input.labels) name = input.columns.at(0);
  for (const Column& column : data.columns)
    if (column.kind == Column::Kind::label && !column.name.empty()) name = column.name;
  return name;
}

void RowPredictor::add_labels(const Array& logits, std::int64_t rows, Predictions& made) const {
  made.names.insert(made.names.end(), {label_name(), "probability"});
  const auto chosen = most_likely(logits, rows, run_.labels());
  for (std::size_t i = 0; i < chosen.size(); ++i) add_label(chosen[i].first, chosen[i].second, made.rows[i]);
}

void RowPredictor::add_label(const std::string& label, double probability, std::vector<std::string>& fields) {
  fields.insert(fields.end(), {std::isnan(probability) ? "" : label, text_of_probability(probability)});
}

void RowPredictor::add_numbers(const Store& results, std::int64_t rows, Predictions& made,
                               const std::string& ending) const {
  std::vector<std::string> names;
  for (const auto& [name, array] : results) {
    if (array.shape().empty() || array.shape()[0] != rows)
      throw Error("the result '" + name + "' of the function 'predict' is " + to_string(array.shape()) + " for " +
                  std::to_string(rows) + " rows: it must have one prediction for each");
    const std::int64_t width = rows == 0 ? 0 : array.count() / rows;
    const std::vector<std::string> own = numbered(name, width, array.shape().size() > 1 && width != 1);
    names.insert(names.end(), own.begin(), own.end());
    visit_elements(array, [&, count = array.count()](const auto* elements) {
      for (std::int64_t i = 0; i < count; ++i)
        made.rows[static_cast<std::size_t>(i / width)].push_back(text_of(elements[i]));
    });
  }
  // A single unnamed result gets the names of the targets.
  const std::vector<std::string> targets = target_names();
  if (run_.model().signature("predict").results.empty() && results.size() == 1 && targets.size() == names.size())
    names = targets;
  for (std::string& name : names) name += ending;
  made.names.insert(made.names.end(), names.begin(), names.end());
}

Predictions RowPredictor::predict(const BatchArrays& rows) const {
  Predictions made;
  if (rows.empty()) throw Error("the functions 'logits' and 'predict' read no input");
  const std::int64_t count = rows[0].value.shape()[0];
  made.rows.resize(static_cast<std::size_t>(count));
  if (is_sampled()) {
    add_samples(rows, made);
    return made;
  }
  if (logits_) add_labels(run_.model().play("logits", rows)[0].value, count, made);
  if (predict_) add_numbers(run_.model().play("predict", rows), count, made);
  return made;
}

}  // namespace xtape::train
