// Operators and functions of values. Plain numbers are computed at once, and vars record ops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/messages/wording.hpp"
#include "kernels/elements/division.hpp"
#include "kernels/table/kernels.hpp"
#include "model/language/value.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

namespace {
[[noreturn]] void refuse_operands(const std::string& symbol, const Value& a, const Value& b) {
  const bool lists = (a.as<Var>() && b.as<Tuple>()) || (a.as<Tuple>() && b.as<Var>());
  throw Error("'" + symbol + "' cannot combine " + describe(a) + " and " + describe(b) +
              (lists ? ": array(tuple) makes an array of numbers, and stack(tuple) one of arrays" : ""));
}

/// Throws Error if a function of plain numbers has no value.
[[noreturn]] void refuse_result(const std::string& text) {
  throw Error(text + " is not defined");
}

double number_power(double base, double exponent) {
  if (base == 0 && exponent < 0 && std::isfinite(exponent)) throw Error("division by zero");
  const double result = kernels().numbers.pow(base, exponent);
  if (std::isnan(result) && !std::isnan(base) && !std::isnan(exponent))
    refuse_result("(" + describe(base) + ") ** " + describe(exponent));
  return result;
}

Value integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return number_power(static_cast<double>(base), static_cast<double>(exponent));
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) throw Error("the result of '**' is too large for an integer");
    if (result == 0 || result == 1) break;
    if (result == -1) return exponent % 2 == 0 ? std::int64_t{1} : std::int64_t{-1};
  }
  return result;
}

// Arithmetic of plain numbers is that of the ops in int64 and float64, from the same functions; powers are more exact.
// But where an op wraps, or gives 0 or infinity for a division by 0, there is an error.
Value integers(const std::string& symbol, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (symbol == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (symbol == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (symbol == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (symbol == "**") {
    return integer_power(a, b);
  } else {
    if (b == 0) throw Error("division by zero");
    if (symbol == "%") return Remainder{}(a, b);
    overflow = b == -1 && a == std::numeric_limits<std::int64_t>::min();
    if (symbol == "/" && Remainder{}(a, b) != 0)
      throw Error(std::to_string(a) + " / " + std::to_string(b) +
                  " is not an integer: '//' rounds down, and 1.0 * size is a number");
    result = FloorQuotient{}(a, b);
  }
  if (overflow) throw Error("the result of '" + symbol + "' is too large for an integer");
  return result;
}

Value numbers(const std::string& symbol, double a, double b) {
  if (symbol == "+") return a + b;
  if (symbol == "-") return a - b;
  if (symbol == "*") return a * b;
  if (symbol == "**") return number_power(a, b);
  if (b == 0) throw Error("division by zero");
  if (symbol == "/") return a / b;
  return symbol == "//" ? FloorQuotient{}(a, b) : Remainder{}(a, b);
}

bool is_comparison(const std::string& symbol) {
  return symbol == "==" || symbol == "!=" || symbol == "<" || symbol == "<=" || symbol == ">" || symbol == ">=";
}

template <class T>
bool compare(const std::string& symbol, const T& a, const T& b) {
  if (symbol == "==") return a == b;
  if (symbol == "!=") return a != b;
  if (symbol == "<") return a < b;
  if (symbol == "<=") return a <= b;
  return symbol == ">" ? a > b : a >= b;
}

Operand operand(const std::string& symbol, const Value& value, const Value& a, const Value& b) {
  if (const std::optional<Operand> found = operand_of(value)) return *found;
  refuse_operands(symbol, a, b);
}

Value vars(const std::string& symbol, const Value& left, const Value& right) {
  const Operand a = operand(symbol, left, left, right);
  const Operand b = operand(symbol, right, left, right);
  if (symbol == "+") return add(a, b);
  if (symbol == "-") return sub(a, b);
  if (symbol == "*") return mul(a, b);
  if (symbol == "/") return div(a, b);
  if (symbol == "//") return floor_divide(a, b);
  if (symbol == "**") return pow(a, b);
  if (symbol == "%") return mod(a, b);
  if (symbol == "==") return equal(a, b);
  if (symbol == "!=") return not_equal(a, b);
  if (symbol == "<") return less(a, b);
  if (symbol == "<=") return less_equal(a, b);
  if (symbol == ">") return greater(a, b);
  if (symbol == ">=") return greater_equal(a, b);
  if (a.is_literal() || b.is_literal()) refuse_operands(symbol, left, right);
  if (symbol == "@") return matmul(a.var(), b.var());
  return symbol == "and" ? logical_and(a.var(), b.var()) : logical_or(a.var(), b.var());
}

Value repeated(const Tuple& tuple, std::int64_t times) {
  constexpr std::int64_t longest = 1 << 20;
  if (times < 0) throw Error("a tuple cannot be repeated " + std::to_string(times) + " times");
  if (!tuple.empty() && times > longest / std::ssize(tuple))
    throw Error("the tuple would have more than " + std::to_string(longest) + " elements");
  Tuple all;
  for (std::int64_t i = 0; i < times && !tuple.empty(); ++i) all.insert(all.end(), tuple.begin(), tuple.end());
  return all;
}

/// Whether `in` finds the value in a tuple.
bool is_in(const Value& value, const Value& list) {
  const std::optional<Tuple> tuple = as_tuple(list);
  if (!tuple)
    throw Error("'in' looks for a value in a tuple, not in " + describe(list) +
                (list.as<Var>() != nullptr ? ": any(x == value) looks in an array" : ""));
  return std::ranges::any_of(*tuple, [&](const Value& each) { return same(value, each); });
}
}  // namespace

bool same(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    const auto* i = a.as<std::int64_t>();
    const auto* j = b.as<std::int64_t>();
    return i != nullptr && j != nullptr ? *i == *j : a.number() == b.number();
  }
  if (a.held.index() != b.held.index()) return false;
  if (a.as<Var>() != nullptr) throw Error("arrays in tuples are not compared: compare one element with another");
  const auto* left = a.as<Tuple>();
  const auto* right = b.as<Tuple>();
  if (left != nullptr) return std::equal(left->begin(), left->end(), right->begin(), right->end(), same);
  return std::visit(
      [&](const auto& held) {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, None> || std::is_same_v<Held, Var> || std::is_same_v<Held, Tuple>)
          return true;
        else
          return held == std::get<Held>(b.held);
      },
      a.held);
}

Value binary(const std::string& symbol, const Value& a, const Value& b) {
  if (symbol == "in" || symbol == "not in") return is_in(a, b) == (symbol == "in");
  const bool sums = symbol == "+" || symbol == "-";
  if (sums && b.is_none() && (a.as<Var>() != nullptr || a.is_number())) return a;
  if (symbol == "+" && a.is_none() && (b.as<Var>() != nullptr || b.is_number())) return b;
  if ((a.is_none() || b.is_none()) && (symbol == "==" || symbol == "!=")) return same(a, b) == (symbol == "==");
  if (a.as<Var>() != nullptr || b.as<Var>() != nullptr) {
    if (a.is_none() || b.is_none()) refuse_operands(symbol, a, b);
    return vars(symbol, a, b);
  }
  if (symbol == "==" || symbol == "!=") return same(a, b) == (symbol == "==");
  if (a.is_number() && b.is_number() && symbol != "and" && symbol != "or" && symbol != "@") {
    const auto* i = a.as<std::int64_t>();
    const auto* j = b.as<std::int64_t>();
    if (is_comparison(symbol)) return i && j ? compare(symbol, *i, *j) : compare(symbol, a.number(), b.number());
    return i && j ? integers(symbol, *i, *j) : numbers(symbol, a.number(), b.number());
  }
  if (a.as<bool>() && b.as<bool>() && (symbol == "and" || symbol == "or"))
    return symbol == "and" ? *a.as<bool>() && *b.as<bool>() : *a.as<bool>() || *b.as<bool>();
  if (symbol == "+" && a.as<std::string>() && b.as<std::string>()) {
    constexpr std::size_t longest = 1 << 20;
    if (a.as<std::string>()->size() + b.as<std::string>()->size() > longest)
      throw Error("the text would be longer than " + std::to_string(longest) + " bytes");
    return *a.as<std::string>() + *b.as<std::string>();
  }
  if (symbol == "+" && a.as<Tuple>() && b.as<Tuple>()) {
    Tuple joined = *a.as<Tuple>();
    joined.insert(joined.end(), b.as<Tuple>()->begin(), b.as<Tuple>()->end());
    return joined;
  }
  if (symbol == "*" && a.as<Tuple>() && b.as<std::int64_t>()) return repeated(*a.as<Tuple>(), *b.as<std::int64_t>());
  refuse_operands(symbol, a, b);
}

Value unary(const std::string& symbol, const Value& a) {
  if (symbol == "not") {
    if (const auto* flag = a.as<bool>()) return !*flag;
    if (const auto* var = a.as<Var>()) return logical_not(*var);
  } else {
    if (const auto* var = a.as<Var>()) return neg(*var);
    if (const auto* integer = a.as<std::int64_t>()) return integers("-", 0, *integer);
    if (const auto* number = a.as<double>()) return -*number;
  }
  throw Error("'" + symbol + "' cannot be applied to " + describe(a));
}

}  // namespace xtape::model
