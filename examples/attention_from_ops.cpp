// Builds attention from ops: scaled dot-product attention (Vaswani et al., 2017) with and without a mask, and additive
// attention (Bahdanau et al., 2015). The inputs are small enough to check by hand.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>

using namespace xtape;
using Table = xt::xtensor<double, 2>;

namespace {

struct Attended {
  Var output;   // [queries, width]
  Var weights;  // [queries, keys]
};

/// weights = softmax(scores). The weight is 0 where `hidden` [queries, keys] is true.
Attended attend(const Var& scores, const Var& values, const Var& hidden) {
  const Var weights = softmax(masked_fill(scores, hidden, -INFINITY));
  return {einsum("qk,kd->qd", weights, values), weights};
}

/// scores = q k' / sqrt(d)
Attended dot_product(const Var& q, const Var& k, const Var& v, const Var& hidden) {
  return attend(einsum("qd,kd->qk", q, k) / std::sqrt(static_cast<double>(q.shape().back())), v, hidden);
}

/// scores = v' tanh(W q + U k), for every pair of a query and a key.
Attended additive(const Var& q, const Var& k, const Var& w, const Var& u, const Var& v, const Var& hidden) {
  const Var query = expand_dims(einsum("qd,dh->qh", q, w), 1);
  const Var key = expand_dims(einsum("kd,dh->kh", k, u), 0);
  return attend(einsum("qkh,h->qk", tanh(query + key), v), k, hidden);
}

bool check(const char* what, const Table& found, const Table& expected) {
  bool right = found.shape() == expected.shape();
  std::cout << what << '\n';
  for (std::size_t row = 0; row < found.shape(0); ++row) {
    for (std::size_t column = 0; column < found.shape(1); ++column) {
      std::cout << "  " << found(row, column);
      right = right && std::fabs(found(row, column) - expected(row, column)) < 1e-4;
    }
    std::cout << '\n';
  }
  if (!right) std::cout << "  is WRONG\n";
  return right;
}

}  // namespace

int main() {
  std::cout.precision(4);
  std::cout.setf(std::ios::fixed);
  const Table rows = {{0, 0, 1}, {0, 0, 2}, {1, 0, 0}};
  const Table single = {{0.1, 0.1, 0.8}};

  Tape tape;
  const Var x = tape.input("x", {3, 3}, Dtype::float64);
  const Var one = tape.input("one", {1, 3}, Dtype::float64);
  const Var later = iota(tape, {3, 3}, 0) < iota(tape, {3, 3}, 1);  // keys that come after the query
  const Var padding = iota(tape, {1, 3}, 1) >= 2;                   // the last key is padding
  const Var none = zeros(tape, {1, 1}, Dtype::boolean);

  const Attended plain = dot_product(x, x, x, none);
  const Attended alone = dot_product(one, one, one, none);
  const Attended causal = dot_product(x, x, x, later);
  const Attended padded = dot_product(x, x, x, padding);
  const Var identity = eye(tape, 3, 3, Dtype::float64);
  const Attended added = additive(x, x, identity, identity, ones(tape, {3}, Dtype::float64), padding);

  Player player(tape, {plain.weights, alone.output, alone.weights, causal.weights, padded.weights, added.weights});
  player.play({{x, rows}, {one, single}});
  const auto found = [&](const Var& var) { return player.value<double>(var); };
  bool right = check("every row attends to every row", found(plain.weights),
                     {{0.2992, 0.5329, 0.1679}, {0.2228, 0.7070, 0.0702}, {0.2645, 0.2645, 0.4711}});
  right &= check("one row attends to itself", found(alone.weights), {{1.0}});
  right &= check("and gets what it is", found(alone.output), single);
  right &= check("causal mask: no row sees a later one", found(causal.weights),
                 {{1, 0, 0}, {0.2396, 0.7604, 0}, {0.2645, 0.2645, 0.4711}});
  right &= check("padding mask: no row sees the last", found(padded.weights),
                 {{0.3595, 0.6405, 0}, {0.2396, 0.7604, 0}, {0.5, 0.5, 0}});
  right &= check("additive attention, with W = U = 1 and v = (1, 1, 1)", found(added.weights),
                 {{0.4922, 0.5078, 0}, {0.4989, 0.5011, 0}, {0.4496, 0.5504, 0}});
  return right ? 0 : 1;
}
