// Functions shared by files, and parts that one entry describes.
#include <doctest/doctest.h>

#include "definitions.hpp"

using namespace xtape;

namespace {
/// A model that uses files, which stand inside.
std::string using_files(const std::string& files, const std::string& functions, const std::string& use,
                        const std::string& more = "") {
  return R"json({"xtape": 1, "name": "user", "use": [)json" + use + R"json(], "hyper": {"factor": 3}, "files": {)json" +
         files + R"json(}, )json" + more + R"json("model": {"functions": {)json" + functions + "}}}";
}
const std::string doubling = R"json("twice.json": {"xtape": 1, "functions": {
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
      R"json("other.json": {"xtape": 1, "functions": {"twice": {"inputs": {"x": "float [n]"}, "result": "x"}}})json";
  CHECK(test::error_of([&] {
          Model::parse(using_files(doubling + ", " + other, once, R"json("twice.json", "other.json")json"));
        }).find("another used file has a function 'twice' too") != std::string::npos);
  CHECK(test::error_of([&] {
          Model::parse(using_files(doubling, once, R"json("twice.json")json", R"json("functions": {}, )json"));
        }).find("a model's functions stand in \"model\"") != std::string::npos);
  CHECK(test::error_of([&] {
          Model::parse(using_files(doubling, R"json("another": {"inputs": {"x": "float [n]"}, "result": "x"})json",
                                   R"json("twice.json")json"));
        }).find("there is no part, function or op 'once'") != std::string::npos);
}

TEST_CASE("one entry describes several parts, each with weights of its own") {
  const std::string text = R"json({"xtape": 1, "name": "three", "blocks": {"scale": {
    "weights": {"w": {"shape": [], "init": "ones"}}, "inputs": ["x"], "result": "x * w"}},
    "model": {"parts": {"a, b,c": {"block": "scale"}}, "functions": {"f": {"inputs": {"x": "float [n]"}, "result": "c(b(a(x)))"}}}})json";
  Model model = Model::parse(text);
  CHECK(model.weights().names() == std::vector<std::string>{"a.w", "b.w", "c.w"});
  model.weights().at("b.w").as<float>()[0] = 3;
  const xt::xarray<float> x{1, 2};
  CHECK(model.play("f", {{"x", x}})[0].value.to<float>() == xt::xarray<float>{3, 6});
  const auto with_names = [&](const std::string& names) {
    std::string other = text;
    return test::error_of([&] { Model::parse(other.replace(other.find("a, b,c"), 6, names)); });
  };
  CHECK(with_names("a, b, c, a").find("the part 'a' has the same name as a part") != std::string::npos);
  CHECK(!with_names("a, , b, c").empty());
  CHECK(!with_names("a, b, c, ").empty());
}
