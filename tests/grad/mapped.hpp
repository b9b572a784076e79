/// Functions mapped by vmap, and their values beside those of a loop.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/vmap.hpp"
#include "xtape/xtensor.hpp"

namespace mapped {

using namespace xtape;
using Numbers = xt::xarray<double>;
using Function = std::function<Vars(const Vars&)>;

inline Numbers numbers(const std::vector<std::size_t>& shape, double scale = 1) {
  Numbers found = xt::zeros<double>(shape);
  double i = 0;
  for (double& each : found) each = scale * std::sin(1.3 * ++i);
  return found;
}

/// The values of vars, as float64.
inline std::vector<Numbers> played(const Tape& tape, const Vars& vars) {
  Vars wide;
  for (const Var& var : vars) wide.push_back(cast(var, Dtype::float64));
  Player player(tape, wide);
  player.play({}, 3);
  std::vector<Numbers> found;
  for (const Var& var : wide) found.push_back(player.view(var).to<double>());
  return found;
}

inline bool is_close(const Numbers& a, const Numbers& b) {
  bool close = a.shape() == b.shape();
  for (std::size_t i = 0; close && i < a.size(); ++i)
    close = a.flat(i) == b.flat(i) || std::abs(a.flat(i) - b.flat(i)) <= 1e-12 * (1 + std::abs(b.flat(i))) ||
            (std::isnan(a.flat(i)) && std::isnan(b.flat(i)));
  return close;
}

/// Checks that the function mapped over the given axes of constants equals a loop.
inline void check_mapped(const Function& function, const std::vector<Array>& arrays, const VmapOptions& options = {}) {
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  Vars inputs;
  for (const Array& array : arrays) inputs.push_back(tape.constant(array));
  const auto axis_of = [&](std::size_t i) -> std::optional<std::int64_t> {
    return options.in_axes.empty() ? 0 : options.in_axes[i];
  };
  const Vars together = vmap(function, inputs, options);
  std::int64_t size = -1;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (axis_of(i)) size = inputs[i].size(*axis_of(i));
  std::vector<Vars> alone(together.size());
  for (std::int64_t k = 0; k < size; ++k) {
    Vars one;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!axis_of(i)) {
        one.push_back(inputs[i]);
        continue;
      }
      const std::size_t axis = normal_axis(*axis_of(i), inputs[i].rank());
      std::vector<std::int64_t> start(axis, 0), stop(axis, open_end);
      start.push_back(k);
      stop.push_back(k + 1);
      one.push_back(squeeze(slice(inputs[i], start, stop), {static_cast<std::int64_t>(axis)}));
    }
    const Vars results = function(one);
    REQUIRE(results.size() == together.size());
    for (std::size_t r = 0; r < results.size(); ++r) alone[r].push_back(results[r]);
  }
  Vars all = together;
  for (std::size_t r = 0; r < together.size(); ++r) {
    const std::int64_t axis = options.out_axes.empty() ? 0 : options.out_axes[r];
    all.push_back(stack(alone[r], axis));
    CHECK(all.back().type() == together[r].type());
  }
  const std::vector<Numbers> values = played(tape, all);
  for (std::size_t r = 0; r < together.size(); ++r) {
    CAPTURE(r);
    CHECK(is_close(values[r], values[together.size() + r]));
  }
}

inline Array floats(const std::vector<std::size_t>& shape) {
  return Array(ArrayView(numbers(shape)));
}
inline Array integers(const std::vector<std::size_t>& shape, std::int64_t below) {
  xt::xarray<std::int64_t> found = xt::zeros<std::int64_t>(shape);
  std::int64_t i = 0;
  for (std::int64_t& each : found) {
    ++i;
    each = (5 * i + i / 3) % below;
  }
  return Array(ArrayView(found));
}

}  // namespace mapped
