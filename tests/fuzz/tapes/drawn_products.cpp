// Draws calls of products, losses and normalisations that their shape rules accept, with numbers of moderate size.
#include <algorithm>

#include "drawn_ops.hpp"

namespace xtape::fuzz {

namespace {
/// Axis labels of operands: axes of equal sizes often get the same label.
struct Letters {
  std::map<char, std::int64_t> sizes;
  std::string of(Drawer& d, const Shape& shape, bool repeats) {
    std::string own;
    for (const std::int64_t size : shape) {
      char letter = static_cast<char>('a' + sizes.size());
      for (const auto& [known, known_size] : sizes)
        if (known_size == size && (repeats || own.find(known) == std::string::npos) && !d.random.one_in(3))
          letter = known;
      sizes[letter] = size;
      own += letter;
    }
    return own;
  }
  double work() const {
    double all = 1;
    for (const auto& [letter, size] : sizes) all *= static_cast<double>(size);
    return all;
  }
  /// Some labels of the operands, in any order; the product of their sizes is bounded.
  std::string result(Drawer& d) const {
    std::string kept;
    std::int64_t count = 1;
    for (const auto& [letter, size] : sizes)
      if (d.random.one_in(2) && count * size <= d.most_elements()) {
        kept += letter;
        count *= size;
      }
    d.random.shuffle(kept);
    return kept;
  }
};

Drawn linear(Drawer& d) {
  const Ref x = d.floating(1);
  const std::int64_t in = d.shape(x).back(), out = d.size();
  const bool turned = d.random.one_in(2);
  const Ref weight = d.fitting(ValueType{d.type(x).dtype, turned ? Shape{out, in} : Shape{in, out}});
  return Draft{{x, weight}, {{"equation", std::string(turned ? "...i,oi->...o" : "...i,io->...o")}}};
}

Drawn einsum(Drawer& d) {
  if (d.random.one_in(4)) return linear(d);
  const Ref first = d.number();
  Draft draft{{first}};
  const bool repeats = d.random.one_in(6);
  Letters letters;
  std::string equation = letters.of(d, d.shape(first), repeats);
  for (std::int64_t more = d.random.pick({0, 1, 1, 1, 1, 2}); more > 0; --more) {
    const Dtype dtype = d.type(first).dtype;
    const Ref next = d.any([&](const ValueType& type) { return type.dtype == dtype; });
    draft.operands.push_back(next);
    equation += "," + letters.of(d, d.shape(next), repeats);
  }
  if (letters.work() > static_cast<double>(d.work_limit())) return std::nullopt;
  if (!d.random.one_in(8)) equation += "->" + letters.result(d);
  draft.attributes = {{"equation", equation}};
  return draft;
}

/// Every label is in two of a, b and y, as in a matrix product, or in all three (batch); in any order.
Drawn einsum_add(Drawer& d) {
  const Ref a = d.floating(1);
  std::string of_a, of_b, of_y;
  Shape b, y;
  for (std::size_t i = 0; i < d.shape(a).size(); ++i) {
    const char letter = static_cast<char>('a' + i);
    const std::int64_t kind = d.random.below(3);  // batch; summed; of a and the result
    of_a += letter;
    if (kind != 2) (of_b += letter, b.push_back(d.shape(a)[i]));
    if (kind != 1) (of_y += letter, y.push_back(d.shape(a)[i]));
  }
  if (d.random.one_in(2)) {
    of_b += 'z', b.push_back(d.size());
    of_y += 'z', y.push_back(b.back());
  }
  const Dtype dtype = d.type(a).dtype;
  if (static_cast<double>(count_of(b)) * static_cast<double>(count_of(y)) > static_cast<double>(d.work_limit()))
    return std::nullopt;
  return Draft{{a, d.fitting(ValueType{dtype, b}), d.fitting(ValueType{dtype, y})},
               {{"equation", of_a + "," + of_b + "->" + of_y}}};
}

/// Groups of equal numbers of rows at most, so that all have rows.
Drawn ragged(Drawer& d, bool of_weights) {
  const Ref x = d.any([&](const ValueType& type) { return is_floating(type.dtype) && type.shape.size() == 2; });
  if (!is_floating(d.type(x).dtype) || d.shape(x).size() != 2) return std::nullopt;
  const std::int64_t m = d.shape(x)[0], k = d.shape(x)[1], groups = d.random.between(1, 3), n = d.size();
  if (m * k * n * (groups + 1) > d.most_elements()) return std::nullopt;  // of the expansion
  const Ref sizes = *d.indices({groups}, m / groups + 1);
  return Draft{{x, d.fitting(ValueType{d.type(x).dtype, of_weights ? Shape{m, n} : Shape{groups, k, n}}), sizes}};
}

Drawn matmul(Drawer& d) {
  const Ref a = d.floating(1);
  Shape b{d.shape(a).back()};
  if (!d.random.one_in(4)) b.push_back(d.size());
  if (b.size() == 2 && d.shape(a).size() > 2 && d.random.one_in(2)) b.insert(0, d.shape(a)[d.shape(a).size() - 3]);
  return Draft{{a, d.fitting(ValueType{d.type(a).dtype, b})}};
}

/// q, k, v and the equations, in one of two orders of the axes; for the gradient also the cotangent; and mostly a mask.
Drawn attention(Drawer& d, bool gradient) {
  const bool heads_second = d.random.one_in(2);
  const std::int64_t b = d.size(), h = d.random.between(1, 3), q = d.size(), k = d.size(), e = d.size(), f = d.size();
  if (b * h * q * k > d.work_limit()) return std::nullopt;  // the expansion computes all scores
  const auto array = [&](std::int64_t places, std::int64_t width) {
    return d.fitting(ValueType{d.real(), heads_second ? Shape{b, h, places, width} : Shape{b, places, h, width}});
  };
  // The kernel skips keys that are masked for a whole block of queries, the expansion does not: values must be finite,
  // because 0 times infinity would be NaN in the expansion only.
  const Ref values = d.must("tanh", {{array(k, f)}});
  Draft draft{{array(q, e), array(k, e), values}};
  if (gradient) draft.operands.push_back(array(q, f));
  if (!d.random.one_in(4)) draft.operands.push_back(d.mask_for({b, h, q, k}));
  draft.attributes = {{"scores", std::string(heads_second ? "bhqe,bhke->bhqk" : "bqhe,bkhe->bhqk")},
                      {"outputs", std::string(heads_second ? "bhqk,bhkd->bhqd" : "bhqk,bkhd->bqhd")},
                      {"scale", d.random.pick({1.0, 0.5, 0.3, -0.7})},
                      {"rate", d.random.pick({0.0, 0.0, 0.25})},
                      {"draws", d.random.between(0, 100)}};
  return draft;
}

/// The attributes of a loss of logits with `classes` classes; `ignore` is sometimes one of the targets.
Attributes loss_attributes(Drawer& d, std::int64_t classes) {
  Attributes attributes{{"ignore", d.random.pick<std::int64_t>({-100, 0, 1})},
                        {"label_smoothing", d.random.pick({0.0, 0.0, 0.1})}};
  attributes.set("smoothing_excludes", d.random.one_in(3) ? d.random.below(classes) : std::int64_t{-1});
  return attributes;
}

Drawn cross_entropy(Drawer& d) {
  const Ref logits = d.floating(1);
  Shape rows = d.shape(logits);
  const std::int64_t classes = rows.back();
  rows.erase(rows.size() - 1);
  const auto targets = d.indices(rows, classes);
  if (!targets || classes == 0) return std::nullopt;
  return Draft{{logits, *targets}, loss_attributes(d, classes)};
}

Drawn cross_entropy_grad(Drawer& d) {
  Drawn draft = cross_entropy(d);
  if (!draft) return draft;
  const Ref logits = std::get<Ref>(draft->operands[0]);
  const Dtype dtype = d.type(logits).dtype;
  Shape rows = d.shape(logits);
  rows.erase(rows.size() - 1);
  draft->operands.push_back(d.source({dtype, rows}, {1, 3}));
  draft->operands.push_back(d.fitting(ValueType{dtype, {}}));
  return draft;
}

Drawn product_cross_entropy(Drawer& d) {
  const Ref x = d.floating(1);
  const std::int64_t width = d.shape(x).back(), classes = d.size();
  Shape rows = d.shape(x);
  rows.erase(rows.size() - 1);
  const auto targets = d.indices(rows, classes);
  if (!targets || classes == 0) return std::nullopt;
  const bool turned = d.random.one_in(2);
  const Dtype dtype = d.type(x).dtype;
  const Ref weight = d.fitting(ValueType{dtype, turned ? Shape{classes, width} : Shape{width, classes}});
  Draft draft{{x, weight, *targets}, loss_attributes(d, classes)};
  if (d.random.one_in(2)) draft.operands.push_back(d.fitting(ValueType{dtype, {classes}}));
  draft.attributes.set("equation", std::string(turned ? "...d,vd->...v" : "...d,dv->...v"));
  return draft;
}

/// `scales`: the maximum number of arrays of the last axis's size that follow x.
Drawn normalised(Drawer& d, int scales) {
  const Ref x = d.floating(1);
  Draft draft{{x}, {{"epsilon", d.random.pick({0.1, 0.01})}}};
  const ValueType row{d.type(x).dtype, {d.shape(x).back()}};
  for (std::int64_t more = d.random.below(scales + 1); more > 0; --more) draft.operands.push_back(d.fitting(row));
  return draft;
}

/// dy, x, the `kept` arrays that the forward op saves per row, and perhaps the weight.
Drawn normalised_grad(Drawer& d, int kept) {
  const Ref x = d.floating(1);
  const Dtype dtype = d.type(x).dtype;
  const std::int64_t width = d.shape(x).back();
  Shape rows = d.shape(x);
  rows.erase(rows.size() - 1);
  Draft draft{{d.fitting(x), x}};
  for (int i = 0; i < kept; ++i) draft.operands.push_back(d.fitting(ValueType{dtype, rows}));
  if (d.random.one_in(2)) draft.operands.push_back(d.fitting(ValueType{dtype, {width}}));
  if (kept == 2) draft.attributes = {{"bias", d.random.one_in(2)}};
  return draft;
}

/// x or y, and the cotangent.
Drawn rowwise_grad(Drawer& d) {
  const Ref y = d.floating(1);
  return Draft{{y, d.fitting(y)}, {{"axis", d.axis_of(y)}}};
}

/// Diagonally dominant matrices, far from singular: positive definite, and with distinct eigenvalues. The triangles are
/// not equal.
Ref dominant(Drawer& d) {
  const std::int64_t n = d.random.between(1, 4);
  Shape shape{n, n};
  if (d.random.one_in(3)) shape.insert(0, d.random.between(1, 3));
  const Ref count = d.must("iota", {{}, {{"shape", List{n}}, {"axis", std::int64_t{0}}, {"dtype", d.real()}}});
  const Ref diagonal = d.must("diag_embed", {{d.must("add", {{count, 1.0}})}});
  const Ref small = d.must("mul", {{d.must("tanh", {{d.fitting({d.real(), shape})}}), 0.06}});
  return d.must("add", {{small, diagonal}});
}

Drawn one_matrix(Drawer& d) {
  return Draft{{dominant(d)}};
}

Drawn two_matrices(Drawer& d) {
  const Ref a = dominant(d);
  return Draft{{a, d.fitting(a)}};
}

Drawn system(Drawer& d) {
  const Ref a = dominant(d);
  Shape b = d.shape(a);
  b.back() = d.random.between(1, 3);
  return Draft{{a, d.fitting(ValueType{d.real(), b})}};
}

Drawn triangular_solve(Drawer& d) {
  Drawn draft = system(d);
  for (const char* flag : {"upper", "transposed", "unit_diagonal"}) draft->attributes.set(flag, d.random.one_in(2));
  return draft;
}

Drawn lu_solve(Drawer& d) {
  Drawn draft = system(d);
  const Ref lu = d.must("lu", {{draft->operands[0]}});
  draft->operands.push_back(lu);
  draft->operands.push_back(Ref{lu.step, 1});
  draft->attributes = {{"transposed", d.random.one_in(2)}};
  return draft;
}

Drawn matrix_power(Drawer& d) {
  return Draft{{dominant(d)}, {{"n", d.random.between(-2, 3)}}};
}

Drawn matrix_norm(Drawer& d) {
  return Draft{{dominant(d)}, {{"ord", d.random.pick<std::string>({"fro", "nuc", "1", "2", "inf"})}}};
}

Drawn kron(Drawer& d) {
  return Draft{{dominant(d), dominant(d)}};
}

}  // namespace

Hints hints_of_linear_algebra() {
  return {
      {"cholesky", {one_matrix}},
      {"triangular_solve", {triangular_solve}},
      {"lu", {one_matrix}},
      {"lu_solve", {lu_solve}},
      {"qr", {one_matrix}},
      {"eigh", {one_matrix}},
      {"svd", {one_matrix}},
      {"pinv", {one_matrix}},
      {"solve", {system}},
      {"inv", {one_matrix}},
      {"det", {one_matrix, false, true}},
      {"det_grad", {one_matrix, false, true}},
      {"det_grad_grad", {two_matrices, false, true}},
      {"slogdet", {one_matrix}},
      {"cholesky_solve", {system}},
      {"lstsq", {system}},
      {"matrix_rank", {one_matrix, true}},
      {"matrix_norm", {matrix_norm}},
      {"matrix_power", {matrix_power, false, true}},
      {"trace", {one_matrix}},
      {"kron", {kron, false, true}},
  };
}

Hints hints_of_products() {
  return {
      {"einsum", {einsum, false, true}},
      {"einsum_add", {einsum_add, false, true}},
      {"matmul", {matmul, false, true}},
      {"ragged_dot", {[](Drawer& d) { return ragged(d, false); }, false, true}},
      {"ragged_dot_weights", {[](Drawer& d) { return ragged(d, true); }, false, true}},
      {"attention", {[](Drawer& d) { return attention(d, false); }}},
      {"attention_grad", {[](Drawer& d) { return attention(d, true); }, false, true}},
      {"cross_entropy", {cross_entropy, false, true}},
      {"cross_entropy_grad", {cross_entropy_grad, false, true}},
      {"product_cross_entropy", {product_cross_entropy, false, true}},
      {"layer_norm", {[](Drawer& d) { return normalised(d, 2); }, false, true}},
      {"rms_norm", {[](Drawer& d) { return normalised(d, 1); }, false, true}},
      {"layer_norm_grad", {[](Drawer& d) { return normalised_grad(d, 2); }, false, true}},
      {"rms_norm_grad", {[](Drawer& d) { return normalised_grad(d, 1); }, false, true}},
      {"softmax_grad", {rowwise_grad, false, true}},
      {"log_softmax_grad", {rowwise_grad, false, true}},
  };
}

}  // namespace xtape::fuzz
