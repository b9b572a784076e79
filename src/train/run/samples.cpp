#include "train/run/samples.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/arrays/visit.hpp"
#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "train/predict/predict.hpp"
#include "train/trainer/carried.hpp"
#include "xtape/init.hpp"

namespace xtape::train {

namespace {
/// Returns what the function reads: the first rows of the validation split, and random numbers.
Store inputs_of(const Model& model, const Recipe& recipe, const Batches& batches) {
  const std::string& function = recipe.samples.function;
  BatchArrays batch = batches.blank();
  batches.validation(0, batch);
  const Signature& signature = model.signature(function);
  Store given;
  std::vector<std::string> missing;
  for (const FunctionInput& input : signature.inputs) {
    if (const Array* array = batch.find(input.name))
      given.add(input.name, part_of(*array, 0, 0, std::min(recipe.samples.rows, array->shape()[0])));
    else if (is_floating(input.dtype))
      missing.push_back(input.name);
    else
      throw Error("'samples.function': '" + function + "' reads '" + input.name +
                  "', integers that the data does not have");
  }
  NamedSizes sizes = model.sizes(function, given, missing);
  for (const std::string& size : signature.sizes)
    if (!sizes.has(size)) sizes.add(size, recipe.samples.rows);
  Tape tape(Mode::eval);
  for (const auto& [name, var] : model.inputs(tape, function, sizes)) {
    if (!contains(missing, name)) continue;
    Array drawn(var.dtype(), var.shape());
    initialise(drawn, init::normal(), recipe.trainer.seed, "samples." + name);
    given.add(name, drawn);
  }
  return given;
}

/// Returns the elements as nested lists, from `*element` on.
template <class T>
Json nested(const Shape& shape, std::size_t axis, const T*& element) {
  if (axis == shape.size()) {
    if constexpr (std::is_same_v<T, bool> || std::is_integral_v<T>)
      return *element++;
    else
      return static_cast<double>(*element++);
  }
  Json list = Json::array();
  for (std::int64_t i = 0; i < shape[axis]; ++i) list.push_back(nested(shape, axis + 1, element));
  return list;
}

/// Returns the line. Bytes of generated text that are not UTF-8 become U+FFFD.
std::string text_of(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string results_line(Run& run, std::int64_t step) {
  const std::string& function = run.recipe().samples.function;
  Json results = Json::object();
  for (const Store::Entry& each : run.model().play(function, inputs_of(run.model(), run.recipe(), run.batches())))
    visit_elements(each.value,
                   [&](const auto* element) { results[each.name] = nested(each.value.shape(), 0, element); });
  return text_of({{"step", step}, {"function", function}, {"results", results}});
}

std::vector<std::string> continued(Run& run, const std::vector<std::string>& texts) {
  const Recipe::Samples& samples = run.recipe().samples;
  GenerateOptions options;
  options.tokens = samples.tokens;
  options.context = run.columns();
  options.end_tokens = run.end_tokens();
  options.sampling = samples.sampling;
  options.sampling.seed = run.recipe().trainer.seed;
  std::vector<Tokens> prompts;
  for (const std::string& text : texts) prompts.push_back(run.prompt(text));
  std::vector<std::string> made;
  for (const Tokens& tokens : generate_batch(run.model(), prompts, options)) {
    TextStream stream(run.tokenizer(), prompts[made.size()].back());
    std::string text;
    for (const std::int32_t token : tokens)
      if (!contains(options.end_tokens, token)) text += stream.add(token);
    made.push_back(text + stream.finish());
  }
  return made;
}

std::vector<std::string> translated(Run& run, const std::vector<std::string>& texts) {
  std::vector<std::string> made;
  for (const Translation& each : run.translate(texts, run.recipe().search))
    made.push_back(each.candidates.empty() ? "" : each.candidates[0].text);
  return made;
}
}  // namespace

void check_samples(const Model& model, const Recipe& recipe, const Tokenizers& tokenizers, const Batches& batches) {
  const Recipe::Samples& samples = recipe.samples;
  if (!samples.function.empty()) {
    const Store arrays = inputs_of(model, recipe, batches);
    Tape tape(Mode::eval);
    model.record(tape, samples.function, model.inputs(tape, samples.function, model.sizes(samples.function, arrays)));
  }
  if (samples.prompts.empty()) return;
  if (!tokenizers.target) throw Error("'samples.prompts' need a tokenizer, which the recipe does not have");
  const bool translates = reads(model, "logits", "source");
  if (translates)
    check_translates(model, *tokenizers.target);
  else
    check_continues(model, *tokenizers.target);
  for (const std::string& text : samples.prompts) try {
      if (translates)
        tokenizers.source->encode(text);
      else if (prompt_tokens(recipe, *tokenizers.target, text).empty())
        throw Error("it has no tokens to continue");
    } catch (const Error& error) {
      throw Error("'samples.prompts', \"" + text + "\": " + error.what());
    }
}

std::vector<std::string> samples_of(Run& run, std::int64_t step) {
  const Recipe::Samples& samples = run.recipe().samples;
  std::vector<std::string> lines;
  if (!samples.prompts.empty()) {
    const std::vector<std::string> made =
        reads(run.model(), "logits", "source") ? translated(run, samples.prompts) : continued(run, samples.prompts);
    for (std::size_t i = 0; i < made.size(); ++i)
      lines.push_back(text_of({{"step", step}, {"prompt", samples.prompts[i]}, {"text", made[i]}}));
  }
  if (!samples.function.empty()) lines.push_back(results_line(run, step));
  return lines;
}

}  // namespace xtape::train
