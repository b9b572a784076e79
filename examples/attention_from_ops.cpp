// Builds attention from ops: scaled dot-product attention (Vaswani et al., 2017) with and without a mask, and additive
// attention (Bahdanau et al., 2015). The inputs are small enough to check by hand.
#include <cmath>
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

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

void print(const char* title, const ArrayView& table) {
  std::cout << title << '\n';
  for (std::int64_t row = 0; row < table.shape()[0]; ++row, std::cout << '\n')
    for (std::int64_t column = 0; column < table.shape()[1]; ++column) std::cout << "  " << table(row, column);
}

}  // namespace

int main() try {
  std::cout.precision(4);
  std::cout.setf(std::ios::fixed);

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
  player.play({{x, {0, 0, 1, 0, 0, 2, 1, 0, 0}}, {one, {0.1, 0.1, 0.8}}});
  print("every row attends to every row", player.view(plain.weights));
  print("one row attends to itself", player.view(alone.weights));
  print("and gets what it is", player.view(alone.output));
  print("causal mask: no row sees a later one", player.view(causal.weights));
  print("padding mask: no row sees the last", player.view(padded.weights));
  print("additive attention, with W = U = 1 and v = (1, 1, 1)", player.view(added.weights));
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
