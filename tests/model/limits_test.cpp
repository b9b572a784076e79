// Definitions that are long, deep or exploding: handled in linear time, or refused with one error.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "definitions.hpp"
#include "needs.hpp"
#include "processor_time.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::error_of;
using xtape::test::one_function;

namespace {
std::string repeated(const std::string& text, int times) {
  std::string all;
  all.reserve(text.size() * static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// Records `f` of x (float [2, 3]); returns the error, "" where there is none.
std::string record_error(const std::string& text, const ModelOptions& options = {}) {
  return error_of([&] {
    const Model model = Model::parse(text, options, "small.json");
    Tape tape(Mode::eval);
    const NamedVars inputs = model.inputs(tape, "f", {{"b", 2}, {"t", 3}});
    const std::string error = error_of([&] { model.record(tape, "f", inputs); });
    CHECK((error.empty() || tape.size() == inputs.size()));  // a failed recording leaves nothing behind
    if (!error.empty()) throw Error(error);
  });
}

std::string line_error(const std::string& line, const ModelOptions& options = {}) {
  return record_error(one_function({line}, "y"), options);
}

/// A model of `count` blocks b0, b1, …, each with the next as its part `p`, whose result is `result`; the last gives x.
std::string chained(int count, const std::string& result) {
  std::string blocks;
  for (int i = 0; i < count; ++i)
    blocks += "\"b" + std::to_string(i) + "\": {\"modules\": {\"p\": {\"block\": \"b" + std::to_string(i + 1) +
              "\"}}, \"inputs\": [\"x\"], \"result\": \"" + result + "\"},\n";
  return "{\"xtape\": 2, \"name\": \"small\", \"blocks\": {" + blocks + "\"b" + std::to_string(count) +
         R"json(": {"inputs": ["x"], "result": "x"}},
"model": {"modules": {"p": {"block": "b0"}},
"functions": {"f": {"inputs": {"x": "float [b, t]"}, "result": "p(x)"}}}})json";
}

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text.substr(0, 1000));
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

bool has_one_caret(const std::string& error) {
  return error.find("\n    ") != std::string::npos && error.back() == '^' && error.size() < 2000;
}
}  // namespace

TEST_CASE("a sum of 20,000 terms is recorded in linear time and gives their sum") {
  const auto sum = [](int terms) { return "y = x" + repeated(" + x", terms - 1); };
  const double few = least_processor_seconds([&] { CHECK(line_error(sum(2000)) == ""); });
  const double many = least_processor_seconds([&] { CHECK(line_error(sum(20000)) == ""); });
  CHECK(many < 40 * (few + 0.01));  // ten times the terms; quadratic would be a hundred times the time
  const xt::xarray<double> x = {{1., 2.}, {3., 4.}};
  CHECK(test::same(test::f({sum(300)}, "y", x), 300 * x));
}

TEST_CASE("long chains of numbers, products, logic and texts neither recurse nor copy") {
  CHECK(line_error("y = x * (1" + repeated(" + 1", 200000) + ")") == "");
  CHECK(line_error("y = x * (1" + repeated(" * 1", 200000) + ")") == "");
  CHECK(line_error("y = x * n" + repeated(" - 0 * n", 20000)) == "");
  CHECK(line_error("require(true" + repeated(" and true", 50000) + ", 'no')\", \"y = x") == "");
  CHECK(line_error("require(false" + repeated(" or false", 50000) + " or true, 'no')\", \"y = x") == "");
}

TEST_CASE("chains keep their order: from left to right") {
  const xt::xarray<double> x = {{8., 2.}};
  CHECK(test::same(test::f({"y = x - 3 - 2 + 1"}, "y", x), x - 4));
  CHECK(test::same(test::f({"y = x / 4 / 2 * 3"}, "y", x), x / 8 * 3));
  CHECK(test::same(test::f({"y = x * (7 // 2 * 2 % 4)"}, "y", x), x * 2));
  CHECK(test::same(test::f({"y = x * 2 ** 3 ** 0 - x"}, "y", x), x));
  CHECK(line_error("require(false and 1 / 0 > 0 or true, 'no')\", \"y = x") == "");
  CHECK(has(line_error("require(true or false and 2 > 1 / 0 and true, 'no')\", \"y = x * zzz"), "unknown name 'zzz'"));
}

TEST_CASE("expressions that are nested too deeply are refused with a caret, however they nest") {
  for (const std::string& line :
       {"y = x" + repeated("[0:1]", 50000), "y = " + repeated("(", 50000) + "x" + repeated(")", 50000),
        "y = " + repeated("neg(", 50000) + "x" + repeated(")", 50000), "y = x" + repeated(".shape", 50000),
        "y = x" + repeated(" ** 2", 50000), "y = " + repeated("-", 50000) + "x", "y = x" + repeated("(1)", 50000),
        "require(" + repeated("not ", 50000) + "true, 'no')"}) {
    const std::string error = line_error(line);
    CHECK(has(error, "small.json, function 'f', line 9: this is nested more than 200 deep"));
    CHECK(has_one_caret(error));
  }
  CHECK(line_error("y = " + repeated("neg(", 150) + "x" + repeated(")", 150)) == "");
}

TEST_CASE("4,000 nested blocks are refused, 150 are recorded") {
  CHECK(record_error(chained(150, "p(x) + 1")) == "");
  const std::string error = record_error(chained(4000, "p(x) + 1"));
  CHECK(has(error, "modules are nested more than 200 deep"));
  CHECK(has(error, "small.json, block 'b199', line"));
  CHECK(has(error, "\n    …\n    from small.json, model, line "));
  CHECK(std::count(error.begin(), error.end(), '\n') < 16);  // of a long chain, the first callers and the last one
}

TEST_CASE("blocks that each apply the next twice stop at the limit of steps, with the part and the line") {
  CHECK(ModelOptions().max_steps == 2'000'000);
  ModelOptions options;
  options.max_steps = 200'000;  // ThreadSanitizer needs 14 KB for each step
  const std::string error = record_error(chained(40, "p(p(x)) + 1"), options);
  CHECK(has(error, "this takes more than 200000 steps to record"));
  CHECK(has(error, "small.json, block 'b"));
  CHECK(has(error, "(module p.p.p.p.p"));
  CHECK(error.find('^') != std::string::npos);
  CHECK(has(record_error(chained(40, "p(p(x))"), options), "steps to record"));  // also where nothing is recorded
  options.max_steps = 100;
  CHECK(record_error(chained(3, "p(p(x)) + 1"), options) == "");
  CHECK(has(record_error(chained(6, "p(p(x)) + 1"), options), "this takes more than 100 steps"));
}

TEST_CASE("models whose parts multiply are refused before memory is full") {
  std::string blocks;
  for (int i = 0; i < 40; ++i) {
    const std::string next = "{\"block\": \"b" + std::to_string(i + 1) + "\"}";
    blocks += "\"b" + std::to_string(i) + "\": {\"modules\": {\"p\": " + next + ", \"q\": " + next +
              "}, \"inputs\": [\"x\"], \"result\": \"p(q(x))\"},\n";
  }
  std::string text = chained(0, "x");
  text.replace(text.find("\"b0\": {"), 0, "");
  text.insert(text.find("\"blocks\": {") + 11, blocks);
  text.replace(text.rfind("\"b0\": {\"inputs\""), 4, "\"b40\"");
  CHECK(has(record_error(text), "the model has more than 262144 modules"));
}

TEST_CASE("tuples and texts that double line by line are refused before memory is full") {
  std::vector<std::string> lines = {"a = (x, x)"};
  for (int i = 0; i < 60; ++i) lines.push_back("a = a + a");
  CHECK(has(record_error(one_function(lines, "a[0]")), "steps to record"));
  lines = {"a = (x, x)"};
  for (int i = 0; i < 60; ++i) lines.push_back("a = (a, a)");
  CHECK(has(record_error(one_function(lines, "x")), "steps to record"));
  lines = {"a = (x,)"};
  for (int i = 0; i < 1000; ++i) lines.push_back("a = (a,)");
  CHECK(has(record_error(one_function(lines, "x")), "tuples are nested more than 200 deep"));
  lines = {"a = 'ab'"};
  for (int i = 0; i < 60; ++i) lines.push_back("a = a + a");
  CHECK(has(record_error(one_function(lines, "x")), "the text would be longer than 1048576 bytes"));
}

TEST_CASE("10,000 hyper-parameters, each of the next, are resolved in either order") {
  for (const bool forwards : {true, false}) {
    std::string hyper = forwards ? "\"h10000\": 1" : "\"h0\": 1";
    for (int i = 0; i < 10000; ++i) {
      const std::string low = "h" + std::to_string(i), high = "h" + std::to_string(i + 1);
      hyper += ", \"" + (forwards ? low : high) + "\": \"" + (forwards ? high : low) + " + 1\"";
    }
    const Model model = Model::parse(
        "{\"xtape\": 2, \"hyper\": {" + hyper +
        "}, \"model\": {\"functions\": {\"f\": {\"inputs\": {\"x\": \"float [n]\"}, \"result\": \"x\"}}}}");
    CHECK(model.hyper().integer(forwards ? "h0" : "h10000") == 10001);
  }
}

namespace {
double parse_seconds(const std::string& text) {
  return least_processor_seconds([&] { Model::parse(text); });
}
}  // namespace

TEST_CASE("the time that a definition takes is linear in its functions, weights and modules") {
  const auto definition = [](int count) {
    std::string weights, modules, functions;
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i), before = std::to_string(std::max(0, i - 1));
      const char* comma = i == 0 ? "" : ",\n";
      weights += comma + ("\"w" + number) + R"(": {"shape": [1], "init": "zeros"})";
      modules += comma + ("\"m" + number) + R"(": {"block": "b"})";
      functions += comma + ("\"f" + number) + R"(": {"inputs": {"x": "float [n]"}, "result": ")" +
                   (i == 0 ? "x" : "f" + before + "(x)") + " + m" + number + "(x) * w" + number + "\"}";
    }
    return R"({"xtape": 2, "blocks": {"b": {"inputs": ["x"], "result": "x"}}, "model": {"weights": {)" + weights +
           "}, \"modules\": {" + modules + "}, \"functions\": {" + functions + "}}}";
  };
  // Ten times as many take ten times as long; where each looked through all, more than forty times.
  CHECK(parse_seconds(definition(15000)) < 20 * std::max(parse_seconds(definition(1500)), 0.02));
}

TEST_CASE("the time that a definition takes is linear in its hyper-parameters") {
  const auto definition = [](int count) {
    std::string hyper = "\"h0\": 1";
    for (int i = 1; i < count; ++i) hyper += ", \"h" + std::to_string(i) + "\": \"h" + std::to_string(i - 1) + " + 1\"";
    return "{\"xtape\": 2, \"hyper\": {" + hyper +
           "}, \"model\": {\"functions\": {\"f\": {\"inputs\": {\"x\": \"float [n]\"}, \"result\": \"x\"}}}}";
  };
  // Ten times as many take ten times as long; where each looked through all, a hundred times.
  CHECK(parse_seconds(definition(50000)) < 40 * std::max(parse_seconds(definition(5000)), 0.02));
}

TEST_CASE("functions that call each other in a long chain are refused") {
  std::string functions = "\"f0\": {\"inputs\": {\"x\": \"float [n]\"}, \"result\": \"x\"}";
  for (int i = 1; i < 1000; ++i)
    functions += ", \"f" + std::to_string(i) + "\": {\"inputs\": {\"x\": \"float [n]\"}, \"result\": \"f" +
                 std::to_string(i - 1) + "(x)\"}";
  const Model model = Model::parse("{\"xtape\": 2, \"model\": {\"functions\": {" + functions + "}}}", {}, "small.json");
  Tape tape;
  const NamedVars inputs = model.inputs(tape, "f999", {{"n", 2}});
  CHECK(has(error_of([&] { model.record(tape, "f999", inputs); }), "functions call each other more than 200 deep"));
  CHECK(model.record(tape, "f100", inputs).size() == 1);
}

namespace {
constexpr std::size_t small_stack = 224 << 10;

/// Begins a thread with a stack of that many bytes and waits for its end; what pthread_create gives.
int run_on_stack(std::size_t bytes, void* (*work)(void*), void* data) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, bytes);
  pthread_t thread;
  const int made = pthread_create(&thread, &attributes, work, data);
  if (made == 0) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return made;
}

/// ThreadSanitizer keeps more than that on a thread's stack.
Needs needs_small_stacks() {
  const auto nothing = [](void*) -> void* { return nullptr; };
  return {run_on_stack(small_stack, nothing, nullptr) == 0, "threads with a stack of 224 KiB"};
}
}  // namespace

TEST_CASE("a thread with a small stack gets an error, not a crash" * needs_small_stacks()) {
  struct Job {
    std::string text, error;
  };
  const auto nested = [](int depth, const std::string& inner) {
    return repeated("neg(", depth) + inner + repeated(")", depth);
  };
  const std::pair<std::size_t, std::string> cases[] = {
      {1 << 20, chained(190, nested(180, "p(x)"))},                    // while it is recorded, at the latest
      {small_stack, one_function({"y = " + nested(190, "x")}, "y")}};  // while it is read
  for (const auto& each : cases) {
    Job job{each.second, "none"};
    const auto work = [](void* data) -> void* {
      auto& job = *static_cast<Job*>(data);
      job.error = error_of([&] {
        const Model model = Model::parse(job.text);
        Tape tape(Mode::eval);
        model.record(tape, "f", model.inputs(tape, "f", {{"b", 2}, {"t", 3}}));
      });
      return nullptr;
    };
    REQUIRE(run_on_stack(each.first, work, &job) == 0);
    CHECK(has(job.error, "nested too deeply for this thread's stack"));
  }
}

TEST_CASE("numbers that float64 does not hold are errors, integers are exact up to 2^63 - 1") {
  CHECK(line_error("y = x * 1e400") ==
        "small.json, function 'f', line 9: this number is out of range: float64 goes from 4.9e-324 to 1.8e308\n"
        "    y = x * 1e400\n"
        "            ^");
  CHECK(has(line_error("y = x * 1e-400"), "this number is out of range"));
  CHECK(has(line_error("y = x * 9223372036854775808"), "this integer is too large"));
  const auto hyper = [](const std::string& value, const std::string& set = "") {
    ModelOptions options;
    if (!set.empty()) options.hyper = {{"n", set}};
    return Model::parse("{\"xtape\": 2, \"hyper\": {\"n\": " + value +
                            R"(}, "model": {"functions": {"f": {"inputs": {"x": "float [b]"}, "result": "x"}}}})",
                        options, "small.json");
  };
  for (const std::string text : {"9007199254740993", "9223372036854775807", "-9223372036854775807"}) {
    CHECK(std::to_string(hyper(text).hyper().integer("n")) == text);
    CHECK(std::to_string(hyper("\"" + text + " + 0\"").hyper().integer("n")) == text);
    CHECK(std::to_string(hyper("1", text).hyper().integer("n")) == text);
    CHECK(std::to_string(Model::parse(hyper(text).definition_text()).hyper().integer("n")) == text);
  }
  for (const std::string text : {"9223372036854775808", "18446744073709551616", "-9223372036854775809"}) {
    const std::string error = error_of([&] { hyper(text); });
    CHECK(has(error, "small.json, hyper, line 1: this integer is too large"));
    CHECK(has_one_caret(error));
  }
  CHECK(line_error("require(9007199254740993 != 9007199254740992, 'no')\", \"y = x") == "");
  CHECK(line_error("require(max(9007199254740993, 9007199254740992) == 9007199254740993, 'no')\", \"y = x") == "");
  CHECK(line_error("require(floor(9007199254740993) == 9007199254740993, 'no')\", \"y = x") == "");
  CHECK(hyper("1e-5").hyper().number("n") == 1e-5);
  CHECK(hyper("-2.5E+3").hyper().number("n") == -2500);
}

TEST_CASE("a size that is misspelt is an error, not a new name") {
  const auto with = [](const std::string& inputs, const std::string& result = "x") {
    return error_of([&] {
      Model::parse(
          "{\"xtape\": 2, \"hyper\": {\"width\": 4, \"n_heads\": 2, \"d_k\": 3},\n\"blocks\": {\"a\": "
          "{\"inputs\": {" +
              inputs + "}, \"result\": \"" + result + "\"}},\n" +
              R"json("model": {"modules": {"p": {"block": "a"}},
"functions": {"f": {"inputs": {"x": "float [b, width]"}, "result": "p(x)"}}}})json",
          {}, "small.json");
    });
  };
  CHECK(with("\"x\": \"float [..., widht]\"") ==
        "small.json, block 'a', line 2: the size 'widht' occurs only here; did you mean 'width'?\n"
        "    float [..., widht]\n"
        "                ^");
  CHECK(has(with("\"x\": \"float [b, t, wdth]\""), "did you mean 'width'?"));
  CHECK(has(with("\"x\": \"float [b, t, widtth]\""), "did you mean 'width'?"));
  CHECK(has(with("\"x\": \"float [b, t, wifth]\""), "did you mean 'width'?"));
  CHECK(has(with("\"x\": \"float [b, n_head]\""), "did you mean 'n_heads'?"));
  CHECK(has(with("\"x\": \"float [b, time]\", \"y\": \"float [b, time]\", \"z\": \"float [b, tiem]\""),
            "the size 'tiem' occurs only here; did you mean 'time'?"));
  // Names of their own: short ones, other words, other letters between underscores, what the lines use.
  CHECK(with("\"x\": \"float [b, d_v]\"") == "");
  CHECK(with("\"x\": \"float [b, w]\", \"y\": \"float [b, s]\"") == "");
  CHECK(with("\"x\": \"float [q_len, d]\", \"y\": \"float [k_len, d]\", \"z\": \"float [k_len, d]\"") == "");
  CHECK(with("\"x\": \"float [b, max_width]\", \"y\": \"float [b, width2]\"") == "");
  CHECK(with("\"x\": \"float [b, wdth]\"", "x * wdth") == "");
}

TEST_CASE("results that are none, and names that stand twice or mean two things, are one error each") {
  const auto load_error = [](const std::string& text) {
    return error_of([&] { Model::parse(text, {}, "small.json"); });
  };
  CHECK(load_error(one_function({}, "()")) ==
        "small.json, function 'f', line 10: at least one result belongs here\n    ()\n    ^");
  CHECK(has(record_error(one_function({"y = ()"}, "y")), "a function must have at least one result"));
  CHECK(has(load_error(one_function({}, "")), "an expression belongs here"));
  CHECK(has(load_error(one_function({""}, "x")), "an expression belongs here"));
  CHECK(has(load_error(one_function({}, "x, x")), "two results are called 'x'"));
  std::string named = one_function({}, "x");
  named.replace(named.find("\"result\": \"x\""), 13, "\"result\": {\"a\": \"x, x\"}");
  CHECK(has(record_error(named), "result 'a' is not an array but (float32 (2, 3), float32 (2, 3))"));
  const auto model = [](const std::string& parts, const std::string& functions) {
    return "{\"xtape\": 2, \"blocks\": {\"a\": {\"inputs\": [\"x\"], \"result\": \"x\"}}, \"model\": {\"modules\": {" +
           parts + "}, \"functions\": {" + functions + "}}}";
  };
  CHECK(has(load_error(model("\"p\": {\"block\": \"a\"}",
                             "\"p\": {\"inputs\": {\"x\": \"float [b]\"}, \"result\": \"p(x)\"}")),
            "'p' is the name of a module of the model already"));
  CHECK(has(load_error("{\"xtape\": 2, \"blocks\": {\"\": {\"inputs\": [], \"result\": \"1\"}}}"),
            "'' cannot be a name"));
  CHECK(has(load_error("{\"xtape\": 2, \"use\": [\"\"]}"), "cannot find ''"));
  CHECK(has(
      load_error(one_function({}, "x").replace(one_function({}, "x").find("[b, t]"), 6, "[1,1,1,1,1,1,1,1,1,1,1,1]")),
      "an array has at most 10 axes"));
}

TEST_CASE("definitions that are directories, pipes or use one another without end are refused") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("xtape-limits-" + std::to_string(getpid()));
  fs::create_directories(folder / "folder.json");
  REQUIRE(mkfifo((folder / "pipe.json").c_str(), 0600) == 0);
  for (const char* name : {"folder.json", "pipe.json", "none.json"})
    CHECK_THROWS_AS(Model::load((folder / name).string()), FileError);
  const auto write = [&](const std::string& name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("uses.json", "{\"xtape\": 2, \"use\": [\"pipe.json\"]}");
  CHECK(has(error_of([&] { Model::load((folder / "uses.json").string()); }), "cannot find 'pipe.json'"));
  write("300.json", "{\"xtape\": 2}");
  for (int i = 0; i < 300; ++i)
    write(std::to_string(i) + ".json", "{\"xtape\": 2, \"use\": [\"" + std::to_string(i + 1) + ".json\"]}");
  CHECK(has(error_of([&] { Model::load((folder / "0.json").string()); }), "files use each other more than 200 deep"));
  // Forty files that each use the next twice are read once each.
  for (int i = 0; i < 40; ++i) {
    const std::string next = "\"" + std::to_string(i == 39 ? 300 : i + 1) + ".json\"";
    write(std::to_string(i) + ".json", "{\"xtape\": 2, \"use\": [" + next + ", " + next + "]}");
  }
  CHECK(has(error_of([&] { Model::load((folder / "0.json").string()); }), "no \"model\""));
  fs::remove_all(folder);
}
