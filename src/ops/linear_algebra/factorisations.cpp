// cholesky, triangular_solve, lu, and lu_solve, which solves systems with the factors that lu computes.
#include "ops/linear_algebra/matrix_ops.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/linear_algebra.hpp"

namespace xtape {

const Op& lu_solve_op();

Var matrix_transpose(const Var& x) {
  Axes order;
  const auto rank = static_cast<std::int64_t>(x.rank());
  for (std::int64_t axis = 0; axis < rank; ++axis)
    order.push_back(axis < rank - 2 ? axis : axis == rank - 2 ? rank - 1 : rank - 2);
  return transpose(x, order);
}
Var symmetric(const Var& x) {
  const Var half = x * 0.5;
  return half + matrix_transpose(half);
}
Shape batch_of(const Shape& shape, const char* what, bool square) {
  if (shape.size() < 2 || (square && shape[shape.size() - 2] != shape.back()))
    throw ShapeError(std::string(what) + " must be " +
                     (square ? "square matrices [..., n, n]" : "matrices [..., m, n]") + ", got " + to_string(shape));
  return Shape(shape.begin(), shape.end() - 2);
}
Shape joined(Shape batch, std::initializer_list<std::int64_t> more) {
  for (const std::int64_t size : more) batch.push_back(size);
  return batch;
}
AttributeSpec check_attribute(const char* refused) {
  return {"check", AttributeType::boolean,
          std::string("If true, playing throws Error for ") + refused + ". If false, the result is NaN or infinite.",
          true};
}

namespace {
AttributeSpec flag(const char* name, const char* doc) {
  return {name, AttributeType::boolean, doc, false};
}

/// Throws ShapeError if b [..., n, k] does not have the batch of a [..., n, n]. If a has no batch, b may have any
/// batch.
void check_system(const Shape& a, const Shape& b) {
  const Shape batch = batch_of(a, "a", true), of_b = batch_of(b, "b", false);
  if (b[b.size() - 2] != a.back() || (batch != of_b && !batch.empty()))
    throw ShapeError("b must be [..., n, k] with the n and the batch of a, got " + to_string(a) + " and " +
                     to_string(b));
}
/// Factors without batch axes of their own apply to all systems of b. If such factors are the same for all examples,
/// they stay unchanged. If they differ, they are repeated for all systems of their example.
Vars batch_system(const BatchCall& call) {
  Vars inputs = call.inputs;
  inputs[1] = call.whole(1);
  const bool apart = call.rank(0) == 2;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i == 1 || (apart && !call.mapped[0])) continue;
    inputs[i] = call.whole(i);
    if (!apart || call.rank(1) == 2) continue;
    const Shape own = inputs[i].shape();  // [size, n, n], or [size, n] for a permutation
    Shape shape(inputs[1].shape().begin(), inputs[1].shape().end() - 2), ones = Shape::filled(shape.size(), 1);
    ones[0] = own[0];
    for (std::size_t axis = 1; axis < own.size(); ++axis) {
      shape.push_back(own[axis]);
      ones.push_back(own[axis]);
    }
    inputs[i] = broadcast_to(reshape(inputs[i], ones), shape);
  }
  return record_call(call.tape, call.op, inputs, call.attributes);
}
/// For op(A) X = B, returns the cotangent of A, given the cotangent of B: minus the sum of the products of this
/// cotangent and X.
Var gradient_of_matrix(const Var& a, const Var& b_cotangent, const Var& x, bool transposed) {
  const Var product = transposed ? matmul(x, matrix_transpose(b_cotangent)) : matmul(b_cotangent, matrix_transpose(x));
  return -sum_to(product, a.shape());
}

Var solved(const Var& a, const Var& b, bool upper, bool transposed, bool unit) {
  return linalg::triangular_solve(a, b, {upper, transposed, unit, false});
}

const Op& cholesky_op() {
  static const Op entry{
      .name = "cholesky",
      .doc = R"(The lower triangular L with L Lᵀ = (A + Aᵀ) / 2, for positive definite matrices A [..., n, n]. The
           gradient is by Murray (2016).)",
      .inputs = {{"a", Accept::floating}},
      .attributes = {check_attribute("a matrix that is not positive definite")},
      .shape =
          +[](const OpCall& call) {
            batch_of(call.shape(0), "a", true);
            return std::vector<ValueType>{call.inputs[0]};
          },
      .gradient =
          +[](const GradientCall& call) {
            const Var& l = call.outputs[0];
            const Var product = matmul(matrix_transpose(l), call.cotangent());
            // the lower triangle, with half of the diagonal
            const Var half = (tril(product) + tril(product, -1)) * 0.5;
            const Var left = solved(l, half, false, true, false);
            return Vars{symmetric(solved(l, matrix_transpose(left), false, true, false))};
          },
      .batch = batch_leading,
      .lowering = {.kernel = kernel_by_name, .overwrites = {0}}};
  return entry;
}

const Op& triangular_solve_op() {
  static const Op entry{
      .name = "triangular_solve",
      .doc = R"(X with A X = B, for triangular matrices A [..., n, n] and B [..., n, k]. The other triangle of A is not
           read. A has the same batch as B, or no batch.)",
      .inputs = {{"a", Accept::floating}, {"b", Accept::floating}},
      .attributes = {flag("upper", "If true, A is upper triangular; if false, lower triangular."),
                     flag("transposed", "If true, solves Aᵀ X = B."),
                     flag("unit_diagonal", "If true, the diagonal of A counts as 1 and is not read."),
                     check_attribute("a singular matrix")},
      .shape =
          +[](const OpCall& call) {
            check_system(call.shape(0), call.shape(1));
            return std::vector<ValueType>{call.inputs[1]};
          },
      .gradient =
          +[](const GradientCall& call) {
            const auto is = [&](const char* name) { return call.flag(name); };
            const bool upper = is("upper"), transposed = is("transposed"), unit = is("unit_diagonal");
            const Var& a = call.inputs[0];
            Vars gradients(2);
            gradients[1] = solved(a, call.cotangent(), upper, !transposed, unit);
            if (call.needs[0]) {
              const Var all = gradient_of_matrix(a, gradients[1], call.outputs[0], transposed);
              gradients[0] = upper ? triu(all, unit ? 1 : 0) : tril(all, unit ? -1 : 0);
            }
            return gradients;
          },
      .batch = batch_system,
      .lowering = {.kernel = kernel_by_name, .overwrites = {1}}};
  return entry;
}

/// Returns the rows of x [..., n, k] in the order of the permutation [..., n]. If `back`, undoes this order.
Var permuted(const Var& x, const Var& permutation, bool back) {
  const Var indices = broadcast_to(expand_dims(permutation, -1), x.shape());
  return back ? scatter_add(zeros_like(x), -2, indices, x) : gather(x, -2, indices);
}

const Op& lu_op() {
  static const Op entry{
      .name = "lu",
      .doc =
          R"(A[..., permutation[i], j] = (L U)[..., i, j] for square matrices A [..., n, n]. L is the lower triangle of
           lu with ones on its diagonal, and U is the upper triangle of lu. sign is the sign of the determinant: -1, 0
           or 1. The gradient is NaN where U is singular.)",
      .inputs = {{"a", Accept::floating}},
      .outputs = {"lu", "permutation", "sign"},
      .attributes = {check_attribute("a singular matrix")},
      .shape =
          +[](const OpCall& call) {
            const Shape batch = batch_of(call.shape(0), "a", true);
            return std::vector<ValueType>{
                call.inputs[0], {Dtype::int64, joined(batch, {call.shape(0).back()})}, {call.dtype(0), batch}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const Var &lu = call.outputs[0], cotangent = call.cotangent();
            const Var lower = tril(lu, -1) + eye(lu.tape(), lu.size(-1), -1, lu.dtype());
            const Var middle = tril(matmul(matrix_transpose(lower), tril(cotangent, -1)), -1) +
                               triu(matmul(triu(cotangent), matrix_transpose(triu(lu))));
            const Var left = solved(lu, middle, false, true, true);
            return Vars{permuted(matrix_transpose(solved(lu, matrix_transpose(left), true, false, false)),
                                 call.outputs[1], true)};
          },
      .batch = batch_leading,
      .lowering = {.kernel = kernel_by_name}};
  return entry;
}
}  // namespace

const Op& lu_solve_op() {
  static const Op entry{
      .name = "lu_solve",
      .doc =
          R"(X with A X = B, for A [..., n, n], B [..., n, k], and the results of lu for A. The gradients with respect
           to a and b are those of the equation. They solve the transposed system with the same factors.)",
      .inputs = {{"a", Accept::floating},
                 {"b", Accept::floating},
                 {"lu", Accept::floating},
                 {"permutation", Accept::integer}},
      .attributes = {flag("transposed", "If true, solves Aᵀ X = B.")},
      .shape =
          +[](const OpCall& call) {
            const Shape& a = call.shape(0);
            check_system(a, call.shape(1));
            if (call.shape(2) != a || call.shape(3) != Shape(a.begin(), a.end() - 1))
              throw ShapeError("lu and permutation must be those of a " + to_string(a) + ", got " +
                               to_string(call.shape(2)) + " and " + to_string(call.shape(3)));
            return std::vector<ValueType>{call.inputs[1]};
          },
      .gradient =
          +[](const GradientCall& call) {
            const bool transposed = call.flag("transposed");
            Vars inputs = call.inputs, gradients(4);
            inputs[1] = call.cotangent();
            gradients[1] = record_call(inputs[0].tape(), call.op, inputs, {{"transposed", !transposed}})[0];
            if (call.needs[0]) gradients[0] = gradient_of_matrix(inputs[0], gradients[1], call.outputs[0], transposed);
            return gradients;
          },
      .batch = batch_system,
      .expand =
          +[](const ExpandCall& call) {
            const Var &b = call.inputs[1], &lu = call.inputs[2], &permutation = call.inputs[3];
            if (!call.flag("transposed"))
              return Vars{
                  solved(lu, solved(lu, permuted(b, permutation, false), false, false, true), true, false, false)};
            return Vars{permuted(solved(lu, solved(lu, b, true, true, false), false, true, true), permutation, true)};
          },
      .derivative = {.differs = true}};
  return entry;
}

namespace linalg {
Var cholesky(const Argument& a, bool check) {
  return apply(cholesky_op(), {a}, {{"check", check}})[0];
}
Var triangular_solve(const Argument& a, const Var& b, const TriangularOptions& options) {
  return apply(triangular_solve_op(), {a, b},
               {{"upper", options.upper},
                {"transposed", options.transposed},
                {"unit_diagonal", options.unit_diagonal},
                {"check", options.check}})[0];
}
Lu lu(const Argument& a, bool check) {
  const Vars found = apply(lu_op(), {a}, {{"check", check}});
  return {found[0], found[1], found[2]};
}
}  // namespace linalg

void list_factorisations(OpTable& table) {
  for (const Op* op : {&cholesky_op(), &triangular_solve_op(), &lu_op(), &lu_solve_op()}) table.add(*op);
}

}  // namespace xtape
