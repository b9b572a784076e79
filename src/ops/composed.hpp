/// Ops that are compositions of others. A table has a row for each; players execute, `grad` differentiates and `vmap`
/// maps their expansions, so a row needs no kernel, gradient or batching rule. The rows are constants, which
/// cost less memory than code that makes ops.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape {

/// An attribute with a default. A flag or an integer has its default as a number, too.
struct AttributeRow {
  const char* name = nullptr;  ///< Null: no attribute.
  const char* doc = nullptr;
  double initial = 0;
  AttributeType type = AttributeType::number;
};

struct ComposedRow {
  const char* name = nullptr;
  /// Names of floats, separated by spaces. "#name" is an integer input, "!name" a mask, "name?" optional, and "=name"
  /// takes any number.
  const char* inputs = nullptr;
  const char* doc = nullptr;
  Vars (*expand)(const ExpandCall&) = nullptr;
  std::array<AttributeRow, 4> attributes = {};
  bool differentiable = true;
};

using ShapeRule = std::vector<ValueType> (*)(const OpCall&);

/// The ops of a family: rows that share a shape rule and `shared` attributes, which come after their own.
std::vector<Op> composed(const ComposedRow* rows, std::size_t count, ShapeRule shape,
                         const std::vector<AttributeSpec>& shared = {});
template <std::size_t n>
std::vector<Op> composed(const ComposedRow (&rows)[n], ShapeRule shape, const std::vector<AttributeSpec>& shared = {}) {
  return composed(rows, n, shape, shared);
}

/// The inputs that a text of a row stands for.
std::vector<InputSpec> inputs_of(const char* text);

/// The op of this name of the library's table, for the typed functions. Its first output.
Var call_op(const char* name, const std::vector<Operand>& operands, const Attributes& attributes = {});

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
