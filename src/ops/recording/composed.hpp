/// Ops that are compositions of other ops. A table has a row for each op. Players execute the expansions, `grad`
/// differentiates them, and `vmap` maps them. A row therefore needs no kernel, gradient or batching rule. The rows are
/// constants, which need less memory than code that creates ops.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape {

/// An attribute with a default. The default of a flag or an integer is also given as a number.
struct AttributeRow {
  const char* name = nullptr;  ///< Null if there is no attribute.
  const char* doc = nullptr;
  double initial = 0;
  AttributeType type = AttributeType::number;
};

struct ComposedRow {
  const char* name = nullptr;
  /// The names of float inputs, separated by spaces. "#name" is an integer input, "!name" is a mask, "name?" is
  /// optional, and "=name" accepts any numbers.
  const char* inputs = nullptr;
  const char* doc = nullptr;
  Vars (*expand)(const ExpandCall&) = nullptr;
  std::array<AttributeRow, 4> attributes = {};
  bool differentiable = true;
};

using ShapeRule = std::vector<ValueType> (*)(const OpCall&);

/// Returns the ops of a family. Their rows share a shape rule and the attributes `shared`, which come after their own
/// attributes.
std::vector<Op> composed(const ComposedRow* rows, std::size_t count, ShapeRule shape,
                         const std::vector<AttributeSpec>& shared = {});
template <std::size_t n>
std::vector<Op> composed(const ComposedRow (&rows)[n], ShapeRule shape, const std::vector<AttributeSpec>& shared = {}) {
  return composed(rows, n, shape, shared);
}

/// Adds the ops of families to the table. The families must outlive the table.
void add_all(OpTable& table, const std::vector<std::vector<Op>>& families);

/// Returns the inputs that the text of a row describes.
std::vector<InputSpec> inputs_of(const char* text);

/// Records the op with this name from the library's table, for the typed functions. Returns its first output.
Var call_op(const char* name, const std::vector<Operand>& operands, const Attributes& attributes = {});
/// Like call_op. Returns the first two outputs.
std::pair<Var, Var> call_pair(const char* name, const std::vector<Operand>& operands,
                              const Attributes& attributes = {});

// Define the typed functions of ops with one or two operands, and of ops with one operand and a number.
#define XTAPE_UNARY(name)       \
  Var name(const Argument& x) { \
    return call_op(#name, {x}); \
  }
#define XTAPE_BINARY(name)                       \
  Var name(const Operand& a, const Operand& b) { \
    return call_op(#name, {a, b});               \
  }
#define XTAPE_WITH(name, number)                     \
  Var name(const Argument& x, double number) {       \
    return call_op(#name, {x}, {{#number, number}}); \
  }

inline double number_of(const ExpandCall& call, const char* name) {
  return call.attributes().get<double>(name);
}
inline std::int64_t integer_of(const ExpandCall& call, const char* name) {
  return call.attributes().get<std::int64_t>(name);
}
inline bool flag_of(const ExpandCall& call, const char* name) {
  return call.attributes().get<bool>(name);
}

}  // namespace xtape
