#include "kernels/linear_algebra/rotations.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/linear_algebra/reflectors.hpp"

namespace xtape {

ToAxis::ToAxis(double x, double y) : Rotation{1, 0}, length(x) {
  if (y == 0) return;
  length = hypotenuse(x, y);
  c = x / length;
  s = y / length;
}

namespace {
/// The first element of the block that ends with state.last: those before it are apart from it.
std::int64_t first_of_block(const QrIteration& state) {
  std::int64_t first = state.last;
  while (first > 0) {
    const double size = std::abs(state.d[first - 1]) + std::abs(state.d[first]), rest = std::abs(state.e[first - 1]);
    if (rest <= state.precision * size || rest <= state.precision * state.precision) break;
    --first;
  }
  return first;
}

/// Calls sweep(first) for one block after the other.
template <class Sweep>
Progress for_blocks(QrIteration& state, const Sweeps& sweeps, const Sweep& sweep) {
  while (state.last > 0) {
    const std::int64_t first = first_of_block(state);
    if (first == state.last) {
      --state.last;
      continue;
    }
    if (sweeps.full()) return Progress::more;
    if (--state.sweeps < 0) return Progress::failed;
    sweep(first);
  }
  return Progress::done;
}

void sweep_symmetric(const QrIteration& state, std::int64_t first, Sweeps& sweeps) {
  double *d = state.d, *e = state.e;
  const std::int64_t last = state.last;
  const double half = (d[last - 1] - d[last]) / (2 * e[last - 1]);
  double g = d[first] - d[last] + e[last - 1] / (half + std::copysign(hypotenuse(half, 1), half));
  double c = 1, s = 1, p = 0;
  Rotation* rotations = sweeps.add(first, last);
  for (std::int64_t k = first; k < last; ++k) {
    const double b = c * e[k];
    const ToAxis turn(g, s * e[k]);
    if (k > first) e[k - 1] = turn.length;
    c = turn.c, s = turn.s;
    g = d[k] - p;
    const double r = (d[k + 1] - g) * s + 2 * c * b;
    p = s * r;
    d[k] = g + p;
    g = c * r - b;
    rotations[k] = turn;
  }
  d[last] -= p;
  e[last - 1] = g;
}

/// Without a shift, each element is computed without subtractions.
void sweep_without_shift(const QrIteration& state, std::int64_t first, Rotation* of_u, Rotation* of_v) {
  double *d = state.d, *e = state.e;
  Rotation v{1, 0}, u{1, 0};
  for (std::int64_t k = first; k < state.last; ++k) {
    const ToAxis right(d[k] * v.c, e[k]);
    if (k > first) e[k - 1] = u.s * right.length;
    const ToAxis left(u.c * right.length, d[k + 1] * right.s);
    d[k] = left.length;
    of_v[k] = v = right;
    of_u[k] = u = left;
  }
  const double rest = d[state.last] * v.c;
  d[state.last] = rest * u.c;
  e[state.last - 1] = rest * u.s;
}

void sweep_with_shift(const QrIteration& state, std::int64_t first, double shift, Rotation* of_u, Rotation* of_v) {
  double *d = state.d, *e = state.e;
  double f = (std::abs(d[first]) - shift) * (std::copysign(1.0, d[first]) + shift / d[first]), g = e[first];
  for (std::int64_t k = first; k < state.last; ++k) {
    const ToAxis right(f, g);
    if (k > first) e[k - 1] = right.length;
    f = right.c * d[k] + right.s * e[k];
    e[k] = right.c * e[k] - right.s * d[k];
    const ToAxis left(f, right.s * d[k + 1]);
    d[k + 1] = right.c * d[k + 1];
    d[k] = left.length;
    f = left.c * e[k] + left.s * d[k + 1];
    d[k + 1] = left.c * d[k + 1] - left.s * e[k];
    e[k] = f;
    if (k + 1 < state.last) {
      g = left.s * e[k + 1];
      e[k + 1] = left.c * e[k + 1];
    }
    of_v[k] = right;
    of_u[k] = left;
  }
}

void sweep_bidiagonal(const QrIteration& state, std::int64_t first, Sweeps& of_u, Sweeps& of_v) {
  const double *d = state.d, *e = state.e;
  const std::int64_t last = state.last;
  double least = std::abs(d[last]), most = 0;
  for (std::int64_t k = first; k <= last; ++k) {
    least = std::min(least, std::abs(d[k]));
    most = std::max(most, std::abs(d[k]));
  }
  // The smaller singular value of the last two rows and columns.
  const double x = std::abs(d[last - 1]), y = std::abs(d[last]);
  const double shift = x * y == 0 ? 0 : 2 * x * (y / (hypotenuse(x + y, e[last - 1]) + hypotenuse(x - y, e[last - 1])));
  const double part = shift / std::abs(d[first]);
  Rotation *u = of_u.add(first, last), *v = of_v.add(first, last);
  if (least <= state.precision * most || part * part < state.precision)
    sweep_without_shift(state, first, u, v);
  else
    sweep_with_shift(state, first, shift, u, v);
}
}  // namespace

Progress diagonalise_symmetric(QrIteration& state, Sweeps& sweeps) {
  return for_blocks(state, sweeps, [&](std::int64_t first) { sweep_symmetric(state, first, sweeps); });
}
Progress diagonalise_bidiagonal(QrIteration& state, Sweeps& of_u, Sweeps& of_v) {
  return for_blocks(state, of_u, [&](std::int64_t first) { sweep_bidiagonal(state, first, of_u, of_v); });
}

}  // namespace xtape
