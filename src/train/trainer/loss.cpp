#include "train/trainer/loss.hpp"

#include <algorithm>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"
#include "xtape/ops.hpp"

namespace xtape::train {

namespace {
/// Converts a mean over rows to the sum over rows and their number. The number is the first size of the first input
/// that has an axis.
Loss of_mean(const NamedVars& inputs, const Var& mean) {
  const auto has_rows = [](const NamedVars::Entry& input) { return input.value.rank() > 0; };
  const auto first = std::ranges::find_if(inputs, has_rows);
  const std::int64_t rows = first == inputs.end() ? 1 : first->value.shape()[0];
  Tape tape = mean.tape();
  return {mean * rows, tape.constant(static_cast<double>(rows), mean.dtype())};
}
}  // namespace

Loss loss_of(const Model& model, const NamedVars& inputs, const NamedVars& results, const std::string& function,
             bool is_loss) {
  const auto scalar = [](const Var& var) { return count_of(var.shape()) == 1; };
  if (results.size() == 1 && scalar(results[0].value) && is_floating(results[0].value.dtype()))
    return of_mean(inputs, results[0].value);
  if (results.size() < 2 || !scalar(results[0].value) || !scalar(results[1].value) ||
      (is_loss && !is_floating(results[0].value.dtype())))
    throw DefinitionError("function '" + function + "' of model '" + model.name() +
                          "' must have two results of one element, a sum over the targets and their count, as "
                          "cross_entropy has, or one, the mean over the rows");
  const std::vector<std::string> carried = carried_names(model, function);
  for (std::size_t i = 2; i < results.size(); ++i)
    if (!contains(carried, results[i].name))
      throw DefinitionError("function '" + function + "' of model '" + model.name() + "' has a result '" +
                            results[i].name +
                            "': the results after the sum over the targets and their count must be states that are "
                            "carried to the next batch, which have the name of an input");
  return {results[0].value, results[1].value};
}

NamedSizes loss_sizes(const Model& model, const std::string& function, const BatchArrays& batch) {
  const std::vector<std::string> carried = carried_names(model, function);
  const std::string of_function = "' of function '" + function + "' of model '" + model.name() + "'";
  for (const std::string& state : carried)
    if (batch.has(state))
      throw DefinitionError("input '" + state + of_function +
                            " is also a result and thus a carried state, but the data has an array of that name");
  const Signature& signature = model.signature(function);
  const auto takes = [&](const char* input) {
    return std::ranges::any_of(signature.inputs, [&](const FunctionInput& each) { return each.name == input; });
  };
  if (batch.has(packed_segments) && !takes(packed_segments))
    throw DefinitionError(
        "the rows of the data have several texts ('data.pack'), but function '" + function + "' of model '" +
        model.name() +
        "' takes no input 'segments', so that texts would see each other; packed_gpt2 and packed_llama "
        "are definitions that take it");
  const NamedSizes sizes = [&] {
    try {
      return model.sizes(function, batch, carried);
    } catch (const Error& error) {
      throw DefinitionError("the model does not fit the data: " + std::string(error.what()));
    }
  }();
  for (const FunctionInput& input : signature.inputs)
    for (const std::string& dim : input.dims)
      if (!sizes.has(dim) && contains(signature.sizes, dim))
        throw DefinitionError("input '" + input.name + of_function + " has a size '" + dim +
                              "', which no array of the data has");
  return sizes;
}

RecordedLoss record_loss(const Model& model, const std::string& function, Tape& tape, const NamedSizes& sizes,
                         RecordedLines* lines) {
  const NamedVars inputs = model.inputs(tape, function, sizes);
  RecordedLines own;
  RecordedLines& recorded = lines != nullptr ? *lines : own;
  NamedVars results = model.record(tape, function, inputs, &recorded);
  const Loss loss = loss_of(model, inputs, results, function);
  if (results.size() == 1) results = {{function, loss.sum}, {"rows", loss.count}};
  return {inputs, results, loss, carried_states(model, function, inputs, results), recorded.updates};
}

namespace {
void try_loss(const Model& model, const std::string& function, const BatchArrays& batch) {
  Tape tape(Mode::train);
  for (const auto& [name, input] : record_loss(model, function, tape, loss_sizes(model, function, batch)).inputs)
    if (const Array* array = batch.find(name); array != nullptr && array->shape() != input.shape())
      throw DefinitionError("the model does not fit the data: input '" + name + "' of function '" + function +
                            "' of model '" + model.name() + "' is " + to_string(input.type()) + ", the data has " +
                            to_string(array->shape()));
}
}  // namespace

void check_losses(const Model& model, const std::vector<std::string>& functions, const Batches& batches) {
  BatchArrays batch = batches.blank();
  const auto try_losses = [&] {
    for (const std::string& function : functions) try_loss(model, function, batch);
  };
  try_losses();
  const auto length = [](const Array& array) { return array.shape().size() > 1 ? array.shape()[1] : 0; };
  std::vector<std::int64_t> longest;
  for (const auto& field : batch) longest.push_back(length(field.value));
  const auto check_longer = [&] {
    bool longer = false;
    for (std::size_t i = 0; i < batch.size(); ++i) {  // the array of drawn rows comes last and exists only in training
      const std::int64_t columns = length(batch[i].value);
      longer = longer || columns > longest[i];
      longest[i] = std::max(longest[i], columns);
    }
    if (longer) try_losses();
  };
  for (std::int64_t index = 0; index < batches.epoch_batches(); ++index) {
    batches.training(static_cast<std::uint64_t>(index), batch);
    check_longer();
  }
  for (std::int64_t index = 0; index < batches.validation_batches(); ++index) {
    batches.validation(index, batch);
    check_longer();
  }
}

void check_labels(const Model& model, const std::string& loss, const BatchArrays& batch,
                  const std::vector<std::string>& labels) {
  const std::vector<std::string> functions = model.functions();
  if (labels.empty() || !contains(functions, "logits")) return;
  const NamedSizes known = loss_sizes(model, loss, batch);
  NamedSizes sizes;
  for (const std::string& name : model.signature("logits").sizes) {
    if (!known.has(name)) return;
    sizes.add(name, known.at(name));
  }
  Tape tape(Mode::eval);
  const Var logits = model.record(tape, "logits", model.inputs(tape, "logits", sizes))[0].value;
  const std::int64_t classes = logits.rank() == 0 ? 0 : logits.shape().back();
  if (classes < std::ssize(labels))
    throw DefinitionError("the data has " + std::to_string(labels.size()) +
                          " labels, but function 'logits' of model '" + model.name() + "' gives " +
                          to_string(logits.type()) + ": label '" + labels[static_cast<std::size_t>(classes)] +
                          "' has no logit. Take their number from the data: {\"from\": \"labels\"}");
}

}  // namespace xtape::train
