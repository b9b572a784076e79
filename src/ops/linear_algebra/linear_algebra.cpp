// Ops of linear algebra that are recorded as factorisations, products and sums. det, whose gradient exists for singular
// matrices, too.
#include "xtape/ops/linear_algebra.hpp"

#include "ops/linear_algebra/matrix_ops.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape {

const Op& lu_solve_op();

namespace {
Var identity_like(const Var& a) {
  return broadcast_to(eye(a.tape(), a.size(-1), -1, a.dtype()), a.shape());
}

void require_square(const Var& a) {
  batch_of(a.shape(), "a", true);
}
void require_matrices(const Var& a) {
  batch_of(a.shape(), "a", false);
}

Var with_batch(const Var& x, const Shape& batch) {
  return broadcast_to(x, joined(batch, {x.size(-2), x.size(-1)}));
}

/// Converts a vector b [m] to a matrix with one column for `compute`, and removes the column axis from the result.
/// Throws ShapeError if b and a have different numbers of rows.
template <class Compute>
Vars for_columns(const Var& a, const Var& b, const Compute& compute) {
  if (b.rank() == 0 || b.size(b.rank() == 1 ? 0 : -2) != a.size(-2))
    throw ShapeError("b must be a vector or matrices with " + std::to_string(a.size(-2)) + " rows, as a has, got " +
                     to_string(a.shape()) + " and " + to_string(b.shape()));
  if (b.rank() != 1) return {compute(b)};
  return {squeeze(compute(expand_dims(b, -1)), {-1})};
}

Vars record_solve_by_lu(const Vars& in, const Attributes& given) {
  require_square(in[0]);
  return for_columns(in[0], in[1], [&](const Var& b) {
    const Shape batch = broadcast_shapes({batch_of(in[0].shape(), "a", true), batch_of(b.shape(), "b", false)});
    const Var a = in[0].rank() == 2 ? in[0] : with_batch(in[0], batch);
    const linalg::Lu factors = linalg::lu(stop_gradient(a), given.get<bool>("check"));
    return apply(lu_solve_op(), {a, with_batch(b, batch), factors.lu, factors.permutation})[0];
  });
}

Vars record_inv(const Vars& in, const Attributes& given) {
  require_square(in[0]);
  return {linalg::solve(in[0], identity_like(in[0]), given.get<bool>("check"))};
}

Vars record_slogdet(const Vars& in, const Attributes&) {
  require_square(in[0]);
  const linalg::Lu factors = linalg::lu(in[0], false);
  return {stop_gradient(factors.sign), sum(log(abs(diagonal(factors.lu, -2, -1))), {-1})};
}

Vars record_cholesky_solve(const Vars& in, const Attributes& given) {
  linalg::TriangularOptions options;
  options.check = given.get<bool>("check");
  const Var half = linalg::triangular_solve(in[0], in[1], options);
  options.transposed = true;
  return {linalg::triangular_solve(in[0], half, options)};
}

Vars record_lstsq(const Vars& in, const Attributes& given) {
  require_matrices(in[0]);
  return for_columns(in[0], in[1],
                     [&](const Var& b) { return matmul(linalg::pinv(in[0], given.get<double>("rtol")), b); });
}

Vars record_matrix_rank(const Vars& in, const Attributes& given) {
  require_matrices(in[0]);
  return {sum(significant(linalg::svd(stop_gradient(in[0])).s, in[0], given.get<double>("rtol")), {-1})};
}

Vars record_matrix_norm(const Vars& in, const Attributes& given) {
  const Var& a = in[0];
  const std::string& ord = given.get<std::string>("ord");
  require_matrices(a);
  if (ord == "fro") return {vector_norm(a, 2, {-2, -1})};
  if (ord == "1") return {max(sum(abs(a), {-2}), {-1})};
  if (ord == "inf") return {max(sum(abs(a), {-1}), {-1})};
  if (ord == "nuc") return {sum(linalg::svd(a).s, {-1})};
  if (ord == "2") return {max(linalg::svd(a).s, {-1})};
  throw Error("ord must be 'fro', 'nuc', '1', '2' or 'inf', got '" + ord + "'");
}

Vars record_matrix_power(const Vars& in, const Attributes& given) {
  require_square(in[0]);
  const auto n = given.get<std::int64_t>("n");
  Var base = n < 0 ? linalg::inv(in[0]) : in[0], result;
  for (auto left = n < 0 ? -static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n); left > 0; left /= 2) {
    if (left % 2 == 1) result = result.empty() ? base : matmul(result, base);
    if (left > 1) base = matmul(base, base);
  }
  return {result.empty() ? identity_like(in[0]) : result};
}

Vars record_trace(const Vars& in, const Attributes&) {
  require_matrices(in[0]);
  const std::int64_t k = std::min(in[0].size(-2), in[0].size(-1));
  std::vector<std::int64_t> stop(in[0].rank(), open_end);
  stop[stop.size() - 2] = stop.back() = k;
  const Var square = slice(in[0], std::vector<std::int64_t>(in[0].rank(), 0), stop);
  return {sum(diagonal(square, -2, -1), {-1})};
}

Vars record_outer(const Vars& in, const Attributes&) {
  return {einsum("...i,...j->...ij", in)};
}

Vars record_kron(const Vars& in, const Attributes&) {
  for (const Var& each : in) require_matrices(each);
  std::int64_t rows = in[0].size(-2), columns = in[0].size(-1);
  const Var product = einsum("...ij,...kl->...ikjl", in);
  if (!checked_multiply(rows, in[1].size(-2)) || !checked_multiply(columns, in[1].size(-1)))
    throw ShapeError("the product of " + to_string(in[0].shape()) + " and " + to_string(in[1].shape()) +
                     " is too large");
  return {reshape(product, joined(Shape(product.shape().begin(), product.shape().end() - 4), {rows, columns}))};
}

using Record = Vars (*)(const Vars&, const Attributes&);
/// An op that `record` always records as other ops.
struct Row {
  const char* name;
  const char* doc;
  std::vector<const char*> inputs;
  std::vector<AttributeSpec> attributes;
  Record record;
  std::vector<std::string> outputs = {"y"};
  bool differentiable = true;
};

std::vector<Row> rows() {
  const AttributeSpec singular = check_attribute("a singular matrix");
  const AttributeSpec rtol{"rtol", AttributeType::number, "As in pinv.", -1.0};
  return {
      {"solve",
       "X with A X = B, for A [..., n, n] and B [..., n, k] or a vector [n]. Batches broadcast. Computed by lu.",
       {"a", "b"},
       {singular},
       record_solve_by_lu},
      {"inv", "The inverse of A [..., n, n], computed by lu.", {"a"}, {singular}, record_inv},
      {"slogdet",
       "The sign of det A and log |det A|, for A [..., n, n], computed by lu. They are 0 and -inf for a singular "
       "matrix.",
       {"a"},
       {},
       record_slogdet,
       {"sign", "logabsdet"}},
      {"cholesky_solve",
       "X with L Lᵀ X = B, for L [..., n, n] from cholesky, and B [..., n, k].",
       {"l", "b"},
       {singular},
       record_cholesky_solve},
      {"lstsq",
       "The minimum-norm X that minimises |A X - B|. X is pinv(A) B, and B is [..., m, k] or a vector [m].",
       {"a", "b"},
       {rtol},
       record_lstsq},
      {"matrix_rank",
       "The number of singular values of A [..., m, n] that are larger than rtol times the largest one.",
       {"a"},
       {rtol},
       record_matrix_rank,
       {"y"},
       false},
      {"matrix_norm",
       "The norm of A [..., m, n]. 'fro' is the Frobenius norm. 'nuc' is the sum and '2' the maximum of the singular "
       "values. '1' is the largest column sum and 'inf' the largest row sum of |A|.",
       {"a"},
       {{"ord", AttributeType::text, "fro, nuc, 1, 2 or inf.", "fro"}},
       record_matrix_norm},
      {"matrix_power",
       "The matrix power A ** n of A [..., m, m]. For a negative n, it is the power -n of the inverse.",
       {"a"},
       {{"n", AttributeType::integer, "The exponent.", std::nullopt}},
       record_matrix_power},
      {"trace", "The sum of the diagonal of A [..., m, n].", {"a"}, {}, record_trace},
      {"outer", "y[..., i, j] = a[..., i] * b[..., j].", {"a", "b"}, {}, record_outer},
      {"kron",
       "The Kronecker product of matrices: [..., m p, n q] of [..., m, n] and [..., p, q].",
       {"a", "b"},
       {},
       record_kron},
  };
}

Op op_of(const Row& row) {
  Op op;
  op.name = row.name;
  op.doc = row.doc;
  for (const char* input : row.inputs) op.inputs.push_back({input, Accept::floating});
  op.outputs = row.outputs;
  op.attributes = row.attributes;
  op.differentiable = row.differentiable;
  const Record record = row.record;
  op.shape = [record](const OpCall& call) {  // the shape of the recording
    Tape tape;
    Vars inputs;
    for (const ValueType& type : call.inputs)
      inputs.push_back(tape.input("x" + std::to_string(inputs.size()), type.shape, type.dtype));
    std::vector<ValueType> types;
    for (const Var& output : record(inputs, call.attributes)) types.push_back(output.type());
    return types;
  };
  op.expand = [record](const ExpandCall& call) { return record(call.inputs, call.attributes); };
  op.record = [record](Tape&, const Op&, const Vars& inputs, const Attributes& attributes) {
    return record(inputs, attributes);
  };
  return op;
}

Var recorded_one(const Op& op, const Vars& inputs) {
  return record_call(inputs[0].tape(), op, inputs, {})[0];
}
/// Returns x [...] as [..., 1, 1].
Var per_matrix(const Var& x) {
  return expand_dims(expand_dims(x, -1), -1);
}

/// With X = A⁻¹ C and Y = A⁻¹ W, the product of C and the result is det(A) (tr X tr Y - tr(X Y)). Its gradient with
/// respect to A contains the inverse of A. It is therefore NaN for a singular matrix.
Var third_derivative(const Var& a, const Var& c, const Var& w) {
  const Var inverse = linalg::inv(a, false), x = matmul(inverse, c), y = matmul(inverse, w), product = matmul(x, y);
  const Var of_x = linalg::trace(x), of_y = linalg::trace(y), scale = of_x * of_y - linalg::trace(product);
  const Var sums =
      per_matrix(scale) * identity_like(a) - per_matrix(of_y) * x - per_matrix(of_x) * y + product + matmul(y, x);
  return per_matrix(linalg::det(a)) * matrix_transpose(matmul(sums, inverse));
}

Op op_on_matrices(const char* name, const char* doc, const std::vector<InputSpec>& inputs) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = inputs;
  op.shape = +[](const OpCall& call) {
    batch_of(call.shape(0), "a", true);
    for (std::size_t i = 1; i < call.inputs.size(); ++i)
      if (call.shape(i) != call.shape(0))
        throw ShapeError("'" + call.op.inputs[i].name + "' must have the shape of a " + to_string(call.shape(0)) +
                         ", got " + to_string(call.shape(i)));
    return std::vector<ValueType>{call.inputs[0]};
  };
  op.batch = batch_leading;
  op.lowering.kernel = kernel_by_name;
  return op;
}

const Op& det_grad_grad_op() {
  static const Op entry = [] {
    Op op = op_on_matrices("det_grad_grad",
                           "The gradient of det_grad, given its cotangent dy: the sum of dy[..., i, j] times the "
                           "derivative of the cofactor (i, j) of A.",
                           {{"a", Accept::floating}, {"dy", Accept::floating}});
    op.gradient = +[](const GradientCall& call) {
      const Var &a = call.inputs[0], &dy = call.inputs[1], c = call.cotangent();
      return Vars{call.needs[0] ? third_derivative(a, c, dy) : Var(),
                  call.needs[1] ? recorded_one(call.op, {a, c}) : Var()};  // second derivatives are symmetric
    };
    return op;
  }();
  return entry;
}

const Op& det_grad_op() {
  static const Op entry = [] {
    Op op =
        op_on_matrices("det_grad",
                       "The gradient of det: the cofactors of A [..., n, n]. The cofactor (i, j) is (-1) ** (i + j) "
                       "times the determinant of A without row i and column j.",
                       {{"a", Accept::floating}});
    op.gradient = +[](const GradientCall& call) {
      return Vars{recorded_one(det_grad_grad_op(), {call.inputs[0], call.cotangent()})};
    };
    return op;
  }();
  return entry;
}

const Op& det_op() {
  static const Op entry{.name = "det",
                        .doc = "The determinants of A [..., n, n], computed by slogdet.",
                        .inputs = {{"a", Accept::floating}},
                        .shape =
                            +[](const OpCall& call) {
                              return std::vector<ValueType>{{call.dtype(0), batch_of(call.shape(0), "a", true)}};
                            },
                        .gradient =
                            +[](const GradientCall& call) {
                              return Vars{per_matrix(call.cotangent()) * recorded_one(det_grad_op(), {call.inputs[0]})};
                            },
                        .batch = batch_leading,
                        .expand =
                            +[](const ExpandCall& call) {
                              const linalg::SignLogDet found = linalg::slogdet(call.inputs[0]);
                              return Vars{found.sign * exp(found.logabsdet)};
                            },
                        .derivative = {.differs = true}};
  return entry;
}

std::vector<Op> recorded_ops() {
  std::vector<Op> ops;
  for (const Row& row : rows()) ops.push_back(op_of(row));
  return ops;
}
}  // namespace

namespace linalg {
Var solve(const Argument& a, const Var& b, bool check) {
  return call_op("solve", {a, b}, {{"check", check}});
}
Var inv(const Argument& a, bool check) {
  return call_op("inv", {a}, {{"check", check}});
}
Var det(const Argument& a) {
  return apply(det_op(), {a})[0];
}
SignLogDet slogdet(const Argument& a) {
  const Vars found = apply(builtin_ops().at("slogdet"), {a});
  return {found[0], found[1]};
}
Var cholesky_solve(const Argument& l, const Var& b, bool check) {
  return call_op("cholesky_solve", {l, b}, {{"check", check}});
}
Var lstsq(const Argument& a, const Var& b, double rtol) {
  return call_op("lstsq", {a, b}, {{"rtol", rtol}});
}
Var matrix_rank(const Argument& a, double rtol) {
  return call_op("matrix_rank", {a}, {{"rtol", rtol}});
}
Var matrix_norm(const Argument& a, const std::string& ord) {
  return call_op("matrix_norm", {a}, {{"ord", ord}});
}
Var matrix_power(const Argument& a, std::int64_t n) {
  return call_op("matrix_power", {a}, {{"n", n}});
}
XTAPE_UNARY(trace)
Var outer(const Argument& a, const Var& b) {
  return call_op("outer", {a, b});
}
Var kron(const Argument& a, const Var& b) {
  return call_op("kron", {a, b});
}
}  // namespace linalg

void list_linear_algebra(OpTable& table) {
  static const std::vector<Op> ops = recorded_ops();
  for (const Op& op : ops) table.add(op);
  for (const Op* op : {&det_op(), &det_grad_op(), &det_grad_grad_op()}) table.add(*op);
}

}  // namespace xtape
