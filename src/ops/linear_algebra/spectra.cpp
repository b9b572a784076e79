// qr, eigh, svd and pinv.
#include "ops/linear_algebra/matrix_ops.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/linear_algebra.hpp"

namespace xtape {

namespace {
/// Returns the types of the factors [..., m, k] and [..., k, n] of A [..., m, n], where k = min(m, n). If `values`, the
/// type [..., k] comes between the two types.
std::vector<ValueType> factor_types(const OpCall& call, bool values) {
  const Shape& a = call.shape(0);
  const Shape batch = batch_of(a, "a", false);
  const std::int64_t m = a[a.size() - 2], n = a.back(), k = std::min(m, n);
  std::vector<ValueType> types{{call.dtype(0), joined(batch, {m, k})}, {call.dtype(0), joined(batch, {k, n})}};
  if (values) types.insert(types.begin() + 1, ValueType{call.dtype(0), joined(batch, {k})});
  return types;
}

Var identity(const Var& x, std::int64_t n) {
  return eye(x.tape(), n, -1, x.dtype());
}

/// Returns x [..., m, n] with its columns scaled by s [..., n].
Var columns_times(const Var& x, const Var& s) {
  return x * expand_dims(s, -2);
}

/// Returns the differences of all pairs, d[..., i, j] = values[j] - values[i], with 1 on the diagonal.
Var differences(const Var& values) {
  const Var all = expand_dims(values, -2) - expand_dims(values, -1);
  return all + identity(values, values.size(-1));
}

/// Returns the cotangent of A for m >= n: (Q̄ + Q copyltu(R R̄ᵀ - Q̄ᵀ Q)) R⁻ᵀ, where copyltu mirrors the lower triangle
/// to the upper triangle.
Var tall_qr_gradient(const Var& q, const Var& r, const Var& q_cotangent, const Var& r_cotangent) {
  const Var m = matmul(r, matrix_transpose(r_cotangent)) - matmul(matrix_transpose(q_cotangent), q);
  const Var mirrored = tril(m) + matrix_transpose(tril(m, -1));
  linalg::TriangularOptions upper;
  upper.upper = true;
  upper.check = false;
  return matrix_transpose(linalg::triangular_solve(r, matrix_transpose(q_cotangent + matmul(q, mirrored)), upper));
}

Vars qr_gradient(const GradientCall& call) {
  const Var &q = call.outputs[0], &r = call.outputs[1];
  const Var dq = call.cotangent(0), dr = call.cotangent(1);
  const std::int64_t rest = r.size(-1) - r.size(-2);
  if (rest == 0) return {tall_qr_gradient(q, r, dq, dr)};
  // Splits A = [X Y] with X = Q U and Y = Q V.
  const std::vector<std::int64_t> sizes{r.size(-2), rest};
  const Vars of_r = split(r, sizes, -1), of_dr = split(dr, sizes, -1), of_a = split(call.inputs[0], sizes, -1);
  const Var x = tall_qr_gradient(q, of_r[0], dq + matmul(of_a[1], matrix_transpose(of_dr[1])), of_dr[0]);
  return {concat({x, matmul(q, of_dr[1])}, -1)};
}

const Op& qr_op() {
  static const Op entry{
      .name = "qr",
      .doc =
          R"(A = Q R for A [..., m, n], with orthonormal columns Q [..., m, k] and upper triangular R [..., k, n], where
           k = min(m, n). The signs are those of LAPACK's geqrf. The gradient (Walter and Lehmann, 2018; Liao et al.,
           2019) is NaN or infinite where the first k columns are linearly dependent.)",
      .inputs = {{"a", Accept::floating}},
      .outputs = {"q", "r"},
      .shape = +[](const OpCall& call) { return factor_types(call, false); },
      .gradient = qr_gradient,
      .batch = batch_leading,
      .lowering = {.kernel = kernel_by_name}};
  return entry;
}

Vars eigh_gradient(const GradientCall& call) {
  const Var &w = call.outputs[0], &v = call.outputs[1];
  Var inside;
  if (!call.cotangents[1].empty()) {
    const Var product = matmul(matrix_transpose(v), call.cotangents[1]);
    inside = (product - diag_embed(diagonal(product, -2, -1))) / differences(w);
    if (!call.cotangents[0].empty()) inside = inside + diag_embed(call.cotangents[0]);
    inside = matmul(v, inside);
  } else {
    inside = columns_times(v, call.cotangent(0));
  }
  return {symmetric(matmul(inside, matrix_transpose(v)))};
}

const Op& eigh_op() {
  static const Op entry{
      .name = "eigh",
      .doc =
          R"(Ascending eigenvalues w [..., n] and eigenvectors V [..., n, n], in columns, with (A + Aᵀ) / 2 = V diag(w)
           Vᵀ. The gradient through V is V (F * VᵀV̄) Vᵀ with F = 1 / (w_j - w_i). It is NaN or infinite where two
           eigenvalues are equal. The gradient through w alone has no such term.)",
      .inputs = {{"a", Accept::floating}},
      .outputs = {"w", "v"},
      .attributes = {check_attribute("a matrix for which the QR iteration does not converge")},
      .shape =
          +[](const OpCall& call) {
            const Shape batch = batch_of(call.shape(0), "a", true);
            return std::vector<ValueType>{{call.dtype(0), joined(batch, {call.shape(0).back()})}, call.inputs[0]};
          },
      .gradient = eigh_gradient,
      .batch = batch_leading,
      .lowering = {.kernel = kernel_by_name}};
  return entry;
}

/// With skew(X) = X - Xᵀ and E_ij = s_j² - s_i², the gradient is U ((skew(UᵀŪ) / E) S + S (skew(VᵀV̄) / E) + S̄) Vᵀ
/// plus two terms: the parts of Ū and V̄ that are orthogonal to U and V, divided by S.
Vars svd_gradient(const GradientCall& call) {
  const Var &u = call.outputs[0], &s = call.outputs[1], &vh = call.outputs[2];
  const bool of_u = !call.cotangents[0].empty(), of_v = !call.cotangents[2].empty();
  if (!of_u && !of_v) return {matmul(columns_times(u, call.cotangent(1)), vh)};
  const Var apart = differences(square(s));
  const auto rotation = [&](const Var& product) { return (product - matrix_transpose(product)) / apart; };
  Var inside = diag_embed(call.cotangent(1));
  const Var dv = of_v ? matrix_transpose(call.cotangents[2]) : Var();
  if (of_u) inside = inside + columns_times(rotation(matmul(matrix_transpose(u), call.cotangents[0])), s);
  if (of_v) inside = inside + expand_dims(s, -1) * rotation(matmul(vh, dv));
  Var all = matmul(matmul(u, inside), vh);
  if (of_u && u.size(-2) > s.size(-1)) {
    const Var rest = call.cotangents[0] - matmul(u, matmul(matrix_transpose(u), call.cotangents[0]));
    all = all + matmul(rest / expand_dims(s, -2), vh);
  }
  if (of_v && vh.size(-1) > s.size(-1)) {
    const Var rest = dv - matmul(matrix_transpose(vh), matmul(vh, dv));
    all = all + matmul(u, matrix_transpose(rest / expand_dims(s, -2)));
  }
  return {all};
}

const Op& svd_op() {
  static const Op entry{
      .name = "svd",
      .doc = R"(A = U diag(s) Vh for A [..., m, n], with U [..., m, k], descending s [..., k] and Vh [..., k, n], where
           k = min(m, n). The gradient through U and Vh divides by s_j² - s_i² and, unless A is square, by s. It is NaN
           or infinite where a divisor is 0. The gradient through s alone is U S̄ Vh.)",
      .inputs = {{"a", Accept::floating}},
      .outputs = {"u", "s", "vh"},
      .attributes = {check_attribute("a matrix for which the QR iteration does not converge")},
      .shape = +[](const OpCall& call) { return factor_types(call, true); },
      .gradient = svd_gradient,
      .batch = batch_leading,
      .lowering = {.kernel = kernel_by_name}};
  return entry;
}

/// With P = pinv(A), the gradient is -Pᵀ P̄ Pᵀ + (I - A P) P̄ᵀ P Pᵀ + Pᵀ P P̄ᵀ (I - P A).
Vars pinv_gradient(const GradientCall& call) {
  const Var &a = call.inputs[0], &p = call.outputs[0], g = call.cotangent();
  const Var p_t = matrix_transpose(p), g_t = matrix_transpose(g);
  const Var left = matmul(matmul(g_t, p), p_t), right = matmul(p_t, matmul(p, g_t));
  return {left - matmul(a, matmul(p, left)) + right - matmul(matmul(right, p), a) - matmul(matmul(p_t, g), p_t)};
}

const Op& pinv_op() {
  static const Op entry{
      .name = "pinv",
      .doc =
          R"(The pseudoinverse [..., n, m] of A [..., m, n], computed by svd. The gradient assumes constant rank (Golub
           and Pereyra, 1973). It is also exact for equal singular values.)",
      .inputs = {{"a", Accept::floating}},
      .attributes = {{"rtol", AttributeType::number,
                      "Singular values up to rtol times the largest one count as 0. A negative rtol means max(m, n) "
                      "times the machine epsilon of the dtype.",
                      -1.0}},
      .shape =
          +[](const OpCall& call) {
            const Shape &a = call.shape(0), batch = batch_of(a, "a", false);
            return std::vector<ValueType>{{call.dtype(0), joined(batch, {a.back(), a[a.size() - 2]})}};
          },
      .gradient = pinv_gradient,
      .batch = batch_leading,
      .expand =
          +[](const ExpandCall& call) {
            const linalg::Svd found = linalg::svd(call.inputs[0]);
            const Var kept = significant(found.s, call.inputs[0], call.number("rtol"));
            const Var inverse = where(kept, 1 / where(kept, found.s, 1.0), 0.0 * found.s);
            return Vars{matmul(columns_times(matrix_transpose(found.vh), inverse), matrix_transpose(found.u))};
          },
      .derivative = {.differs = true}};
  return entry;
}
}  // namespace

Var significant(const Var& s, const Var& a, double rtol) {
  if (s.size(-1) == 0) return greater(s, 0);
  const double precision = a.dtype() == Dtype::float64 ? 0x1p-52 : 0x1p-23;
  if (rtol < 0) rtol = static_cast<double>(std::max(a.size(-1), a.size(-2))) * precision;
  return greater(s, max(s, {-1}, true) * rtol);
}

namespace linalg {
Qr qr(const Argument& a) {
  const Vars found = apply(qr_op(), {a});
  return {found[0], found[1]};
}
Eigh eigh(const Argument& a, bool check) {
  const Vars found = apply(eigh_op(), {a}, {{"check", check}});
  return {found[0], found[1]};
}
Svd svd(const Argument& a, bool check) {
  const Vars found = apply(svd_op(), {a}, {{"check", check}});
  return {found[0], found[1], found[2]};
}
Var pinv(const Argument& a, double rtol) {
  return apply(pinv_op(), {a}, {{"rtol", rtol}})[0];
}
}  // namespace linalg

void list_spectra(OpTable& table) {
  for (const Op* op : {&qr_op(), &eigh_op(), &svd_op(), &pinv_op()}) table.add(*op);
}

}  // namespace xtape
