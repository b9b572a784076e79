// The project's models in ONNX files: every function of every definition, and a step of decoding with its caches.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "round_trip.hpp"
#include "source_root.hpp"
#include "xtape/loops.hpp"
#include "xtape/model.hpp"
#include "xtape/op/op.hpp"
#include "xtape/scan.hpp"

using namespace xtape;

namespace {
using HyperTexts = std::vector<std::pair<std::string, std::string>>;

struct Small {
  std::string definition;
  HyperTexts hyper;
};

const std::vector<Small>& small_models() {
  static const std::vector<Small> models = {
      {"gpt2", {{"vocab_size", "11"}, {"n_positions", "8"}, {"n_embd", "12"}, {"n_layer", "2"}, {"n_head", "3"}}},
      {"llama",
       {{"vocab_size", "11"},
        {"d_model", "12"},
        {"d_ff", "16"},
        {"layers", "2"},
        {"heads", "3"},
        {"key_value_heads", "1"}}},
      {"gpt_neox",
       {{"vocab_size", "11"},
        {"d_model", "16"},
        {"d_ff", "12"},
        {"layers", "2"},
        {"heads", "2"},
        {"rotary_part", "0.5"}}},
      {"phi",
       {{"vocab_size", "11"},
        {"d_model", "16"},
        {"d_ff", "12"},
        {"layers", "2"},
        {"heads", "2"},
        {"key_value_heads", "1"}}},
      {"opt",
       {{"vocab_size", "11"}, {"d_model", "12"}, {"d_ff", "16"}, {"layers", "2"}, {"heads", "3"}, {"word_width", "6"}}},
      {"mixtral",
       {{"vocab_size", "11"},
        {"d_model", "12"},
        {"d_ff", "6"},
        {"layers", "1"},
        {"heads", "2"},
        {"key_value_heads", "1"},
        {"num_experts", "4"}}},
      {"bert", {{"vocab_size", "11"}, {"d_model", "12"}, {"d_ff", "16"}, {"layers", "2"}, {"heads", "3"}}},
      {"bert_words", {{"vocab_size", "11"}, {"d_model", "12"}, {"d_ff", "16"}, {"layers", "2"}, {"heads", "3"}}},
      {"t5",
       {{"vocab_size", "11"},
        {"d_model", "12"},
        {"d_ff", "16"},
        {"heads", "3"},
        {"d_kv", "4"},
        {"encoder_layers", "2"}}},
      {"transformer",
       {{"source_vocab_size", "11"},
        {"d_model", "12"},
        {"d_ff", "16"},
        {"heads", "3"},
        {"encoder_layers", "2"},
        {"decoder_layers", "2"}}},
      {"transformer_lm", {{"vocab_size", "11"}, {"d_model", "12"}, {"d_ff", "16"}, {"layers", "2"}, {"heads", "3"}}},
      {"lstm_lm", {{"vocab_size", "11"}, {"width", "6"}}},
      {"gru_attention", {{"source_vocab_size", "11"}, {"embedding_dim", "6"}, {"units", "5"}, {"directions", "2"}}},
      {"lstm_attention", {{"source_vocab_size", "11"}, {"width", "8"}, {"heads", "2"}}},
      {"resnet", {{"height", "8"}, {"width", "8"}, {"blocks", "1"}, {"filters", "4"}}},
      {"image_cnn", {{"classes", "3"}, {"filters", "4"}}},
      {"vit", {{"height", "8"}, {"patch_height", "4"}, {"d_model", "12"}, {"layers", "2"}, {"heads", "3"}}},
      {"mlp", {{"in", "5"}, {"width", "6"}}},
      {"mlp_classifier", {{"in", "5"}, {"width", "6"}, {"out", "3"}}},
      {"text_cnn", {{"vocab_size", "11"}, {"classes", "3"}, {"width", "6"}, {"filters", "4"}}},
      {"text_classifier", {{"vocab_size", "11"}, {"classes", "3"}, {"width", "6"}}}};
  return models;
}

Model load(const Small& small) {
  ModelOptions options;
  options.seed = 3;
  options.hyper = {small.hyper.begin(), small.hyper.end()};
  return Model::load(source_root() + "/models/" + small.definition + ".json", options);
}
SavedTape recorded(const Model& model, const std::string& function, const NamedSizes& sizes) {
  SavedTape made{Tape(Mode::eval), {}, {}, {}};
  made.inputs = model.inputs(made.tape, function, sizes);
  for (const auto& [name, var] : model.record(made.tape, function, made.inputs))
    made.outputs.add(made.inputs.has(name) ? name + ".next" : name, var);  // a state may have one name before and after
  return made;
}
}  // namespace

TEST_CASE("every function of every definition is written and read back") {
  const round_trip::Folder folder;
  int functions = 0;
  for (const Small& small : small_models()) {
    const Model model = load(small);
    for (const std::string& function : model.functions()) {
      CAPTURE(small.definition);
      CAPTURE(function);
      NamedSizes sizes;
      for (const std::string& size : model.signature(function).sizes)
        sizes.add(size, size == "b" ? 2 : size == "s" ? 5 : 4);
      const SavedTape saved = recorded(model, function, sizes);
      const auto& [tape, inputs, parameters, outputs] = saved;
      CHECK(folder.part_of_largest(small.definition + "_" + function, inputs, outputs) < 1e-5);
      // The parameters of the tape are the weights of the file, and no others.
      std::set<std::string> weights;
      for (std::size_t i = 0; i < tape.size(); ++i)
        if (tape.node(i).op->name == "parameter") weights.insert(tape.node(i).name);
      const auto written = open_onnx(folder.path(small.definition + "_" + function)).weights().names();
      for (const std::string& name : written) CHECK(weights.count(name) == 1);
      if (function == "logits") CHECK(written.size() == weights.size());
      ++functions;
    }
  }
  CHECK(functions > 30);
}

TEST_CASE("functions of every definition are files with open sizes, which play arrays of other sizes") {
  const round_trip::Folder folder;
  int played = 0;
  for (const Small& small : small_models()) {
    const Model model = load(small);
    for (const char* function : {"logits", "predict", "encode", "decode"}) {
      const std::vector<std::string> functions = model.functions();
      if (std::find(functions.begin(), functions.end(), function) == functions.end()) continue;
      const std::string name = small.definition + "_" + function + "_open";
      CAPTURE(name);
      const std::vector<std::string>& open = model.signature(function).sizes;
      save_onnx(folder.path(name), open, [&](const NamedSizes& sizes) { return recorded(model, function, sizes); });
      NamedSizes sizes;
      for (const std::string& size : open) sizes.add(size, size == "b" ? 1 : size == "s" ? 2 : 8);
      const SavedTape now = recorded(model, function, sizes);
      CHECK(folder.part_of_file(name, now.inputs, now.outputs) < 1e-5);
      ++played;
    }
  }
  CHECK(played > 16);
}

TEST_CASE("a step of decoding has its caches as inputs and outputs, for any batch") {
  const round_trip::Folder folder;
  const Model model = load(small_models()[0]);
  for (const std::int64_t steps : {1, 3}) {
    const auto step = [&](const NamedSizes& sizes) {
      SavedTape made{Tape(Mode::predict), {}, {}, {}};
      const std::int64_t b = sizes.at("b");
      made.inputs = model.inputs(made.tape, "logits", {{"b", b}, {"t", steps}});
      const Var past = made.tape.input("past", {b}, Dtype::int64);
      made.tape.set_past(made.inputs[0].value, past, 6);
      made.outputs = model.record(made.tape, "logits", made.inputs);
      made.inputs.add("past", past);
      for (const Carry& state : made.tape.states()) {
        made.inputs.add("cache." + std::to_string(made.inputs.size() - 2), state.input);
        made.outputs.add("next." + std::to_string(made.outputs.size() - 1), state.output);
      }
      return made;
    };
    const SavedTape two = step({{"b", 2}});
    CHECK(two.inputs.size() == 2 + 2 * 2);  // keys and values of two layers
    const std::string name = "gpt2_step_" + std::to_string(steps);
    CHECK(folder.part_of_largest(name, two.inputs, two.outputs) < 1e-5);
    save_onnx(folder.path(name + "_open"), {"b"}, step);
    CHECK(folder.part_of_file(name + "_open", two.inputs, two.outputs) < 1e-5);
  }
}

TEST_CASE("caches in blocks have no place in a file") {
  const round_trip::Folder folder;
  Tape tape(Mode::predict);
  const Var x = tape.input("x", {1, 1, 32}), past = tape.input("past", {1}, Dtype::int64);
  tape.set_past(x, past, 4, Dtype::q8_0);
  const Var y = cache(x, 1);
  const Carry state = tape.states()[0];
  const std::string path = folder.path("blocks");
  CHECK_THROWS_WITH_AS(
      save_onnx(path, {{"y", y}, {"next", state.output}}),
      doctest::Contains("'cache 0' is Q8_0 (1, 4, 32), and values of ONNX files have no blocks: record "
                        "caches as float32"),
      DtypeError);
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("scans run forwards and backwards, along any axis, as long as a condition holds, and without sequences") {
  const round_trip::Folder folder;
  for (const bool reverse : {false, true}) {
    Tape tape(Mode::eval);
    const Var x = tape.input("x", {2, 5, 3}), w = tape.input("w", {3, 3}), h = tape.input("h", {2, 3}),
              valid = tape.input("valid", {2, 5}, Dtype::boolean);
    ScanOptions options;
    options.axis = 1;
    options.reverse = reverse;
    options.valid = valid;
    const Scanned done = scan(
        [&](const Vars& slices, const Vars& states) -> std::pair<Vars, Vars> {
          const Var next = tanh(slices[0] + matmul(states[0], w));
          return {{next * next, next > 0.5}, {next}};
        },
        {x}, {h}, options);
    const NamedVars outputs = {{"y", done.outputs[0]}, {"large", done.outputs[1]}, {"last", done.states[0]}};
    CHECK(folder.part_of_largest(reverse ? "scan_reverse" : "scan", {{"x", x}, {"w", w}, {"h", h}, {"valid", valid}},
                                 outputs) < 1e-5);
  }
  Tape tape(Mode::eval);
  const Var x = tape.input("x", {3});
  const Looped doubled = while_loop([](const Vars& s) { return sum(s[0]) < 20; },
                                    [](const Vars& s) -> Vars { return {s[0] * 2}; }, {x}, 6);
  CHECK(folder.part_of_largest("while_loop", {{"x", x}}, {{"y", doubled.states[0]}, {"steps", doubled.steps}}) < 1e-5);
}
