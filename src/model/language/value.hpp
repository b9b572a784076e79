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

struct Function;
struct Module;
struct ModuleList;

/// Some of the elements of a list: first, first + step, ….
struct Range {
  std::int64_t first = 0, step = 1, count = 0;
  std::int64_t at(std::int64_t i) const { return first + i * step; }
  bool operator==(const Range&) const = default;
};

/// A reference to a module: one, or several repeats in the order in which a call applies them.
struct ModuleReference {
  const ModuleList* list = nullptr;
  bool several = false;  ///< Repeats: h, h[1:] or h[::-1].
  bool every = false;    ///< h.all, whose call returns the results of all repeats.
  Range range;           ///< The repeats. If not several, the module itself, or nothing if it is left out.

  explicit ModuleReference(const ModuleList& list);
  const Module* at(std::int64_t i) const;     ///< The module number i in the range; null if there is none.
  ModuleReference one(std::int64_t i) const;  ///< A reference to the module number i in the range.
  bool operator==(const ModuleReference&) const = default;
};

/// A reference to a function of the model, to an op or to a function of plain values.
struct FunctionReference {
  std::string name;
  const Function* function = nullptr;  ///< The function of the model, or null.
  bool operator==(const FunctionReference&) const = default;
};

/// The value `none`. It stands for a weight or module whose `when` is false, or for an argument that is left out.
struct None {};

struct Value;
using Tuple = std::vector<Value>;

struct Value {
  std::variant<None, bool, std::int64_t, double, std::string, Var, Tuple, ModuleReference, FunctionReference> held;

  Value() = default;
  template <class T>
  Value(T value) : held(std::move(value)) {}  // NOLINT: converts by intent

  template <class T>
  const T* as() const {
    return std::get_if<T>(&held);
  }
  bool is_none() const { return as<None>() != nullptr; }
  bool is_callable() const { return as<ModuleReference>() != nullptr || as<FunctionReference>() != nullptr; }
  bool is_number() const { return as<std::int64_t>() != nullptr || as<double>() != nullptr; }
  double number() const;  ///< The value as a double; requires is_number().
};
using Values = std::map<std::string, Value>;

/// Describes the value for error messages: "float32 (2, 3)", "7", "'tanh'", "none". Long tuples and texts are
/// truncated.
std::string describe(const Value& value);

/// Returns an array, number or flag as the operand of an op. Returns nothing for any other value.
std::optional<Operand> operand_of(const Value& value);

/// Returns the number of elements of a tuple, including those of nested tuples, or of repeats of a module, or 0 for any
/// other value. Throws Error if tuples are nested more than `deepest` levels deep.
std::int64_t elements_of(const Value& value, int depth = 0);

/// Returns the elements of a tuple, or the repeats of a repeated module. Returns nothing for any other value.
std::optional<Tuple> as_tuple(const Value& value);

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
/// Whether the two values are equal, at record time. Throws Error for arrays.
bool same(const Value& a, const Value& b);

/// Calls a function of values that are known while recording: sqrt of a number, max of numbers or of a tuple, len, ….
/// Returns nothing if the arguments are for the op of this name. Throws Error.
std::optional<Value> plain_function(const std::string& name, const Tuple& arguments);
/// The names of these functions.
const std::vector<std::string>& plain_functions();

/// Returns the indices of elements[start:stop:step] in a list of `count` elements. The other arguments are those of the
/// op `slice`.
Range range_of(std::int64_t count, std::int64_t start, std::int64_t stop, std::int64_t step);
/// Returns how many of first, first + step, … come before `last`.
std::uint64_t steps_between(std::int64_t first, std::int64_t last, std::int64_t step);

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
