/// The values of expressions: vars on a tape, and values that are known at record time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape::model {

struct Module;
struct ModuleList;

/// A reference to a whole module, to one of its repeats (h[0]), or to the results of every repeat (h.all).
struct ModuleReference {
  const ModuleList* list = nullptr;
  std::int64_t item = -1;  ///< The index of one repeat, or -1.
  bool every = false;      ///< h.all
};

/// The value `none`. It stands for a weight or module whose `when` is false, or for an argument that is left out.
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
  double number() const;  ///< The value as a double; requires is_number().
};
using Values = std::map<std::string, Value>;

/// Describes the value for error messages: "float32 (2, 3)", "7", "'tanh'", "none". Long tuples and texts are
/// truncated.
std::string describe(const Value& value);

/// Returns an array, number or flag as the operand of an op. Returns nothing for any other value.
std::optional<Operand> operand_of(const Value& value);

/// Returns the number of elements of a tuple, including those of nested tuples, or 0 for any other value. Throws Error
/// if tuples are nested more than `deepest` levels deep.
std::int64_t elements_of(const Value& value, int depth = 0);

/// Appends the vars of a value, including those of nested tuples, to `vars`, in order.
void collect_vars(const Value& value, Vars& vars);
/// Returns the vars of an array, or of nested tuples of arrays and `none`. Throws Error, which begins with `what`, for
/// any other value, and if there is no array. A number among arrays is an error, because it can be no argument of a
/// derivative and no state of a scan.
Vars arrays_of(const std::string& what, const Value& value);
/// Returns the value with its vars replaced, in order, by the elements of `vars` from index `next` on. Advances `next`.
Value replace_vars(const Value& value, const Vars& vars, std::size_t& next);

/// Applies a binary or unary operator. Throws Error without a location.
Value binary(const std::string& symbol, const Value& a, const Value& b);
Value unary(const std::string& symbol, const Value& a);
/// Applies sqrt, exp, log, abs, floor, min or max to plain numbers. Throws Error.
Value number_function(const std::string& name, const std::vector<Value>& arguments);
bool is_number_function(const std::string& name);

/// Returns the elements of tuple[start:stop:step]. The arguments are those of the op `slice`.
Tuple slice_of(const Tuple& tuple, std::int64_t start, std::int64_t stop, std::int64_t step);

/// One axis of an index: an integer, a range, an ellipsis, or none (a new axis).
struct AxisIndex {
  enum class Kind : std::uint8_t { at, range, ellipsis, fresh };
  Kind kind = Kind::range;
  std::int64_t at = 0;
  std::int64_t start, stop, step;  ///< A range with the meaning of the op `slice`.
};
/// Records x[axes]. Throws Error.
Var index_var(const Var& x, const std::vector<AxisIndex>& axes);

}  // namespace xtape::model
