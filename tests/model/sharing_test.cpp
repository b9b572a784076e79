// Functions shared by files, and modules that one entry describes.
#include <doctest/doctest.h>

#include "definitions.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// A model that uses files, which stand inside.
std::string using_files(const std::string& files, const std::string& functions, const std::string& use,
                        const std::string& more = "") {
  return R"json({"xtape": 2, "name": "user", "use": [)json" + use + R"json(], "hyper": {"factor": 3}, "files": {)json" +
         files + R"json(}, )json" + more + R"json("model": {"functions": {)json" + functions + "}}}";
}
const std::string doubling = R"json("twice.json": {"xtape": 2, "functions": {
  "twice": {"inputs": {"x": "float [n]"}, "result": "2 * once(x)"},
  "times": {"inputs": {"x": "float [n]"}, "result": "factor * once(x)"}}})json";
const std::string once = R"json("once": {"inputs": {"x": "float [n]"}, "result": "x + 1"})json";
}  // namespace

TEST_CASE("a model has the functions of files that it uses, but for those that it defines itself") {
  const xt::xarray<float> x{1, 2};
  Model model = Model::parse(using_files(doubling, once, R"json("twice.json")json"));
  CHECK(model.functions() == std::vector<std::string>{"once", "twice", "times"});
  CHECK(model.play("twice", {{"x", x}})[0].value.to<float>() == xt::xarray<float>{4, 6});
  CHECK(model.play("times", {{"x", x}})[0].value.to<float>() == xt::xarray<float>{6, 9});
  Model own =
      Model::parse(using_files(doubling, once + R"json(, "twice": {"inputs": {"x": "float [n]"}, "result": "x"})json",
                               R"json("twice.json")json"));
  CHECK(own.play("twice", {{"x", x}})[0].value.to<float>() == x);
  Model again = Model::parse(model.definition_text());
  CHECK(again.play("times", {{"x", x}})[0].value.to<float>() == xt::xarray<float>{6, 9});
}

TEST_CASE("functions that cannot be shared are refused with their place") {
  const std::string other =
      R"json("other.json": {"xtape": 2, "functions": {"twice": {"inputs": {"x": "float [n]"}, "result": "x"}}})json";
  CHECK(test::error_of([&] {
          Model::parse(using_files(doubling + ", " + other, once, R"json("twice.json", "other.json")json"));
        }).find("another used file has a function 'twice' too") != std::string::npos);
  CHECK(test::error_of([&] {
          Model::parse(using_files(doubling, once, R"json("twice.json")json", R"json("functions": {}, )json"));
        }).find("a model's functions belong in \"model\"") != std::string::npos);
  CHECK(test::error_of([&] {
          Model::parse(using_files(doubling, R"json("another": {"inputs": {"x": "float [n]"}, "result": "x"})json",
                                   R"json("twice.json")json"));
        }).find("there is no module, function or op 'once'") != std::string::npos);
}

namespace {
const std::string scales = R"json("scales.json": {"xtape": 2, "blocks": {"scale": {"hyper": {"by": null},
  "weights": {"w": {"shape": [], "init": "constant", "value": "by"}}, "inputs": ["x"], "result": "x * w"}}})json";
const std::string base =
    R"json("base.json": {"xtape": 2, "name": "base", "about": "Two scales.", "use": ["scales.json"],
  "hyper": {"by": 2, "other": "by + 1"},
  "blocks": {"plus": {"modules": {"scale": {"block": "scale", "pass": ["by"]}}, "inputs": ["x"], "result": "1 + scale(x)"}},
  "model": {"modules": {"a": {"block": "scale", "by": "other"}, "b": {"block": "plus"}}, "functions": {
    "f": {"inputs": {"x": "float [n]"}, "result": "b(a(x))"},
    "g": {"inputs": {"x": "float [n]"}, "result": "2 * f(x)"}}}})json";

/// A model that extends `base`.
std::string extending(const std::string& rest, const std::string& files = scales + ", " + base) {
  return R"json({"xtape": 2, "extends": "base.json", "files": {)json" + files + "}" + rest + "}";
}

float of_one(Model& model, const std::string& function) {
  const xt::xarray<float> one{1};
  return model.play(function, {{"x", one}})[0].value.as<float>()[0];
}
}  // namespace

TEST_CASE("a definition extends another: entries of the same name replace its entries") {
  Model same = Model::parse(extending(""));
  CHECK(same.name() == "base");
  CHECK(same.about() == "Two scales.");
  CHECK(of_one(same, "f") == 1 + 2 * 3);

  Model hyper = Model::parse(extending(R"json(, "name": "mine", "hyper": {"by": 4})json"));
  CHECK(hyper.name() == "mine");
  CHECK(hyper.hyper().integer("other") == 5);
  CHECK(of_one(hyper, "g") == 2 * (1 + 4 * 5));
  CHECK(of_one(hyper, "f") == 1 + 4 * 5);

  Model block = Model::parse(extending(R"json(, "blocks": {"plus": {"inputs": ["x"], "result": "x + 100"}})json"));
  CHECK(of_one(block, "f") == 103);
  CHECK(block.weights().names() == std::vector<std::string>{"a.w"});

  const std::string rest = R"json(, "model": {"modules": {"a": {"block": "plus"}, "c": {"block": "scale", "by": 10}},
    "functions": {"f": {"inputs": {"x": "float [n]"}, "result": "c(b(a(x)))"}}})json";
  Model modules = Model::parse(extending(rest));
  CHECK(of_one(modules, "g") == 2 * 10 * (1 + 2 * (1 + 2)));
  CHECK(modules.weights().names() == std::vector<std::string>{"a.scale.w", "b.scale.w", "c.w"});
}

TEST_CASE("a definition that extends another replaces blocks of the files that this uses, wherever they are named") {
  Model model = Model::parse(extending(R"json(, "hyper": {"power": 3}, "blocks": {"scale": {"hyper": {"by": null},
    "inputs": ["x"], "result": "(x + 1) ** power"}})json"));
  CHECK(model.weights().size() == 0);
  CHECK(of_one(model, "f") == 1 + 729);
  Model again = Model::parse(model.definition_text());
  CHECK(again.name() == "base");
  CHECK(again.weights().size() == 0);
  CHECK(of_one(again, "f") == 1 + 729);
  CHECK(Model::parse(again.definition_text()).definition_text() == again.definition_text());
}

TEST_CASE("what extends another is kept in one text, and can itself be extended") {
  const std::string middle =
      R"json("middle.json": {"xtape": 2, "extends": "base.json", "hyper": {"by": 5, "more": 7}})json";
  Model model =
      Model::parse(R"json({"xtape": 2, "extends": "middle.json", "files": {)json" + scales + ", " + base + ", " +
                   middle + R"json(}, "use": ["scales.json"], "hyper": {"other": "more"}, "model": {"functions": {
                             "h": {"inputs": {"x": "float [n]"}, "result": "f(x) + more"}}}})json");
  CHECK(of_one(model, "h") == 1 + 5 * 7 + 7);
  Model again = Model::parse(model.definition_text());
  CHECK(of_one(again, "h") == 1 + 5 * 7 + 7);
  CHECK(again.weights().names() == model.weights().names());
  CHECK(again.functions() == model.functions());
  CHECK(again.hyper().items() == model.hyper().items());
  CHECK(again.definition_text() == model.definition_text());
}

namespace {
/// What extends `base` and changes the block `plus`: 1 + scale(x).
std::string changing(const std::string& plus, const std::string& rest = "") {
  return extending(R"json(, "blocks": {"plus": {"change": {)json" + plus + "}}" + rest + "}");
}
}  // namespace

TEST_CASE("a definition that extends another changes parts of a block, of a module and of a function") {
  Model result = Model::parse(changing(R"json("result": "10 + scale(x)")json"));
  CHECK(of_one(result, "f") == 10 + 2 * 3);

  Model module = Model::parse(changing(R"json("modules": {"scale": {"change": {"by": 7}}})json"));
  CHECK(of_one(module, "f") == 1 + 7 * 3);

  Model used = Model::parse(extending(R"json(, "blocks": {"scale": {"change": {"result": "x * w + 100"}}})json"));
  CHECK(of_one(used, "f") == 1 + 2 * (3 + 100) + 100);

  const std::string shared = R"json(, "shared.json": {"result": "x * w + 100"})json";
  Model from_file = Model::parse(
      extending(R"json(, "blocks": {"scale": {"change": "shared.json"}})json", scales + ", " + base + shared));
  CHECK(of_one(from_file, "f") == 1 + 2 * (3 + 100) + 100);
  CHECK(from_file.definition_text().find("shared.json") == std::string::npos);

  Model function = Model::parse(extending(
      R"json(, "model": {"functions": {"g": {"change": {"do": {"y": "f(x) + 5"}, "result": "2 * y"}}}})json"));
  CHECK(of_one(function, "g") == 2 * (1 + 2 * 3 + 5));
  for (Model* model : {&result, &module, &used, &from_file, &function}) {
    Model again = Model::parse(model->definition_text());
    CHECK(of_one(again, "g") == of_one(*model, "g"));
    CHECK(again.definition_text() == model->definition_text());
  }
}

TEST_CASE("a changed line replaces the one that assigns its names; a new one comes before the first use") {
  const std::string lines = R"json("base.json": {"xtape": 2, "name": "base", "blocks": {"plus": {
    "weights": {"u, v": {"shape": [1], "init": "ones"}}, "inputs": ["x"],
    "do": ["a, b = x + u, x + v", "c = a * b", "c = c + 1", "d = c + b"], "result": "d"}},
    "model": {"modules": {"plus": {"block": "plus"}}, "functions": {"f": {"inputs": {"x": "float [n]"}, "result": "plus(x)"}}}})json";
  const auto parsed = [&](const std::string& change) {
    return Model::parse(extending(R"json(, "blocks": {"plus": {
      "change": {)json" + change + "}}}",
                                  lines),
                        {}, "mine.json");
  };
  Model plain = parsed("");
  CHECK(of_one(plain, "f") == 7);
  Model replaced = parsed(R"json("do": {"d": "c - b", "a, b": "x + 2 * u, x + v"})json");
  CHECK(of_one(replaced, "f") == 3 * 2 + 1 - 2);
  Model added = parsed(R"json("do": {"d": "c + b + e", "g": "10 * a", "e": "g + 100"})json");
  CHECK(of_one(added, "f") == 4 + 1 + 2 + 20 + 100);
  Model last = parsed(R"json("do": {"y": "d * 3"}, "result": "y")json");
  CHECK(of_one(last, "f") == 21);
  CHECK(added.weights().names() == std::vector<std::string>{"plus.u", "plus.v"});

  const auto refused = [&](const std::string& change, const std::string& why) {
    const std::string error = test::error_of([&] { parsed(change); });
    CHECK_MESSAGE(error.find(why) != std::string::npos, error);
    CHECK_MESSAGE(error.find("mine.json, block 'plus', line 5") == 0, error);
  };
  refused(R"json("do": {"dd": "c - b"})json",
          "no line assigns 'dd', and none uses it, so that a new line has no place; did you mean 'd'?");
  refused(R"json("do": {"a": "x"})json", "a line assigns 'a,b' together: change it by this name");
  refused(R"json("do": {"c": "a"})json", "several lines assign 'c'");
  refused(R"json("do": {"d": "c + nothing"})json", "unknown name 'nothing'");
  refused(R"json("results": "d")json", "the key \"results\" is not known here; did you mean 'result'?");
}

TEST_CASE("null removes a function that a definition inherits") {
  const auto removing = [](const std::string& functions) {
    return Model::parse(extending(R"json(, "model": {"functions": )json" + functions + "}"), {}, "mine.json");
  };
  CHECK(removing(R"json({"g": null})json").functions() == std::vector<std::string>{"f"});
  CHECK(Model::parse(removing(R"json({"g": null})json").definition_text()).functions() ==
        std::vector<std::string>{"f"});
  const std::string error = test::error_of([&] { removing(R"json({"gg": null})json"); });
  CHECK_MESSAGE(error.find("there is no 'gg' to remove; did you mean 'g'?") != std::string::npos, error);
  const std::string read = test::error_of([&] { removing(R"json({"f": null})json"); });
  CHECK_MESSAGE(
      read.find("function 'f' is removed, since its entry is null, but this line calls it") != std::string::npos, read);
}

TEST_CASE("null removes a function of a used file, in the definition and in its copies") {
  const auto with = [](const std::string& functions) {
    return using_files(doubling, once + ", " + functions, R"json("twice.json")json");
  };
  Model model = Model::parse(with(R"json("twice": null)json"));
  CHECK(model.functions() == std::vector<std::string>{"once", "times"});
  for (int copies = 0; copies < 2; ++copies) {
    model = Model::parse(model.definition_text());
    CHECK(model.functions() == std::vector<std::string>{"once", "times"});
  }
  const auto error = [&](const std::string& functions) {
    return test::error_of([&] { Model::parse(with(functions), {}, "user.json"); });
  };
  CHECK(error(R"json("twicee": null)json").find("there is no 'twicee' to remove; did you mean 'twice'?") !=
        std::string::npos);
  CHECK(error(R"json("twice": null, "four": {"inputs": {"x": "float [n]"}, "result": "2 * twice(x)"})json")
            .find(": function 'twice' is removed, since its entry is null") != std::string::npos);
}

TEST_CASE("what cannot be extended is refused with its place") {
  const auto refused = [](const std::string& text, const std::string& why) {
    const std::string error = test::error_of([&] { Model::parse(text, {}, "mine.json"); });
    CHECK_MESSAGE(error.find(why) != std::string::npos, error);
    CHECK(error.find("mine.json") == 0);
  };
  refused(extending("", scales), "cannot find 'base.json'");
  refused(extending("", R"json("base.json": {"xtape": 2, "extends": "base.json"})json"), "in a cycle");
  refused(extending(R"json(, "blocks": {"scale": {"change": "none.json"}})json"), "cannot find 'none.json'");
  refused(extending(R"json(, "blocks": {"scale": {"change": 3}})json"), "an object belongs here");
  refused(
      extending(
          "",
          R"json("base.json": {"xtape": 2, "extends": "a.json"}, "a.json": {"xtape": 2, "extends": "base.json"})json"),
      "in a cycle");
  refused(extending("", R"json("base.json": {"xtape": 1})json"), "a definition of version 1 is not read");
  refused(extending(R"json(, "blocks": {"plus": {"inputs": ["x"], "result": "x + y"}})json"), "unknown name 'y'");
  refused(changing("", R"json(, "plu": {"change": {"result": "x"}})json"),
          "the extended file has no 'plu'; did you mean 'plus'?");
  refused(changing(R"json("modules": {"scal": {"change": {"by": 7}}})json"),
          "there is no 'scal' to change; did you mean 'scale'?");
  refused(extending(R"json(, "hyper": {"othr": 4})json"), "has no 'othr'; did you mean 'other'?");
  refused(extending(R"json(, "blocks": {"pls": {"inputs": ["x"], "result": "x"}})json"), "did you mean 'plus'?");
  refused(extending(R"json(, "blocks": {"sclae": {"inputs": ["x"], "result": "x"}})json"), "did you mean 'scale'?");
}

TEST_CASE("pass hands parameters and given parts down under their own names") {
  Model model = Model::parse(R"json({"xtape": 2, "hyper": {"by": 3}, "blocks": {
    "scale": {"hyper": {"by": null, "bias": 0}, "inputs": ["x"], "result": "x * by + bias"},
    "twice": {"modules": {"inner": null}, "inputs": ["x"], "result": "inner(inner(x))"},
    "outer": {"hyper": {"bias": null}, "modules": {"inner": null, "twice": {"block": "twice", "pass": ["inner"]},
      "scale": {"block": "scale", "pass": ["by", "bias"]}}, "inputs": ["x"], "result": "scale(twice(x)) + inner(x)"}},
    "model": {"modules": {"outer": {"block": "outer", "bias": 5, "inner": {"block": "scale", "by": 2}}},
      "functions": {"f": {"inputs": {"x": "float [n]"}, "result": "outer(x)"}}}})json");
  CHECK(of_one(model, "f") == 3 * 4 + 5 + 2);
  const auto refused = [](const std::string& pass) {
    return test::error_of([&] {
      Model::parse(R"json({"xtape": 2, "blocks": {"scale": {"hyper": {"by": 1}, "inputs": ["x"], "result": "x * by"}},
        "model": {"modules": {"a": {"block": "scale", "pass": )json" +
                   pass + R"json(}}, "functions": {
        "f": {"inputs": {"x": "float [n]"}, "result": "a(x)"}}}})json");
    });
  };
  CHECK(refused("[\"by\"]").find("unknown name 'by'") != std::string::npos);
  CHECK(refused("[\"bye\"]").find("'bye'") != std::string::npos);
  CHECK(refused("[\"2 * by\"]").find("cannot be a name") != std::string::npos);
  CHECK(refused("\"by\"").find("an array belongs here") != std::string::npos);
}

TEST_CASE("defaults of a file are the parameters of all its modules that do not set them") {
  const auto text = [](const std::string& defaults, const std::string& more = "") {
    return R"json({"xtape": 2, "hyper": {"by": 3, "of_two": 5}, "defaults": )json" + defaults + R"json(, "files": {
      "scales.json": {"xtape": 2, "blocks": {
        "scale": {"hyper": {"by": 2, "bias": 0}, "modules": {"again": {"block": "plus"}}, "inputs": ["x"],
                  "result": "again(x * by + bias)"},
        "plus": {"hyper": {"bias": 7}, "inputs": ["x"], "result": "x + 0 * bias"}}}}, "use": ["scales.json"], "blocks": {
      "two": {"hyper": {"bias": null}, "modules": {"inner": null, "set": {"block": "scale", "by": 10}}, "inputs": ["x"],
              "result": "set(x) + inner(x)"}})json" +
           more + R"json(, "model": {"modules": {"two": {"block": "two", "bias": "of_two", "inner": {"block": "scale"}},
      "one": {"block": "scale", "bias": 1}}, "functions": {"f": {"inputs": {"x": "float [n]"}, "result": "two(x) + one(x)"}}}})json";
  };
  const auto value = [](const std::string& definition) {
    Model model = Model::parse(definition);
    const double first = of_one(model, "f");
    Model copy = Model::parse(model.definition_text());
    CHECK(of_one(copy, "f") == first);
    return first;
  };
  CHECK(value(text("{}")) == (10 + 0) + 2 + (2 + 1));
  CHECK(value(text(R"({"pass": ["by"]})")) == (10 + 0) + 3 + (3 + 1));
  // A default is worked out where the module stands: `bias` is a parameter of block two. The given module `inner`
  // stands in the model, which has no `bias`.
  CHECK(value(text(R"({"by": "2 * by", "bias": 4})")) == (10 + 4) + (6 + 4) + (6 + 1));
  const auto error = [&](const std::string& defaults) {
    return test::error_of([&] { Model::parse(text(defaults), {}, "small.json"); });
  };
  CHECK(error(R"({"bye": 1})")
            .find("small.json, defaults, line 1: no block of this file or of those that it uses has a "
                  "parameter 'bye'; did you mean 'by'?") == 0);
  CHECK(error(R"({"by": "bz"})").find("unknown name 'bz'; did you mean 'by'?") != std::string::npos);
  const std::string unknown = error(R"({"pass": ["bias"]})");
  CHECK(unknown.find("unknown name 'bias'") != std::string::npos);
  CHECK(unknown.find("\n    from small.json, model, line ") != std::string::npos);
}

TEST_CASE("a file that extends another adds defaults, and replaces those of the same name") {
  Model model = Model::parse(R"json({"xtape": 2, "extends": "base.json", "defaults": {"by": 5}, "files": {"base.json": {
    "xtape": 2, "defaults": {"by": 3, "bias": 1}, "blocks": {
    "scale": {"hyper": {"by": 2, "bias": 0}, "inputs": ["x"], "result": "x * by + bias"}}, "model": {"modules": {
    "a": {"block": "scale"}}, "functions": {"f": {"inputs": {"x": "float [n]"}, "result": "a(x)"}}}}}})json");
  CHECK(of_one(model, "f") == 5 + 1);
  Model copy = Model::parse(model.definition_text());
  CHECK(of_one(copy, "f") == 5 + 1);
}

TEST_CASE("one entry describes several modules, each with weights of its own") {
  const std::string text = R"json({"xtape": 2, "name": "three", "blocks": {"scale": {
    "weights": {"w": {"shape": [], "init": "ones"}}, "inputs": ["x"], "result": "x * w"}},
    "model": {"modules": {"a, b,c": {"block": "scale"}}, "functions": {"f": {"inputs": {"x": "float [n]"}, "result": "c(b(a(x)))"}}}})json";
  Model model = Model::parse(text);
  CHECK(model.weights().names() == std::vector<std::string>{"a.w", "b.w", "c.w"});
  model.weight("b.w").as<float>()[0] = 3;
  const xt::xarray<float> x{1, 2};
  CHECK(model.play("f", {{"x", x}})[0].value.to<float>() == xt::xarray<float>{3, 6});
  const auto with_names = [&](const std::string& names) {
    std::string other = text;
    return test::error_of([&] { Model::parse(other.replace(other.find("a, b,c"), 6, names)); });
  };
  CHECK(with_names("a, b, c, a").find("'a' is described twice") != std::string::npos);
  CHECK(!with_names("a, , b, c").empty());
  CHECK(!with_names("a, b, c, ").empty());
}

TEST_CASE("a hyper-parameter that an extending file sets must have an effect") {
  const auto error_with = [](const std::string& rest) {
    return test::error_of([&] { Model::parse(extending(rest), {}, "mine.json"); });
  };
  const std::string unused = error_with(R"json(, "hyper": {"othr_factor": 1})json");
  CHECK_MESSAGE(
      unused.find("hyper-parameter 'othr_factor' has no effect: no line mentions it; those with an effect are "
                  "by, other\n") != std::string::npos,
      unused);
  CHECK(error_with(R"json(, "hyper": {"by_other": 1, "mine": "by_other"})json").find("'mine' has no effect") !=
        std::string::npos);
  // A parameter of a block has the name, and lines mean the parameter.
  const std::string block =
      R"json(, "blocks": {"k": {"hyper": {"factor": 1}, "inputs": ["x"], "result": "x * factor"}})json";
  CHECK(error_with(R"json(, "hyper": {"factor": 2})json" + block).find("'factor' has no effect") != std::string::npos);
  for (
      const std::string& rest : std::vector<std::string>{
          R"json(, "hyper": {"mine": 2, "by": "mine"})json", R"json(, "hyper": {"vocab_size": 7})json",
          R"json(, "hyper": {"factor": 2}, "defaults": {"pass": ["factor"]})json" + block,
          R"json(, "hyper": {"n": 2}, "model": {"functions": {"h": {"inputs": {"x": "float [n]"}, "result": "x"}}})json"})
    CHECK_MESSAGE(error_with(rest) == "", rest);
  // An inherited one may have lost its effect; a copy then has it too.
  const std::string lost = R"json(, "model": {"modules": {"a": {"block": "plus"}, "b": {"block": "plus"}}},
    "blocks": {"plus": {"inputs": ["x"], "result": "x + 100"}})json";
  CHECK(error_with(lost) == "");
}
