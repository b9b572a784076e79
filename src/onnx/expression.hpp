/// Formulas of operators: nodes written by C++ expressions.
#pragma once

#include <string>

#include "onnx/writing.hpp"

namespace xtape::onnx {

/// A value of the graph inside a formula. Operators and functions of expressions add a node and return its value.
/// Numbers among the operands become constants of the dtype of the other operand.
struct Expression {
  const WriteCall* call;
  std::string name;
  Dtype dtype;

  /// Adds a node of this value and `others`, with a result of the dtype of this value.
  Expression with(const char* op, const Names& others = {}, const WrittenAttributes& attributes = {}) const {
    Names operands = {name};
    operands.insert(operands.end(), others.begin(), others.end());
    return {call, call->add(op, operands, attributes), dtype};
  }
  Expression test(const char* op, const Names& others = {}) const {
    return {call, with(op, others).name, Dtype::boolean};
  }
  Expression number(double value) const { return {call, call->scalar(value, dtype), dtype}; }
  Expression as(Dtype wanted) const { return {call, call->cast(name, dtype, wanted), wanted}; }
};

/// An operand of a node: an expression, or a number.
struct Term {
  const Expression* expression = nullptr;
  double value = 0;
  Term(const Expression& given) : expression(&given) {}  // NOLINT: converts by intent
  Term(double given) : value(given) {}                   // NOLINT: converts by intent
  std::string name(const Expression& other) const {
    return expression != nullptr ? expression->name : other.number(value).name;
  }
};

// clang-format off
inline Expression operator+(const Expression& a, const Term& b) { return a.with("Add", {b.name(a)}); }
inline Expression operator-(const Expression& a, const Term& b) { return a.with("Sub", {b.name(a)}); }
inline Expression operator*(const Expression& a, const Term& b) { return a.with("Mul", {b.name(a)}); }
inline Expression operator/(const Expression& a, const Term& b) { return a.with("Div", {b.name(a)}); }
inline Expression operator-(double a, const Expression& b) { return b.number(a) - b; }
inline Expression operator/(double a, const Expression& b) { return b.number(a) / b; }
inline Expression operator-(const Expression& a) { return a.with("Neg"); }
inline Expression operator==(const Expression& a, const Term& b) { return a.test("Equal", {b.name(a)}); }
inline Expression operator<(const Expression& a, const Term& b) { return a.test("Less", {b.name(a)}); }
inline Expression operator<=(const Expression& a, const Term& b) { return a.test("LessOrEqual", {b.name(a)}); }
inline Expression operator>(const Expression& a, const Term& b) { return a.test("Greater", {b.name(a)}); }
inline Expression operator>=(const Expression& a, const Term& b) { return a.test("GreaterOrEqual", {b.name(a)}); }
inline Expression operator!(const Expression& a) { return a.with("Not"); }
inline Expression both(const Expression& a, const Expression& b) { return a.with("And", {b.name}); }
inline Expression either(const Expression& a, const Expression& b) { return a.with("Or", {b.name}); }
inline Expression differ(const Expression& a, const Expression& b) { return a.with("Xor", {b.name}); }
// clang-format on

/// Returns `a` where the condition is true, and `b` elsewhere. One of both is an expression.
inline Expression where(const Expression& condition, const Expression& a, const Term& b) {
  return {a.call, a.call->where(condition.name, a.name, b.name(a), a.dtype), a.dtype};
}
inline Expression where(const Expression& condition, double a, const Expression& b) {
  return where(condition, b.number(a), b);
}
inline Expression is_nan(const Expression& x) {
  return x.test("IsNaN");
}
/// Whether x is negative or -0.
inline Expression has_sign(const Expression& x) {
  return where(x == 0, 1 / x, x) < 0;
}

/// Returns input `index` of the call, as a dtype in which operators compute: halves as float32, bool and int8 as int32.
/// A formula in float32 rounds to half precision once, as the op does.
inline Expression operand(const WriteCall& call, std::size_t index = 0) {
  const Dtype dtype = call.types[index].dtype;
  return Expression{&call, call.inputs[index], dtype}.as(is_half(dtype) ? Dtype::float32 : number_dtype(dtype));
}
/// Returns the names of a call with the result `y`.
inline Names result(const Expression& y) {
  return {y.as(y.call->type().dtype).name};
}

}  // namespace xtape::onnx
