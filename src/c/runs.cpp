// Runs, and texts that models continue.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/messages/wording.hpp"
#include "c/models.hpp"
#include "train/recipe/recipe_parts.hpp"
#include "train/run/metrics.hpp"
#include "xtape/decode.hpp"
#include "xtape/text.hpp"

namespace xtape::c {

std::int64_t RunObject::context() {
  return run.recipe().data.has_tokens() ? run.columns() : DefinedModel::context();
}

namespace {
Recipe recipe_of(const std::string& source, const std::vector<Setting>& settings) {
  if (!is_json_text(source)) return Recipe::load(source, settings);
  return train::recipe_of_text(source, std::filesystem::absolute("recipe").string(), settings);
}

/// Reads the option "prompt", a list of tokens.
Tokens read_tokens(Options& options) {
  Tokens tokens;
  const Json& list = options->value("prompt");
  if (!list.is_array()) options->fail("", "must have the tokens to continue as 'prompt', as there is no text");
  for (const Json& token : list) {
    if (!token.is_number_integer() || token < 0 || token > INT32_MAX) options->fail("prompt", "must have tokens");
    tokens.push_back(token.get<std::int32_t>());
  }
  return tokens;
}

void read_sampling(Options& options, GenerateOptions& generating) {
  options->read("tokens", generating.tokens);
  options->read("context", generating.context, {.low = 1});
  options->read("temperature", generating.sampling.temperature);
  options->read("top_k", generating.sampling.top_k);
  options->read("top_p", generating.sampling.top_p);
  options->read("seed", generating.sampling.seed);
}

using Each = int32_t (*)(void*, int32_t, const char*);

void continue_text(DefinedModel& model, const std::string& text, GenerateOptions& generating, Each each,
                   void* context) {
  const Tokens tokens = model.prompt(text);
  if (tokens.empty()) throw Error("the prompt is empty: there is nothing to continue");
  generating.end_tokens = model.end_tokens();
  TextStream stream(model.tokenizer(), tokens.back());
  std::int32_t last = 0;
  bool stopped = false;
  generating.each = [&](std::int32_t token) {
    last = token;
    const std::string more = contains(generating.end_tokens, token) ? "" : stream.add(token);
    stopped = each(context, token, more.c_str()) != 0;
    return stopped;
  };
  generate(model.model(), tokens, generating);
  const std::string rest = stream.finish();
  if (!stopped && !rest.empty()) each(context, last, rest.c_str());
}
}  // namespace
}  // namespace xtape::c

using namespace xtape::c;

xtape_status xtape_generate(xtape_model* model, const char* prompt, const char* options,
                            int32_t (*each)(void* context, int32_t token, const char* text), void* context) noexcept {
  return guarded("xtape_generate", [&] {
    if (each == nullptr) throw xtape::Error("'each' is null");
    const Used<DefinedModel> object = use<DefinedModel>(model, "model");
    Options given(options);
    xtape::GenerateOptions generating;
    generating.context = object->context();
    generating.sampling = object->sampling();
    read_sampling(given, generating);
    const xtape::Tokens tokens = prompt == nullptr ? read_tokens(given) : xtape::Tokens();
    given.done();
    if (prompt != nullptr) return continue_text(*object, text_of(prompt, "prompt"), generating, each, context);
    generating.each = [&](std::int32_t token) { return each(context, token, "") != 0; };
    generate(object->model(), tokens, generating);
  });
}

xtape_status xtape_run_new(const char* recipe, const char* settings, const char* folder, xtape_model** run) noexcept {
  return guarded("xtape_run_new", [&] {
    require(run, "run");
    const std::vector<xtape::Setting> given = settings_of(json_object(settings, "settings"));
    const xtape::Recipe made = recipe_of(text_of(recipe, "recipe"), given);
    give(run, std::make_shared<RunObject>(xtape::Run::create(made, text_of(folder, "folder"))));
  });
}

xtape_status xtape_train(xtape_model* run, int32_t (*each)(void* context, int64_t update, double loss), void* context,
                         int32_t* finished) noexcept {
  return guarded("xtape_train", [&] {
    const Used<RunObject> object = use<RunObject>(run, "run");
    bool asked = false;
    xtape::Trainer::Callbacks callbacks;
    callbacks.step = [&](const xtape::StepReport& report) {
      if (each != nullptr) asked = each(context, report.step, report.loss) != 0;
    };
    callbacks.stop = [&] { return asked; };
    const bool complete = object->run.train(callbacks);
    if (finished != nullptr) *finished = complete ? 1 : 0;
  });
}

xtape_status xtape_evaluate(xtape_model* run, const char** json) noexcept {
  return guarded("xtape_evaluate", [&] {
    require(json, "json");
    *json = returned(xtape::train::json_of(use<RunObject>(run, "run")->run.evaluate()));
  });
}
