// Functions of models, saved and loaded: the same bits on other numbers of threads, in every mode, with gradients that
// are recorded before and after.
#include <doctest/doctest.h>

#include <cstring>

#include "folders.hpp"
#include "recurrent_models.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

namespace {
struct Case {
  std::string name;
  Model model;
  std::string function;
  NamedSizes sizes;
};

Model model_of(const std::string& name, std::vector<std::pair<std::string, std::string>> hyper) {
  ModelOptions options;
  options.seed = 5;
  options.hyper = std::move(hyper);
  return Model::load(source_root() + "/models/" + name + ".json", options);
}

/// Arrays for inputs: small token numbers, or true.
std::vector<Array> arrays_for(const NamedVars& inputs) {
  std::vector<Array> arrays;
  for (const auto& [name, var] : inputs) {
    Array& array = arrays.emplace_back(var.dtype(), var.shape());
    for (std::int64_t i = 0; i < array.count(); ++i) switch (var.dtype()) {
        case Dtype::int64:
          array.as<std::int64_t>()[i] = 3 + (i * i + 5 * i) % 7;
          break;
        case Dtype::boolean:
          array.as<bool>()[i] = true;
          break;
        default:
          array.as<float>()[i] = 0.125f * static_cast<float>(i % 11 - 5);
      }
  }
  return arrays;
}

/// The bytes of the outputs, and of the states, after two plays.
std::string played(const Tape& tape, const NamedVars& inputs, const Vars& outputs, int threads) {
  PlayerOptions options;
  options.threads = threads;
  options.seed = 9;
  options.carries = tape.states();
  Player player(tape, outputs, options);
  NamedVars fed;
  for (const auto& [name, var] : inputs) {
    const auto carried = [&, input = var](const Carry& state) { return state.input.id() == input.id(); };
    if (std::none_of(options.carries.begin(), options.carries.end(), carried)) fed.add(name, var);
  }
  const std::vector<Array> arrays = arrays_for(fed);
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < arrays.size(); ++i) feeds.emplace_back(fed[i].value, arrays[i]);
  std::string bytes;
  const auto add = [&](const Var& var) {
    const Array array(player.view(var));
    bytes.append(static_cast<const char*>(array.data()), array.bytes());
  };
  for (const std::uint64_t step : {4, 5}) {
    player.play(feeds, step);
    for (const Var& output : outputs) add(output);
    for (const Carry& state : options.carries) add(state.output);
  }
  return bytes;
}

Vars values(const NamedVars& vars) {
  Vars all;
  for (const auto& each : vars) all.push_back(each.value);
  return all;
}

void check_saved(const Tape& tape, const NamedVars& outputs) {
  const test::Folder folder;
  tape.save(folder / "tape", outputs);
  const SavedTape saved = Tape::load(folder / "tape");
  NamedVars inputs;
  for (const auto& [name, var] : saved.inputs) inputs.add(name, tape.var(var.id()));
  const std::string truth = played(tape, inputs, values(outputs), 1);
  for (const int threads : {1, 3}) CHECK(played(saved.tape, saved.inputs, values(saved.outputs), threads) == truth);
}
}  // namespace

TEST_CASE("losses in mode train, with dropout and scans; gradients before and after saving") {
  const std::vector<std::pair<std::string, std::string>> gpt2 = {
      {"vocab_size", "11"}, {"n_positions", "8"}, {"n_embd", "12"}, {"n_layer", "2"}, {"n_head", "3"}};
  const std::vector<std::pair<std::string, std::string>> transformer = {{"source_vocab_size", "13"},
                                                                        {"target_vocab_size", "11"},
                                                                        {"d_model", "8"},
                                                                        {"heads", "2"},
                                                                        {"d_ff", "12"},
                                                                        {"shared_embeddings", "false"},
                                                                        {"encoder_layers", "1"},
                                                                        {"decoder_layers", "2"}};
  std::vector<Case> cases;
  cases.push_back({"gpt2", model_of("gpt2", gpt2), "loss", {{"b", 2}, {"t", 6}}});
  cases.push_back({"transformer", model_of("transformer", transformer), "loss", {{"b", 2}, {"s", 4}, {"t", 5}}});
  cases.push_back({"lstm_lm", test::load_variant({"lstm_lm", {}}, Dtype::float32), "loss", {{"b", 2}, {"t", 5}}});
  cases.push_back({"gru_attention",
                   test::load_variant({"gru_attention", {{"directions", "2"}}}, Dtype::float32),
                   "loss",
                   {{"b", 2}, {"s", 4}, {"t", 5}}});
  for (Case& each : cases) {
    CAPTURE(each.name);
    Tape tape;
    const NamedVars inputs = each.model.inputs(tape, each.function, each.sizes);
    const NamedVars results = each.model.record(tape, each.function, inputs);
    NamedVars outputs{{"loss", results[0].value}};
    const test::Folder folder;
    tape.save(folder / "tape", outputs);  // without gradients
    SavedTape saved = Tape::load(folder / "tape");
    const NamedVars weights = each.model.weights(tape);
    Vars of_saved;
    for (const auto& [name, var] : weights)
      if (saved.parameters.has(name)) of_saved.push_back(saved.parameters.at(name));
    REQUIRE(of_saved.size() == weights.size());
    const Vars gradients = grad(sum(results[0].value), values(weights), {.materialize_grads = true});
    for (std::size_t i = 0; i < gradients.size(); ++i) outputs.add("grad." + weights[i].name, gradients[i]);
    check_saved(tape, outputs);
    Vars after{saved.outputs[0].value};
    for (const Var& gradient : grad(sum(saved.outputs[0].value), of_saved, {.materialize_grads = true}))
      after.push_back(gradient);
    CHECK(played(saved.tape, saved.inputs, after, 2) == played(tape, inputs, values(outputs), 1));
  }
}

TEST_CASE("logits in mode predict with a past: caches go on from play to play") {
  for (const test::Variant& variant : test::language_models) {
    CAPTURE(variant.definition);
    const Model model = test::load_variant(variant, Dtype::float32);
    Tape tape(Mode::predict);
    const NamedVars inputs = model.inputs(tape, "logits", {{"b", 2}, {"t", 3}});
    tape.set_past(inputs.at("tokens"), tape.input("past", {2}, Dtype::int64), 16);
    const NamedVars results = model.record(tape, "logits", inputs);
    REQUIRE(!tape.states().empty());
    check_saved(tape, results);
  }
}
