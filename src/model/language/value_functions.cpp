// Functions of numbers, flags, texts and tuples that are known while recording.
#include <algorithm>
#include <cmath>

#include "base/messages/wording.hpp"
#include "kernels/table/kernels.hpp"
#include "model/language/value.hpp"

namespace xtape::model {

namespace {
constexpr std::size_t longest = 1 << 20;  // elements of a tuple

std::string described(const Tuple& arguments) {
  return arguments.empty() ? "nothing" : joined(arguments, describe);
}
[[noreturn]] void refuse(const std::string& name, const std::string& wanted, const Tuple& arguments) {
  throw Error(name + " takes " + wanted + ", not " + described(arguments));
}

bool all_numbers(const Tuple& values) {
  return std::ranges::all_of(values, &Value::is_number);
}

std::int64_t whole(const std::string& name, double x) {
  if (std::isnan(x)) throw Error(name + " of nan is not defined");
  if (!(x >= -0x1p63 && x < 0x1p63)) throw Error(name + ": " + describe(x) + " is too large for an integer");
  return static_cast<std::int64_t>(x);
}

Value of_number(const std::string& name, const Value& argument) {
  const auto* integer = argument.as<std::int64_t>();
  const double x = argument.number();
  if (name == "abs") return integer != nullptr ? (*integer < 0 ? unary("-", argument) : argument) : std::abs(x);
  if (name == "exp") return kernels().numbers.exp(x);
  if (name == "sqrt" || name == "log") {
    if (name == "sqrt" ? x < 0 : x <= 0) throw Error(name + " of " + describe(argument) + " is not defined");
    return name == "sqrt" ? std::sqrt(x) : kernels().numbers.log(x);
  }
  if (integer != nullptr) return argument;
  return whole(name, name == "floor" ? std::floor(x) : name == "ceil" ? std::ceil(x) : std::nearbyint(x));
}

/// The least or greatest number. As with the ops, NaN is the result if there is one.
Value extreme(bool least, const Tuple& numbers) {
  const auto less = [](const Value& a, const Value& b) {
    const auto* i = a.as<std::int64_t>();
    const auto* j = b.as<std::int64_t>();
    return i != nullptr && j != nullptr ? *i < *j : a.number() < b.number();
  };
  const auto nan = std::ranges::find_if(numbers, [](const Value& each) { return std::isnan(each.number()); });
  if (nan != numbers.end()) return *nan;
  return least ? *std::ranges::min_element(numbers, less) : *std::ranges::max_element(numbers, less);
}

Value extreme_of(const std::string& name, const Tuple& elements) {
  if (elements.empty()) throw Error(name + " of an empty tuple is not defined");
  if (!all_numbers(elements)) {
    const bool arrays = std::ranges::any_of(elements, [](const Value& each) { return each.as<Var>() != nullptr; });
    throw Error(name + " of a tuple takes numbers, not " + describe(elements) +
                (arrays ? ": " + name + "imum(a, b) compares arrays element by element" : ""));
  }
  return extreme(name == "min", elements);
}

/// The sum or product of numbers and arrays, from left to right.
Value total(const std::string& name, const Tuple& elements) {
  Value total = std::int64_t{name == "prod"};
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!elements[i].is_number() && elements[i].as<Var>() == nullptr && !elements[i].is_none())
      throw Error(name + " of a tuple takes numbers and arrays, not " + describe(elements[i]));
    total = i == 0 ? elements[0] : binary(name == "sum" ? "+" : "*", total, elements[i]);
  }
  return total;
}

Value any_or_all(const std::string& name, const Tuple& flags) {
  for (const Value& each : flags)
    if (each.as<bool>() == nullptr) throw Error(name + " of a tuple takes flags, not " + describe(each));
  const auto holds = [](const Value& each) { return *each.as<bool>(); };
  return name == "any" ? std::ranges::any_of(flags, holds) : std::ranges::all_of(flags, holds);
}

Value length(const Tuple& arguments) {
  if (arguments.size() == 1) {
    if (const auto* text = arguments[0].as<std::string>()) return std::ssize(*text);
    if (const auto* var = arguments[0].as<Var>(); var != nullptr && var->rank() > 0) return var->shape()[0];
    if (const auto tuple = as_tuple(arguments[0])) return std::ssize(*tuple);
  }
  refuse("len", "a tuple, a text, or an array with axes", arguments);
}

Value number(const std::string& name, const Tuple& arguments) {
  if (arguments.size() == 1 && arguments[0].as<Var>() != nullptr)
    throw Error(name + " takes a number that is known while recording: cast(x, '" + name + "') converts an array");
  if (arguments.size() != 1 || !(arguments[0].is_number() || arguments[0].as<bool>() != nullptr))
    refuse(name, "a number or a flag", arguments);
  const auto* flag = arguments[0].as<bool>();
  const Value value = flag != nullptr ? Value(std::int64_t{*flag}) : arguments[0];
  if (name == "float") return value.number();
  return value.as<std::int64_t>() != nullptr ? value : whole(name, value.number());
}

Value range(const Tuple& arguments) {
  std::vector<std::int64_t> given;
  for (const Value& each : arguments)
    if (const auto* integer = each.as<std::int64_t>()) given.push_back(*integer);
  if (given.empty() || given.size() > 3 || given.size() != arguments.size())
    refuse("range", "one to three integers", arguments);
  if (given.size() == 1) given.insert(given.begin(), 0);
  if (given.size() == 2) given.push_back(1);
  if (given[2] == 0) throw Error("a step cannot be 0");
  const std::uint64_t count = steps_between(given[0], given[1], given[2]);
  if (count > longest) throw Error("the tuple would have more than " + std::to_string(longest) + " elements");
  Tuple integers;
  std::int64_t next = given[0];
  for (std::uint64_t i = 0; i < count; ++i) {
    integers.emplace_back(next);
    if (i + 1 < count) next += given[2];  // not beyond the last, which may overflow
  }
  return integers;
}

/// zip(a, b) is ((a[0], b[0]), (a[1], b[1]), …), and enumerate(a) is zip(range(len(a)), a).
Value zip(const std::string& name, const Tuple& arguments) {
  std::vector<Tuple> lists;
  for (const Value& each : arguments) {
    auto list = as_tuple(each);
    if (!list) refuse(name, "tuples", arguments);
    lists.push_back(std::move(*list));
  }
  if (name == "enumerate" ? lists.size() != 1 : lists.empty())
    refuse(name, name == "zip" ? "tuples" : "one tuple", arguments);
  const std::size_t count = lists[0].size();
  for (const Tuple& each : lists)
    if (each.size() != count)
      throw Error("zip takes tuples of one length, not of " + std::to_string(count) + " and " +
                  std::to_string(each.size()) + " elements");
  Tuple rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    Tuple row;
    if (name == "enumerate") row.emplace_back(static_cast<std::int64_t>(i));
    for (const Tuple& list : lists) row.push_back(list[i]);
    rows[i] = std::move(row);
  }
  return rows;
}
}  // namespace

const std::vector<std::string>& plain_functions() {
  static const std::vector<std::string> names = {"sqrt", "exp",   "log",   "abs",  "floor",    "ceil", "round",
                                                 "min",  "max",   "sum",   "prod", "any",      "all",  "len",
                                                 "int",  "float", "range", "zip",  "enumerate"};
  return names;
}

std::optional<Value> plain_function(const std::string& name, const Tuple& arguments) {
  if (name == "len") return length(arguments);
  if (name == "int" || name == "float") return number(name, arguments);
  if (name == "range") return range(arguments);
  if (name == "zip" || name == "enumerate") return zip(name, arguments);
  const bool extremes = name == "min" || name == "max";
  const bool numbers = !arguments.empty() && all_numbers(arguments);
  if (const auto* tuple = arguments.size() == 1 ? arguments[0].as<Tuple>() : nullptr) {
    if (extremes) return extreme_of(name, *tuple);
    if (name == "sum" || name == "prod") return total(name, *tuple);
    if (name == "any" || name == "all") return any_or_all(name, *tuple);
  }
  if (!numbers) return std::nullopt;
  if (extremes) return extreme(name == "min", arguments);
  if (name == "sum" || name == "prod" || name == "any" || name == "all") return std::nullopt;
  if (arguments.size() != 1) throw Error(name + " takes one number, got " + std::to_string(arguments.size()));
  return of_number(name, arguments[0]);
}

}  // namespace xtape::model
