/// What an expression comes to: a var on the tape, or something known while recording.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape::model {

struct Module;
struct ModuleList;

/// A module as an expression names it: whole, one of its repeats (h[0]), or every result of its repeats (h.all).
struct ModuleReference {
  const ModuleList* list = nullptr;
  std::int64_t item = -1;
  bool every = false;
};

/// What is left out: a weight whose condition is false, an argument not given.
struct None {};

struct Value;
using Tuple = std::vector<Value>;

struct Value {
  std::variant<None, bool, std::int64_t, double, std::string, Var, Tuple, ModuleReference> held;

  Value() = default;
  template <class T>
  Value(T value) : held(std::move(value)) {}  // NOLINT: converts by intent

  template <class T>
  const T* as() const {
    return std::get_if<T>(&held);
  }
  bool is_none() const { return as<None>() != nullptr; }
  bool is_number() const { return as<std::int64_t>() != nullptr || as<double>() != nullptr; }
  double number() const;  ///< Of an integer or a number.
};
using Values = std::map<std::string, Value>;

/// As an error shows it: "float32 (2, 3)", "7", "'tanh'", "none". Of long tuples and texts, the beginning.
std::string describe(const Value& value);

/// The elements of a tuple and of the tuples inside it; 0 of anything else. Throws Error where they nest too deeply.
std::int64_t elements_of(const Value& value, int depth = 0);

/// Collects the vars inside, tuples and all, in order.
void collect_vars(const Value& value, Vars& vars);
/// The same value with its vars replaced, in order, from `next` on.
Value replace_vars(const Value& value, const Vars& vars, std::size_t& next);

/// The outcome of a binary or unary operator. Throws Error (not yet with a place).
Value binary(const std::string& symbol, const Value& a, const Value& b);
Value unary(const std::string& symbol, const Value& a);
/// sqrt, min, … of plain numbers. Throws Error.
Value number_function(const std::string& name, const std::vector<Value>& arguments);
bool is_number_function(const std::string& name);

/// One axis of an index: an integer, a range, an ellipsis, or none (a new axis).
struct AxisIndex {
  enum class Kind : std::uint8_t { at, range, ellipsis, fresh };
  Kind kind = Kind::range;
  std::int64_t at = 0;
  std::int64_t start, stop, step;  ///< Of a range, as op `slice` takes them.
};
/// x[...]. Throws Error.
Var index_var(const Var& x, const std::vector<AxisIndex>& axes);

}  // namespace xtape::model
