// Definitions with mistakes against what PyTorch's modules return: the line with the mistake is named.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "folders.hpp"
#include "source_root.hpp"
#include "xtape/inspect.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
using Hyper = std::vector<std::pair<std::string, std::string>>;

struct Mistake {
  std::string name;
  std::string file, right, wrong;  ///< A replacement in a file of `models`; none if `file` is empty.
  Hyper hyper;                     ///< Or a wrong hyper-parameter, or none.
  std::string at, line;            ///< The first array that differs; the file and a part of the line that is named.
  bool transposed = false;         ///< The mistake is a transposed weight, `at`.
};

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A copy of `models`, which may be changed.
class Models {
 public:
  Models() {
    std::filesystem::copy(source_root() + "/models", folder_.path(), std::filesystem::copy_options::recursive);
  }
  std::string path(const std::string& file) const { return folder_ / file; }
  void replace(const std::string& file, const std::string& right, const std::string& wrong) const {
    std::string text = read(path(file));
    const std::size_t at = text.rfind(right);
    REQUIRE(at != std::string::npos);
    folder_.write(file, text.replace(at, right.size(), wrong));
  }
  /// "gpt2.json, block 'attention', line 28" without the block: the number of the last line with this text.
  std::int64_t line_of(const std::string& file, const std::string& part) const {
    const std::string text = read(path(file));
    const std::size_t at = text.rfind(part);
    REQUIRE(at != std::string::npos);
    return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  }

 private:
  test::Folder folder_;
};

Array transposed(const Array& array) {
  Layout layout = Layout::dense(array.shape());
  std::swap(layout.shape[0], layout.shape[1]);
  std::swap(layout.strides[0], layout.strides[1]);
  return Array(ArrayView(array.data(), array.dtype(), layout));
}

/// PyTorch's LSTM has the weights of its input and of its states as one module.
Store with_our_names(const Store& reference) {
  const std::vector<std::pair<std::string, std::string>> names = {{"lstm.weight_ih_l0", "lstm.input.weight"},
                                                                  {"lstm.bias_ih_l0", "lstm.input.bias"},
                                                                  {"lstm.weight_hh_l0", "lstm.recurrent.weight"},
                                                                  {"lstm.bias_hh_l0", "lstm.recurrent.bias"}};
  Store renamed;
  for (const Store::Entry& entry : reference) {
    std::string name = entry.name;
    for (const auto& [theirs, ours] : names)
      if (const std::size_t at = name.find(theirs); at != std::string::npos) name.replace(at, theirs.size(), ours);
    renamed.add(name, Array(entry.value));
  }
  return renamed;
}

/// The function `loss` of a definition, with the weights of a reference.
struct Port {
  Model model;
  RecordedPlay play;
  NamedVars names;  ///< Of gradients and lines.
  RecordedLines lines;
  Store reference;
};
Port port_of(const std::string& definition, const Hyper& hyper, const std::string& fixture,
             const std::string& transposed_weight) {
  const std::string golden = source_root() + "/tests/golden/data/" + fixture;
  const Store reference = with_our_names(load_arrays(golden + "_modules.safetensors"));
  const Store inputs = load_arrays(golden + "_modules_inputs.safetensors");
  ModelOptions options;
  options.hyper = hyper;
  Model model = Model::load(definition, options);
  for (const Store::Entry& weight : model.weights()) {
    Array array(weight.value);
    const Array& theirs = *reference.find(weight.name);
    array.assign(weight.name == transposed_weight ? transposed(theirs) : Array(theirs));
  }
  Tape tape(Mode::train);
  const NamedVars fed = model.inputs(tape, "loss", {{"b", 2}, {"t", 6}});
  RecordedLines lines;
  const NamedVars results = model.record(tape, "loss", fed, &lines);
  RecordedPlay play{tape, {results[0].value}, inputs, {}};
  NamedVars outputs = lines.values;
  const NamedVars weights = model.weights(tape);
  Vars by;
  for (const auto& weight : weights) by.push_back(weight.value);
  const Vars gradients = grad(results[0].value, by, {.materialize_grads = true});
  for (std::size_t i = 0; i < by.size(); ++i) outputs.add("grad." + weights[i].name, gradients[i]);
  return {std::move(model), play, outputs, lines, reference};
}

/// Compares it with all of the reference, and with `more`.
ReferenceComparison compared(const std::string& definition, const Hyper& hyper, const std::string& fixture,
                             const std::string& transposed_weight, const Store& more = {}) {
  Port port = port_of(definition, hyper, fixture, transposed_weight);
  for (const Store::Entry& entry : more) port.reference.add(entry.name, Array(entry.value));
  return compare(port.play, port.names, port.reference, 1e-4, port.lines.applied);
}

const Hyper gpt2 = {{"vocab_size", "19"}, {"n_positions", "6"},    {"n_embd", "8"},       {"n_layer", "2"},
                    {"n_head", "2"},      {"dropout_rate", "0.0"}, {"activation", "gelu"}};

Hyper with(const Hyper& changed) {
  Hyper hyper = gpt2;
  for (const auto& [key, value] : changed) {
    const auto same = [&, key = key](const auto& each) { return each.first == key; };
    const auto found = std::find_if(hyper.begin(), hyper.end(), same);
    if (found == hyper.end())
      hyper.emplace_back(key, value);
    else
      found->second = value;
  }
  return hyper;
}

const std::vector<Mistake> mistakes = {
    {"transposed weight", "", "", "", {}, "h.1.attn.c_proj.weight", "", true},
    {"wrong epsilon", "", "", "", {{"epsilon", "1e-2"}}, "h.0.ln_1", "blocks/norm.json:layer_norm(x, weight, bias"},
    {"mask off by one",
     "gpt2.json",
     "mask = causal_mask(tokens)",
     "mask = positions(tokens)[none] > positions(tokens)[:, none] + 1",
     {},
     "h.0.attn.c_proj",
     "gpt2.json:mask = positions(tokens)"},
    {"missing scale", "", "", "", {{"scale_by_width", "false"}}, "h.0.attn.c_proj", "gpt2.json:scores = einsum"},
    {"tanh for exact GELU",
     "",
     "",
     "",
     {{"activation", "gelu_tanh"}},
     "h.0.mlp.act",
     "blocks/activation.json:\"gelu_tanh\""},
    {"bias dropped",
     "blocks/linear.json",
     "'... in, in out -> ... out', x, weight) + bias\"",
     "'... in, in out -> ... out', x, weight) + 0 * bias\"",
     {},
     "h.0.attn.c_attn",
     "blocks/linear.json:weight) + 0 * bias"},
    {"wrong order of heads",
     "gpt2.json",
     "'b t h d -> b t (h d)'",
     "'b t h d -> b t (d h)'",
     {},
     "h.0.attn.c_proj",
     "gpt2.json:b t h d -> b t (d h)"},
    {"positions not normalised",
     "gpt2.json",
     "wte(tokens) + wpe(",
     "wte(tokens) + 2 * wpe(",
     {},
     "h.0.ln_1",
     "gpt2.json:wte(tokens) + 2 * wpe("},
    {"dropout left on", "", "", "", {{"dropout_rate", "0.1"}}, "h.0.ln_1", "gpt2.json:x = h(dropout(x"},
};

/// Whether one of the calls is on the line that `line`, "FILE:TEXT", describes.
bool names_line(const Mismatch& found, const Models& models, const std::string& line) {
  const std::string file = line.substr(0, line.find(':')), part = line.substr(line.find(':') + 1);
  const std::string number = "line " + std::to_string(models.line_of(file, part)) + ")";
  return std::any_of(found.calls.begin(), found.calls.end(), [&](const std::string& call) {
    return call.find(file) != std::string::npos && call.find(number) != std::string::npos;
  });
}
}  // namespace

TEST_CASE("references: a right definition matches all that PyTorch's modules return, and all gradients") {
  const Models models;
  const ReferenceComparison found = compared(models.path("gpt2.json"), gpt2, "gpt2", "");
  for (const Mismatch& each : found.mismatched) MESSAGE(each.name << " differs by " << each.relative);
  CHECK(found.mismatched.empty());
  CHECK(found.unknown.empty());
  CHECK(found.matched.size() == 79);
}

TEST_CASE("references: the line of a mistake in porting is named") {
  for (const Mistake& mistake : mistakes) {
    CAPTURE(mistake.name);
    const Models models;
    if (!mistake.file.empty()) models.replace(mistake.file, mistake.right, mistake.wrong);
    const ReferenceComparison found =
        compared(models.path("gpt2.json"), with(mistake.hyper), "gpt2", mistake.transposed ? mistake.at : "");
    REQUIRE(!found.mismatched.empty());
    const Mismatch& first = found.mismatched[0];
    for (const std::string& call : first.calls) INFO(call);
    CHECK(first.name == mistake.at);
    CHECK(first.transposed == mistake.transposed);
    if (!mistake.line.empty()) CHECK(names_line(first, models, mistake.line));
    CHECK(first.calls.size() <= 40);
  }
}

TEST_CASE("references: swapped gates inside a scan are named") {
  const Models models;
  const std::string definition = R"json({
    "xtape": 2, "name": "small", "use": ["blocks/linear.json", "blocks/recurrent.json"],
    "hyper": {"order": "'i_f_g_o'"},
    "model": {
      "modules": {
        "embedding": {"block": "embedding", "rows": 19, "width": 8},
        "lstm": {"block": "lstm_cell", "in": 8, "units": 8, "pass": ["order"]},
        "output": {"block": "linear", "in": 8, "out": 19}
      },
      "functions": {
        "loss": {
          "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"},
          "do": [
            "y, h, c = scan(lstm, lstm.input(embedding(tokens)), init=(zeros((b, 8)), zeros((b, 8))))",
            "total, count = cross_entropy(output(y), targets, ignore=-1)"
          ],
          "result": "total, count"
        }
      }
    }
  })json";
  std::ofstream(models.path("small.json")) << definition;
  CHECK(compared(models.path("small.json"), {}, "lstm", "").mismatched.empty());
  const ReferenceComparison found = compared(models.path("small.json"), {{"order", "'i_g_f_o'"}}, "lstm", "");
  REQUIRE(!found.mismatched.empty());
  CHECK(found.mismatched[0].name == "lstm");
  CHECK(names_line(found.mismatched[0], models, "small.json:scan(lstm"));
  CHECK(names_line(found.mismatched[0], models, "blocks/recurrent.json:c = sigmoid(f + forget_bias)"));
}

TEST_CASE("references: mistakes between modules are on the lines that apply them") {
  const std::string right = "x = x + attn(ln_1(x), mask)";
  for (const char* wrong :
       {"x = ln_1(x + attn(x, mask))", "x = attn(ln_1(x), mask)", "x = x + attn(stop_gradient(ln_1(x)), mask)"}) {
    CAPTURE(wrong);
    const Models models;
    models.replace("gpt2.json", right, wrong);
    const ReferenceComparison found = compared(models.path("gpt2.json"), gpt2, "gpt2", "");
    REQUIRE(!found.mismatched.empty());
    const Mismatch& first = found.mismatched[0];
    CAPTURE(first.name);
    const std::string line = "block 'layer' (module h.";
    const std::string number = "line " + std::to_string(models.line_of("gpt2.json", wrong));
    CHECK(std::any_of(first.applied.begin(), first.applied.end(), [&](const std::string& each) {
      return each.find(line) != std::string::npos && each.ends_with(number);
    }));
    CHECK(first.applied.size() <= 6);
  }
}

TEST_CASE("references: an array that is named like a line narrows the mistake to this line") {
  const Models models;
  Port right = port_of(models.path("gpt2.json"), gpt2, "gpt2", "");
  Store more;
  for (const char* name : {"h.0.attn.query", "h.0.attn.key", "h.0.attn.scores"}) {
    RecordedPlay play = right.play;
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < play.tape.size(); ++i)
      if (const Array* array = play.inputs.find(play.tape.node(i).name))
        feeds.emplace_back(play.tape.var({static_cast<std::int32_t>(i), 0}), *array);
    more.add(name, evaluate(right.lines.values.at(name), feeds));
  }
  CHECK(compared(models.path("gpt2.json"), gpt2, "gpt2", "", more).mismatched.empty());
  const ReferenceComparison found =
      compared(models.path("gpt2.json"), with({{"scale_by_width", "false"}}), "gpt2", "", more);
  REQUIRE(!found.mismatched.empty());
  CHECK(found.mismatched[0].name == "h.0.attn.scores");
  REQUIRE(found.mismatched[0].calls.size() == 1);
  CHECK(names_line(found.mismatched[0], models, "gpt2.json:scores = einsum"));
}
