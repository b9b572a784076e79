#include "ranks/gradient_noise.hpp"

#include "base/arrays/named_draws.hpp"

namespace xtape::ranks {

namespace {
template <class T>
void add_draws(const Draws& draws, const Piece& piece, const GradientNoise& noise, T* sums) {
  static_assert(Piece::most % 2 == 0, "pairs of numbers do not cross pieces");
  for (std::int64_t i = 0; i < piece.count; i += 2) {
    const auto [first, second] = draws.normal(static_cast<std::uint64_t>((piece.begin + i) / 2), noise.update);
    sums[i] = static_cast<T>(sums[i] + noise.deviation * first);
    if (i + 1 < piece.count) sums[i + 1] = static_cast<T>(sums[i + 1] + noise.deviation * second);
  }
}
}  // namespace

void add_noise(const Store& weights, const Piece& piece, const GradientNoise& noise, void* sums) {
  const Store::Entry& weight = weights[piece.weight];
  // The names of weights have no spaces, so no initial weight draws the same numbers.
  const Draws draws(noise.seed, "noise of " + weight.name);
  if (weight.value.dtype() == Dtype::float64)
    add_draws(draws, piece, noise, static_cast<double*>(sums));
  else
    add_draws(draws, piece, noise, static_cast<float*>(sums));
}

}  // namespace xtape::ranks
