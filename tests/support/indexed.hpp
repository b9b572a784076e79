/// Short helpers for tests of functions with indices.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops/indexing.hpp"
#include "xtape/vmap.hpp"

namespace xtape {

using Integers = std::vector<std::int64_t>;
using OneResult = std::function<Var(const Vars&)>;

/// Returns a constant of indices. It has one axis if there is no shape.
inline Var index(const Var& like, const Integers& values, Shape shape = {}, Dtype dtype = Dtype::int64) {
  Array array(Dtype::int64, shape.empty() ? Shape{static_cast<std::int64_t>(values.size())} : shape);
  std::copy(values.begin(), values.end(), array.as<std::int64_t>());
  return cast(like.tape().constant(array), dtype);
}

/// Returns integers as an operand of `played`, which feeds floats.
inline Doubles as_numbers(const Integers& values, const Shape& shape) {
  auto next = values.begin();
  return made_from(shape, [&](const Shape&) { return static_cast<double>(*next++); });
}

/// Checks vmap over axis 0 of all operands against a loop. Repeats the check once for each operand, with this operand
/// unmapped.
inline void check_vmap(const OneResult& function, const std::vector<Doubles>& points) {
  for (std::size_t same = points.size() == 1 ? 1 : 0; same <= points.size(); ++same) {
    CAPTURE(same);
    const std::vector<Doubles> both = played_with(
        [&](const Vars& v) {
          Vars inputs = v, results;
          VmapOptions options;
          for (std::size_t i = 0; i < v.size(); ++i) {
            options.in_axes.emplace_back(0);
            if (i != same) continue;
            inputs[i] = unstack(v[i])[0];
            options.in_axes.back() = std::nullopt;
          }
          for (std::int64_t e = 0; e < v[0].shape()[0]; ++e) {
            Vars example = inputs;
            for (std::size_t i = 0; i < v.size(); ++i)
              if (i != same) example[i] = unstack(v[i])[static_cast<std::size_t>(e)];
            results.push_back(function(example));
          }
          return Vars{vmap([&](const Vars& in) { return Vars{function(in)}; }, inputs, options)[0], stack(results)};
        },
        points, Dtype::float64, {});
    CHECK(near(both[0], both[1], 1e-14));
  }
}

/// Checks the tangent along the directions against a difference quotient.
inline void check_jvp(const OneResult& function, const std::vector<Doubles>& points,
                      const std::vector<Doubles>& directions) {
  std::vector<Doubles> both = points;
  both.insert(both.end(), directions.begin(), directions.end());
  const std::size_t n = points.size();
  constexpr double step = 1e-6;
  const std::vector<Doubles> y = played_with(
      [&](const Vars& v) {
        const Vars x(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(n));
        const Vars along(v.begin() + static_cast<std::ptrdiff_t>(n), v.end());
        Vars before, after;
        for (std::size_t i = 0; i < n; ++i) {
          before.push_back(x[i] - along[i] * step);
          after.push_back(x[i] + along[i] * step);
        }
        return Vars{jvp({function(x)}, x, along)[0], (function(after) - function(before)) / (2 * step)};
      },
      both, Dtype::float64, {});
  CHECK(near(y[0], y[1], 1e-7));
}

}  // namespace xtape
