// Arithmetic of plain numbers, against Python (python_numbers.json) and against the ops of the same names.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "definitions.hpp"
#include "model/language/value.hpp"
#include "source_root.hpp"
#include "xtape/text.hpp"

using namespace xtape;
using model::Value;

namespace {
Value number_of(const std::string& text) {
  const bool whole = text.find_first_of("xin") == std::string::npos;
  return whole ? Value(static_cast<std::int64_t>(std::stoll(text))) : Value(std::strtod(text.c_str(), nullptr));
}

/// The value, or a word for the error, as in python_numbers.json.
struct Outcome {
  Value value = {};
  std::string error = {};
};
template <class Compute>
Outcome outcome(const Compute& compute) {
  try {
    return {compute()};
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* word : {"division by zero", "too large", "not defined", "not an integer"})
      if (text.find(word) != std::string::npos) return {{}, word};
    return {{}, text};
  }
}

/// Whether two numbers are the same, zeros with their signs, or differ by this part.
bool near(double a, double b, double part = 0) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b ? std::signbit(a) == std::signbit(b) : std::abs(a - b) <= part * std::abs(b);
}
bool near(const Value& a, const Value& b, double part = 0) {
  const auto *i = a.as<std::int64_t>(), *j = b.as<std::int64_t>();
  if ((i == nullptr) != (j == nullptr)) return false;
  return i != nullptr ? *i == *j : near(a.number(), b.number(), part);
}

/// What the op of an operator computes, in int64 if both numbers are integers and otherwise in float64.
Value played(const std::string& symbol, const Value& a, const Value& b) {
  const bool whole = a.as<std::int64_t>() != nullptr && b.as<std::int64_t>() != nullptr;
  Tape tape;
  const auto constant = [&](const Value& value) {
    const auto* integer = value.as<std::int64_t>();
    return whole ? tape.constant(*integer, Dtype::int64) : tape.constant(value.number(), Dtype::float64);
  };
  const Value result = model::binary(symbol, constant(a), constant(b));
  const Array array = evaluate(*result.as<Var>());
  return array.dtype() == Dtype::int64 ? Value(*array.as<std::int64_t>()) : Value(*array.as<double>());
}
}  // namespace

TEST_CASE("arithmetic of plain numbers is Python's and that of the ops, also at the ends of both kinds of numbers") {
  const auto golden = nlohmann::json::parse(read_text(source_root() + "/tests/golden/data/python_numbers.json"));
  const auto numbers = golden.at("numbers").get<std::vector<std::string>>();
  const std::map<std::string, std::string> raised = {{"division by zero", "division by zero"},
                                                     {"inexact", "not an integer"},
                                                     {"too large", "too large"},
                                                     {"undefined", "not defined"}};
  int compared = 0, of_ops = 0;
  for (const auto& [symbol, rows] : golden.at("results").items())
    for (std::size_t i = 0; i < numbers.size(); ++i)
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        const Value a = number_of(numbers[i]), b = number_of(numbers[k]);
        const bool whole = a.as<std::int64_t>() != nullptr && b.as<std::int64_t>() != nullptr;
        const std::string wanted = rows.at(i).at(k);
        const Outcome found = outcome([&, operation = symbol] { return model::binary(operation, a, b); });
        const std::string expression = numbers[i] + " " + symbol + " " + numbers[k];
        CAPTURE(expression);
        CAPTURE(wanted);
        CAPTURE(found.error);
        ++compared;
        if (wanted == "too large" && !whole) {
          CHECK(std::isinf(found.value.number()));  // Python raises OverflowError
        } else if (raised.count(wanted) != 0) {
          CHECK(found.error == raised.at(wanted));
          continue;
        } else {
          REQUIRE(found.error.empty());
          CHECK(near(found.value, number_of(wanted), symbol == "**" ? 1e-15 : 0));
        }
        if (symbol == "/" && whole) continue;  // the op gives a float
        if (symbol == "**" && found.value.as<std::int64_t>() == nullptr && whole)
          continue;  // and of integers an integer
        CHECK(near(played(symbol, a, b), found.value, symbol == "**" ? 1e-15 : 0));
        ++of_ops;
      }
  CHECK(compared == 7 * 26 * 26);
  CHECK(of_ops > 3500);
}

TEST_CASE("functions of plain numbers are the ops of these names in float64") {
  using Function = Var (*)(const Argument&);
  const std::vector<std::pair<std::string, Function>> functions = {
      {"sqrt", sqrt}, {"exp", exp}, {"log", log}, {"abs", abs}};
  for (const double x :
       std::initializer_list<double>{0.0, -0.0, 1.0, -1.0, 0.1, 709.0, 710.0, -745.0, 5e-324, 1.7976931348623157e308,
                                     INFINITY, -INFINITY, static_cast<double>(NAN)})
    for (const auto& each : functions) {
      CAPTURE(each.first);
      CAPTURE(x);
      const Outcome found = outcome([&] { return *model::plain_function(each.first, {x}); });
      if (!found.error.empty()) {
        CHECK(found.error == "not defined");
        CHECK((each.first == "log" ? x <= 0 : each.first == "sqrt" && x < 0));
        continue;
      }
      Tape tape;
      CHECK(near(*evaluate(each.second(tape.constant(x, Dtype::float64))).as<double>(), found.value.number(), 1e-15));
    }
  const auto floor = [](double x) { return outcome([&] { return *model::plain_function("floor", {x}); }); };
  CHECK(*floor(-0.5).value.as<std::int64_t>() == -1);
  CHECK(*floor(1e16).value.as<std::int64_t>() == 10000000000000000);
  CHECK(*floor(-0x1p63).value.as<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(floor(0x1p63).error == "too large");
  CHECK(floor(INFINITY).error == "too large");
  CHECK(floor(NAN).error == "not defined");
  for (const char* name : {"min", "max"})
    for (const std::vector<Value>& numbers : {std::vector<Value>{1.0, static_cast<double>(NAN)},
                                              std::vector<Value>{static_cast<double>(NAN), std::int64_t{1}}})
      CHECK(std::isnan(model::plain_function(name, numbers)->number()));
}

TEST_CASE("numbers without a value are errors in the language of a definition") {
  const auto error = [](const std::string& hyper) {
    return test::error_of([&] {
      Model::parse(R"({"xtape": 2, "name": "n", "hyper": {"r": ")" + hyper +
                   R"("}, "model": {"functions": {"f": {"inputs": {"x": "float [1]"}, "result": "x * r"}}}})");
    });
  };
  CHECK(error("0 ** -1").find("division by zero") != std::string::npos);
  CHECK(error("(-8) ** 0.5").find("(-8) ** 0.5 is not defined") != std::string::npos);
  CHECK(error("5.0 // 0").find("division by zero") != std::string::npos);
  CHECK(error("(-9223372036854775807 - 1) // -1").find("too large for an integer") != std::string::npos);
  CHECK(error("(-9223372036854775807 - 1) % -1").empty());
}
