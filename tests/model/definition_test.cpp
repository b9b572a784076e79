// What the structure of a definition means: parts, weights, repeats, given parts, functions, files.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "definitions.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::error_of;
using xtape::test::in_float64;
using xtape::test::item;
using xtape::test::play;
using xtape::test::same;
using Array2 = xt::xarray<double>;
using Table = xt::xtensor<double, 2>;

namespace {
const Array2 x = Table{{1, 2}, {3, 4}};

std::vector<Array2> played(const Model& model, const std::string& function = "f", Mode mode = Mode::eval) {
  return play(model, function, {{"b", 2}, {"t", 2}}, {ArrayView(x)}, mode);
}

std::string definition(const std::string& blocks, const std::string& parts, const std::string& functions,
                       const std::string& hyper = "") {
  return "{\"xtape\": 2, \"name\": \"small\", \"hyper\": {" + hyper + "}, \"blocks\": {" + blocks +
         "}, \"model\": {\"modules\": {" + parts + "}, \"functions\": {" + functions + "}}}";
}

std::string function(const std::string& name, const std::string& result) {
  return "\"" + name + "\": {\"inputs\": {\"x\": \"float [b, t]\"}, \"result\": \"" + result + "\"}";
}

/// y = x * w + bias, with constants for weights.
const std::string scale =
    R"("scale": {"hyper": {"by": 2, "with_bias": false},
      "weights": {"w": {"shape": [1], "init": "constant", "value": "by"},
                  "bias": {"shape": [1], "init": "ones", "when": "with_bias"}},
      "inputs": ["x"], "result": "x * w + bias"})";

std::vector<std::string> weight_names(const Model& model) {
  std::vector<std::string> names;
  for (const Store::Entry& entry : model.weights()) names.push_back(entry.name);
  return names;
}
}  // namespace

TEST_CASE("a weight that is left out leaves the line readable") {
  const auto with = [&](const std::string& bias) {
    return Model::parse(definition(scale, "\"p\": {\"block\": \"scale\", \"by\": 3, \"with_bias\": " + bias + "}",
                                   function("f", "p(x)")),
                        in_float64());
  };
  CHECK(weight_names(with("true")) == std::vector<std::string>{"p.w", "p.bias"});
  CHECK(same(played(with("true"))[0], 3. * x + 1.));
  CHECK(weight_names(with("false")) == std::vector<std::string>{"p.w"});
  CHECK(same(played(with("false"))[0], 3. * x));
}

TEST_CASE("a repeated module threads its first argument; .all gives every result, [i] one of them") {
  const std::string parts = R"("p": {"block": "scale", "by": "index + 2", "repeat": "n"})";
  const Model model =
      Model::parse(definition(scale, parts,
                              function("f", "p(x)") + "," + function("every", "stack(p.all(x), axis=0)") + "," +
                                  function("one", "p[1](x) + p[-1].w"),
                              "\"n\": 3"),
                   in_float64());
  CHECK(weight_names(model) == std::vector<std::string>{"p.0.w", "p.1.w", "p.2.w"});
  CHECK(same(played(model)[0], 24. * x));
  const Array2 every = played(model, "every")[0];
  REQUIRE(every.shape() == Array2::shape_type{3, 2, 2});
  CHECK(every(0, 1, 1) == 8);
  CHECK(every(1, 1, 1) == 24);
  CHECK(every(2, 1, 1) == 96);
  CHECK(same(played(model, "one")[0], 3. * x + 4.));
}

TEST_CASE("a module that repeats 0 times passes its first argument on, and -1 times is an error") {
  const auto with = [&](const std::string& count) {
    return Model::parse(
        definition(scale, R"("p": {"block": "scale", "repeat": "n"})", function("f", "p(x)"), "\"n\": " + count),
        in_float64());
  };
  CHECK(with("0").weights().size() == 0);
  CHECK(same(played(with("0"))[0], x));
  CHECK_THROWS_WITH_AS(with("-1"), doctest::Contains("a module repeats 0 or more times, not -1"), DefinitionError);
}

TEST_CASE("what a part's line assigned can be looked at where the part was applied, of every repeat at once too") {
  const std::string blocks = scale + R"-(,
    "layer": {"hyper": {"first": null}, "modules": {"s": {"block": "scale"}, "t": {"block": "twice", "when": "not first"}},
              "inputs": ["x"], "do": ["y = s(x) + 1"], "result": "t(y)"},
    "twice": {"inputs": ["x"], "do": ["y = x * 2"], "result": "y"})-";
  const std::string parts = R"("h": {"block": "layer", "repeat": 3, "first": "index == 0"},
                               "c": {"block": "twice", "checkpoint": true})";
  const auto model = [&](const std::string& line, const std::string& result) {
    const std::string looks =
        R"-("f": {"inputs": {"x": "float [b, t]"}, "do": [")-" + line + R"-("], "result": ")-" + result + R"-("})-";
    return Model::parse(definition(blocks, parts, looks + ", " + function("g", "c(h(x))")), in_float64());
  };
  const auto f = [&](const std::string& line, const std::string& result) { return played(model(line, result))[0]; };
  CHECK(same(f("x = h(x)", "h[0].y"), 2. * x + 1.));
  CHECK(same(f("x = h(x)", "h[1].t.y"), 2. * (2. * (2. * x + 1.) + 1.)));
  const Array2 every = f("x = h(x)", "stack(h.all.y)");
  REQUIRE(every.shape() == Array2::shape_type{3, 2, 2});
  CHECK(same(item(every, 0), 2. * x + 1.));
  CHECK(same(item(every, 2), 2. * (2. * (2. * (2. * x + 1.) + 1.)) + 1.));
  CHECK(f("x = h(x)", "stack(h.all.t.y)").shape() == Array2::shape_type{2, 2, 2});                // the first has no t
  CHECK(same(f("x = h(h(x))", "h[0].y - h[2].t.y * 0"), f("x = h(x)", "h[0].s(h[2].t.y) + 1")));  // the last time
  CHECK(f("x = x + 0", "stack(h.all.s.w)  + 0 * h(x)[0, 0]").shape()[0] == 3);                    // weights, too

  const auto error = [&](const std::string& line, const std::string& result, Mode mode = Mode::eval) {
    return error_of([&] { played(model(line, result), "f", mode); });
  };
  CHECK(
      error("y = 0 + x", "h[0].y + h(x)").find("'y' of module 'h.0' is not known: the module was not applied before") !=
      std::string::npos);
  CHECK(error("y = h(x)", "h[0].z").find("module 'h.0' (block 'layer') has no 'z'") != std::string::npos);
  CHECK(error("y = h(x)", "stack(h.all.y.z)").find("has no 'z'") != std::string::npos);
  CHECK(error("y = h(c(x))", "c.y").empty());
  CHECK(error("y = h(c(x))", "c.y", Mode::train).find("a checkpoint, which keeps no values") != std::string::npos);
}

TEST_CASE("several results of a repeated part replace as many arguments") {
  const std::string swap = R"("swap": {"inputs": ["x", "y", "step"], "result": "y + step, x"})";
  const Model model = Model::parse(definition(swap, R"("p": {"block": "swap", "repeat": 2})",
                                              function("f", "p(x, 10 * x, 1)[0] - p(x, 10 * x, 1)[1]")),
                                   in_float64());
  CHECK(same(played(model)[0], (x + 1.) - (10. * x + 1.)));
}

TEST_CASE("a block wraps another that is given to it, with any number of inputs") {
  const std::string blocks = scale + R"-(,
    "residual": {"hyper": {"rate": 1}, "modules": {"sublayer": null}, "inputs": ["x", "*others"],
                 "result": "x + rate * sublayer(x, *others)"},
    "mix": {"modules": {"s": {"block": "scale"}}, "inputs": ["x", "y"], "result": "s(x) * y"},
    "twice": {"modules": {"inner": null, "outer": {"block": "residual", "sublayer": "inner"}}, "inputs": ["x"],
              "result": "outer(x) + 0 * inner(x)"})-";
  const Model model = Model::parse(
      definition(blocks,
                 R"("a": {"block": "residual", "sublayer": {"block": "mix"}, "rate": 0.5},
                    "b": {"block": "residual", "sublayer": {"block": "residual", "sublayer": {"block": "scale", "by": "n"}}},
                    "c": {"block": "twice", "inner": {"block": "scale", "by": 7}})",
                 function("f", "a(x, x)") + "," + function("g", "b(x)") + "," + function("h", "c(x)"), "\"n\": 5"),
      in_float64());
  CHECK(weight_names(model) ==
        std::vector<std::string>{"a.sublayer.s.w", "b.sublayer.sublayer.w", "c.inner.w", "c.outer.sublayer.w"});
  CHECK(same(played(model, "f")[0], x + 0.5 * (2. * x) * x));
  CHECK(same(played(model, "g")[0], x + (x + 5. * x)));
  CHECK(same(played(model, "h")[0], x + 7. * x));
  CHECK(error_of([&] {
          Model::parse(definition(blocks, R"("a": {"block": "residual"})", function("f", "a(x)")));
        }).find("block 'residual' must be given its module 'sublayer'") != std::string::npos);
}

TEST_CASE("a hyper-parameter names a block, and an override another") {
  const std::string blocks = scale + R"(, "shift": {"hyper": {"by": 0}, "inputs": ["x"], "result": "x + by"})";
  const std::string text =
      definition(blocks, R"("p": {"block": "kind", "by": 9})", function("f", "p(x)"), "\"kind\": \"scale\"");
  CHECK(same(played(Model::parse(text, in_float64()))[0], 9. * x));
  ModelOptions options = in_float64();
  options.hyper = {{"kind", "shift"}};
  CHECK(same(played(Model::parse(text, options))[0], x + 9.));
}

TEST_CASE("of names that meet, the nearest wins: a hyper-parameter hides a block") {
  const std::string blocks = scale + R"(, "shift": {"hyper": {"by": 0}, "inputs": ["x"], "result": "x + by"})";
  const auto model = [&](const std::string& hyper) {
    return Model::parse(definition(blocks, R"("p": {"block": "scale", "by": 9})", function("f", "p(x)"), hyper),
                        in_float64());
  };
  CHECK(same(played(model(""))[0], 9. * x));
  CHECK(same(played(model("\"scale\": \"shift\""))[0], x + 9.));
  CHECK(error_of([&] { model("\"scale\": 4"); }).find("not 4: a parameter hides a block of its name") !=
        std::string::npos);
}

TEST_CASE("a hyper-parameter names an initialiser; settings that are not the chosen one's say nothing") {
  const std::string block = R"("w": {"weights": {"w": {"shape": [1], "init": "kind", "value": 7, "std": 0}},
    "inputs": ["x"], "result": "x * w"})";
  const auto times = [&](const std::string& kind) {
    ModelOptions options = in_float64();
    options.hyper = {{"kind", kind}};
    const std::string text = definition(block, R"("p": {"block": "w"})", function("f", "p(x)"), "\"kind\": \"ones\"");
    return played(Model::parse(text, options))[0](0, 0);  // x there is 1
  };
  CHECK(times("ones") == 1);
  CHECK(times("constant") == 7);
  CHECK(times("normal") == 0);
  CHECK(error_of([&] { times("normel"); }).find("unknown name 'normel'; did you mean 'normal'?") != std::string::npos);
}

TEST_CASE("a part that is left out gives back its first argument") {
  const Model model =
      Model::parse(definition(scale, R"("p": {"block": "scale", "when": "n > 3"})", function("f", "p(x)"), "\"n\": 3"),
                   in_float64());
  CHECK(model.parameter_count() == 0);
  CHECK(same(played(model)[0], x));
  const std::string part = R"("p": {"block": "scale", "when": "n > 3"})";
  const Model without = Model::parse(definition(scale, part, function("f", "p() + x"), "\"n\": 3"), in_float64());
  CHECK(error_of([&] { played(without); })
            .find("module 'p' is left out of this model, so a call of it returns its first argument: give it an "
                  "argument") != std::string::npos);
}

TEST_CASE("functions call each other; results have names") {
  const Model model = Model::parse(
      definition(scale, R"("p": {"block": "scale"})",
                 function("f", "p(x)") + "," +
                     R"-("g": {"inputs": {"x": "float [b, t]"}, "do": ["y = f(x)", "z = f(y)"], "result": "y, z"},
                        "h": {"inputs": {"x": "float [b, t]"}, "result": {"low": "g(x)[0]", "high": "g(x)[1] + 1"}},
                        "pair": {"inputs": {"x": "float [b, t]"}, "result": "x, x + 1"})-"),
      in_float64());
  Tape tape;
  const NamedVars inputs = model.inputs(tape, "g", {{"b", 2}, {"t", 2}});
  const auto names = [&](const std::string& function) {
    std::vector<std::string> found;
    for (const auto& each : model.record(tape, function, inputs)) found.push_back(each.name);
    return found;
  };
  CHECK(names("f") == std::vector<std::string>{"f"});
  CHECK(names("g") == std::vector<std::string>{"y", "z"});
  CHECK(names("h") == std::vector<std::string>{"low", "high"});
  CHECK(names("pair") == std::vector<std::string>{"pair.0", "pair.1"});
  for (const char* function : {"g", "h"}) CHECK(model.signature(function).results == names(function));
  for (const char* function : {"f", "pair"}) CHECK(model.signature(function).results.empty());
  CHECK(same(played(model, "h")[1], 4. * x + 1.));
  CHECK(error_of([&] { model.record(tape, "h", inputs).at("hihg"); }) ==
        "there is no var 'hihg'; did you mean 'high'?");
}

TEST_CASE("nodes know their part, block and line") {
  const std::string text =
      "{\"xtape\": 2, \"name\": \"small\",\n\"blocks\": {\"a\": {\"inputs\": [\"x\"],\n\"do\": [\n"
      "\"y = exp(x)\"],\n\"result\": \"y\"}},\n\"model\": {\"modules\": {\"p\": {\"block\": \"a\", \"repeat\": 2}},\n"
      "\"functions\": {\"f\": {\"inputs\": {\"x\": \"float [b]\"}, \"result\": \"p(x)\"}}}}";
  const Model model = Model::parse(text, {}, "small.json");
  Tape tape;
  const Var y = model.record(tape, "f", model.inputs(tape, "f", {{"b", 2}}))[0].value;
  CHECK(to_string(y.node().site) == "p.1 (small.json, block 'a', line 4)");
  Tape other;
  const Var z = model.record(other, "f", model.inputs(other, "f", {{"b", 7}}))[0].value;
  CHECK(z.node().site.key == y.node().site.key);  // another batch shape, the same site
  const Var before = tape.var(y.node().inputs[0]);
  CHECK(before.node().site.key != y.node().site.key);
}

TEST_CASE("a checkpointed part computes the same, with the same random numbers, and the same gradients") {
  const auto gradient = [&](bool checkpointed) {
    const std::string block = R"-("a": {"modules": {"s": {"block": "scale"}}, "inputs": ["x"],
      "result": "dropout(exp(s(x) / 4), 0.5)"})-";
    const Model model = Model::parse(
        definition(scale + "," + block,
                   std::string(R"("p": {"block": "a", "checkpoint": )") + (checkpointed ? "true" : "false") + "}",
                   function("f", "sum(p(x))")),
        in_float64());
    Tape tape(Mode::train);
    const NamedVars inputs = model.inputs(tape, "f", {{"b", 2}, {"t", 2}});
    const Var total = model.record(tape, "f", inputs)[0].value;
    const Vars gradients = grad(total, {inputs[0].value, model.weight(tape, "p.s.w")});
    bool enclosed = false;
    for (std::size_t i = 0; i < tape.size(); ++i) enclosed = enclosed || tape.node(i).op->name == "checkpoint";
    CHECK(enclosed == checkpointed);
    Player player(tape, {total, gradients[0], gradients[1]});
    player.play({{inputs[0].value, ArrayView(x)}}, 3);
    return std::vector<Array2>{player.value<double>(total), player.value<double>(gradients[0]),
                               player.value<double>(gradients[1])};
  };
  CHECK(gradient(true) == gradient(false));
}

TEST_CASE("hyper-parameters are expressions, in any order, and can be overridden") {
  const std::string text =
      definition("", "", function("f", "x * inner"),
                 R"("inner": "4 * width", "width": 3, "rate": 0.5, "deep": true, "form": "'tanh'")");
  const Model plain = Model::parse(text);
  CHECK(plain.hyper().integer("inner") == 12);
  CHECK(plain.hyper().number("rate") == 0.5);
  CHECK(plain.hyper().flag("deep"));
  CHECK(plain.hyper().text("form") == "tanh");
  CHECK_THROWS_WITH_AS(plain.hyper().integer("rate"), "hyper-parameter 'rate' is a number (0.5), not an integer",
                       Error);
  ModelOptions options;
  options.hyper = {{"width", "2 + 3"}, {"rate", "1"}, {"deep", "false"}, {"form", "'none'"}};
  const Model other = Model::parse(text, options);
  CHECK(other.hyper().integer("inner") == 20);
  CHECK(other.hyper().number("rate") == 1);
  CHECK(!other.hyper().flag("deep"));
  CHECK(other.hyper().text("form") == "none");
}

TEST_CASE("files use each other by paths relative to themselves; a run keeps all in one text") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("xtape-definitions-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "blocks");
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("blocks/scale.json", "{\"xtape\": 2, \"hyper\": {\"unit\": 1},\n\"blocks\": {" + scale + "}}");
  write("blocks/pair.json", R"-({"xtape": 2, "use": ["scale.json"], "hyper": {"unit": 10},
    "blocks": {"pair": {"modules": {"s": {"block": "scale", "by": "unit", "repeat": 2}}, "inputs": ["x"], "result": "s(x)"}}})-");
  write("main.json", R"({"xtape": 2, "name": "main", "use": ["blocks/pair.json"], "hyper": {"unit": 3, "far": "inf"},
    "model": {"modules": {"p": {"block": "pair"}}, "functions": {)" +
                         function("f", "unit * p(minimum(x, far))") + "}}}");
  const std::string path = (folder / "main.json").string();
  ModelOptions options = in_float64();
  options.hyper = {{"unit", "5"}};
  const Model model = Model::load(path, options);
  CHECK(same(played(model)[0], 500. * x));
  const Model again = Model::parse(model.definition_text(), in_float64());
  CHECK(same(played(again)[0], 500. * x));
  CHECK(again.definition_text() == model.definition_text());
  CHECK(error_of([&] {
          Model::parse(definition("", R"("p": {"block": "scale"})", function("f", "p(x)"))
                           .replace(1, 0, R"("use": ["blocks/pair.json"],)"),
                       {}, path);
        }).find("there is no block 'scale'") != std::string::npos);  // what a used file uses does not leak
  write("one.json", R"({"xtape": 2, "use": ["two.json"]})");
  write("two.json", R"({"xtape": 2, "use": ["one.json"]})");
  CHECK(error_of([&] { Model::load((folder / "one.json").string()); }) ==
        (folder / "two.json").string() +
            ", line 1: 'one.json' uses this file: files cannot use each other in a cycle\n"
            "    {\"xtape\": 2, \"use\": [\"one.json\"]}\n"
            "                         ^");
  CHECK(error_of([&] { Model::load((folder / "mian.json").string()); }) ==
        "there is no file '" + (folder / "mian.json").string() + "'");
  std::filesystem::remove_all(folder);
}

TEST_CASE("weights are saved, loaded and refused by name and shape") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("xtape-weights-" + std::to_string(getpid()) + ".safetensors"))
          .string();
  const auto model_of = [&](const std::string& parts, ModelOptions options = {}) {
    return Model::parse(definition(scale, parts, function("f", "p(q(x))")), options);
  };
  const std::string both = R"("p": {"block": "scale", "by": 3}, "q": {"block": "scale", "with_bias": true})";
  Model first = model_of(both);
  first.weight("q.w").as<float>()[0] = 0.25F;
  first.save_weights(path);
  Model second = model_of(both, in_float64());  // widens
  second.load_weights(path);
  CHECK(second.weights().at("q.w").as<double>()[0] == 0.25);
  CHECK(same(played(second)[0], 3. * (0.25 * x + 1.)));
  Model other = model_of(R"("p": {"block": "scale"}, "q": {"block": "scale", "repeat": 1})");
  CHECK(error_of([&] { other.load_weights(path); }) ==
        "the weights in '" + path +
            "' do not fit model 'small':\n  missing: q.0.w (1,)\n  unexpected: q.w; did you mean "
            "'q.0.w'?\n  unexpected: q.bias");
  CHECK(other.weights().at("p.w").as<float>()[0] == 2);  // nothing has changed
  std::filesystem::remove(path);
}

TEST_CASE("a function is played on arrays by name, which say the sizes") {
  Model model = Model::parse(definition(scale, "\"p\": {\"block\": \"scale\", \"by\": 3}",
                                        "\"f\": {\"inputs\": {\"x\": \"float [b, t]\", \"n\": \"int [t, 2]\"}, "
                                        "\"result\": {\"y\": \"p(x)\", \"z\": \"n + 1\"}}"),
                             in_float64());
  const xt::xarray<std::int64_t> n = {{1, 2}, {3, 4}}, none = {{1, 2}};
  CHECK(model.sizes("f", {{"n", n}, {"x", x}}) == NamedSizes{{"b", 2}, {"t", 2}});
  const Store results = model.play("f", {{"n", n}, {"other", none}, {"x", x}});
  CHECK(same(results.at("y").to<double>(), 3. * x));
  CHECK(results.at("z").to<std::int64_t>() == n + 1);
  CHECK(error_of([&] {
          model.play("f", {{"x", x}});
        }) == "function 'f' of model 'small' takes an input 'n', but the arrays given are x");
  CHECK(error_of([&] {
          model.play("f", {{"x", x}, {"n", x}});
        }) == "input 'n' of function 'f' of model 'small' is int64 of rank 2, got float64 (2, 2)");
  CHECK(error_of([&] { model.play("f", {{"x", x}, {"n", none}}); }).find("(1, 2)") != std::string::npos);
}

TEST_CASE("players are kept by function, mode and sizes, within bounds") {
  Model model = Model::parse(definition(scale, R"("p": {"block": "scale"})", function("f", "p(x)")));
  const xt::xarray<float> ones = xt::ones<float>({2, 2});
  const auto player = model.player("f", Mode::eval, {{"b", 2}, {"t", 2}});
  player->player.play({{player->inputs[0].value, ones}});
  CHECK(player->player.value<float>(player->results[0].value)(1, 1) == 2);
  CHECK(model.player("f", Mode::eval, {{"t", 2}, {"b", 2}}) == player);
  CHECK(model.player("f", Mode::train, {{"b", 2}, {"t", 2}}) != player);
  CHECK(model.player("f", Mode::eval, {{"b", 3}, {"t", 2}}) != player);
  CHECK(model.players().size() == 3);
  CHECK(model.players()[0]->key.sizes == NamedSizes{{"b", 3}, {"t", 2}});
  model.set_player_options(2, {});
  CHECK(model.players().empty());
  for (std::int64_t size = 1; size < 5; ++size) model.player("f", Mode::eval, {{"b", size}, {"t", 2}});
  CHECK(model.players().size() == 2);
  model.weight("p.w").as<float>()[0] = 7;  // all players read the shared array
  const auto last = model.player("f", Mode::eval, {{"b", 4}, {"t", 2}});
  const xt::xarray<float> four = xt::ones<float>({4, 2});
  last->player.play({{last->inputs[0].value, four}});
  CHECK(last->player.value<float>(last->results[0].value)(0, 0) == 7);
}
