/// Plays a recorded function on the reference path, and on the fast path with one and with two threads, in float64 and
/// in float32. All results must agree.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gradients.hpp"
#include "random_layouts.hpp"
#include "xtape/player.hpp"
#include "xtape/tape.hpp"
#include "xtape/xtensor.hpp"

namespace xtape {

using Doubles = xt::xarray<double>;
using Recording = std::function<Vars(const Vars&)>;

inline Shape shape_of(const Doubles& x) {
  return Shape(x.shape().begin(), x.shape().end());
}

/// Returns an array whose element at `index` is value(index).
template <class Value>
Doubles made_from(const Shape& shape, const Value& value) {
  Doubles result = Doubles::from_shape(std::vector<std::size_t>(shape.begin(), shape.end()));
  double* next = result.data();
  for_each_index(shape, [&](const Shape& index) { *next++ = value(index); });
  return result;
}

/// Returns the element of `x` at `index`.
inline double element(const Doubles& x, const Shape& index) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < index.size(); ++i) flat = flat * static_cast<std::int64_t>(x.shape()[i]) + index[i];
  return x.data()[flat];
}

/// Returns random numbers in (-1, 1) that are exact in float32, as a function of the seed.
inline Doubles numbers(const Shape& shape, unsigned seed = 0) {
  std::mt19937 random(seed + 1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  return made_from(shape, [&](const Shape&) { return static_cast<double>(uniform(random)); });
}

/// Returns whether |x - y| <= tolerance * (1 + |y|) for all elements. Two NaNs count as near.
inline bool near(const Doubles& x, const Doubles& y, double tolerance) {
  if (shape_of(x) != shape_of(y)) return false;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double a = x.data()[i], b = y.data()[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= tolerance * (1 + std::abs(b)))) return false;
  }
  return true;
}

/// Converts an array of any dtype to doubles.
inline Doubles as_doubles(const ArrayView& view) {
  const auto converted = [](const auto& values) {
    Doubles result = Doubles::from_shape(std::vector<std::size_t>(values.shape().begin(), values.shape().end()));
    for (std::size_t i = 0; i < values.size(); ++i) result.data()[i] = static_cast<double>(values.data()[i]);
    return result;
  };
  switch (view.dtype()) {
    case Dtype::float32:
      return converted(view.to<float>());
    case Dtype::float64:
      return converted(view.to<double>());
    case Dtype::int32:
      return converted(view.to<std::int32_t>());
    case Dtype::int64:
      return converted(view.to<std::int64_t>());
    default:
      return converted(view.to<bool>());
  }
}

/// Returns the outputs of `record` for the points. They are played with `options` in the float dtype `dtype`.
inline std::vector<Doubles> played_with(const Recording& record, const std::vector<Doubles>& points, Dtype dtype,
                                        const PlayerOptions& options) {
  Tape tape;
  Vars inputs;
  std::vector<Array> values;
  for (const Doubles& point : points) {
    values.emplace_back(dtype, shape_of(point));
    for (std::size_t i = 0; i < point.size(); ++i)
      if (dtype == Dtype::float64)
        values.back().as<double>()[i] = point.data()[i];
      else
        values.back().as<float>()[i] = static_cast<float>(point.data()[i]);
    inputs.push_back(tape.input("x" + std::to_string(inputs.size()), values.back().shape(), dtype));
  }
  const Vars outputs = record(inputs);
  Player player(tape, outputs, options);
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i], values[i]);
  player.play(feeds, 0);
  player.play(feeds, 0);  // a second play must not depend on the first
  std::vector<Doubles> results;
  for (const Var& output : outputs) results.push_back(as_doubles(player.view(output)));
  return results;
}

/// Returns whether two numbers have the same bits. The comparison also works for NaN.
inline bool same_number(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// Returns the outputs of `record` for the points, computed in float64 on the reference path. Checks that the fast path
/// agrees within `tolerance` and gives the same bits on one and two threads, and that float32 agrees within
/// `tolerance32`.
inline std::vector<Doubles> played(const Recording& record, const std::vector<Doubles>& points,
                                   double tolerance = 1e-12, double tolerance32 = 1e-5) {
  PlayerOptions reference;
  reference.passes = Passes::reference();
  PlayerOptions fast;
  fast.threads = 1;
  PlayerOptions fast_on_two;
  fast_on_two.threads = 2;
  const std::vector<Doubles> truth = played_with(record, points, Dtype::float64, reference);
  for (Dtype dtype : {Dtype::float64, Dtype::float32}) {
    const std::vector<Doubles> one = played_with(record, points, dtype, fast);
    const std::vector<Doubles> two = played_with(record, points, dtype, fast_on_two);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      CAPTURE(name_of(dtype));
      CAPTURE(i);
      CHECK(shape_of(one[i]) == shape_of(truth[i]));
      CHECK(near(one[i], truth[i], dtype == Dtype::float64 ? tolerance : tolerance32));
      CHECK(std::equal(one[i].begin(), one[i].end(), two[i].begin(), same_number));
    }
  }
  return truth;
}
inline Doubles played_one(const std::function<Var(const Vars&)>& record, const std::vector<Doubles>& points) {
  return played([&](const Vars& x) { return Vars{record(x)}; }, points)[0];
}

/// Like check_gradients, for one output.
inline void check_gradient(const std::function<Var(const Vars&)>& record, const std::vector<Doubles>& points) {
  check_gradients([&](const Vars& x) { return Vars{record(x)}; }, points);
}

}  // namespace xtape
