// L-BFGS, with the steps, tests and limits of torch.optim.LBFGS.
#include "optim/lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "base/arrays/visit.hpp"

namespace xtape {

namespace {
double inner(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}
double largest_size(const double* values, std::int64_t count) {
  double most = 0;
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(values[i]));
  return most;
}
void move_by(double factor, const double* from, double* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

void check(const Lbfgs& options) {
  const auto require = [](bool right, const char* text) {
    if (!right) throw Error(std::string("Step: L-BFGS needs ") + text);
  };
  require(options.rate > 0 && std::isfinite(options.rate), "a rate above 0");
  require(options.iterations >= 1 && options.iterations <= 1000000, "1 to 1,000,000 iterations");
  require(options.plays >= 0, "a number of plays of at least 0 (0: 5 / 4 of the iterations)");
  require(options.history >= 1 && options.history <= 100000, "a history of 1 to 100,000 changes");
  require(options.gradient_tolerance >= 0 && options.change_tolerance >= 0, "tolerances of at least 0");
}

/// A point between two others, at the minimum of the cubic polynomial with their losses and slopes.
template <class Point>
double between(const Point& a, const Point& b, double low, double high) {
  const Point &left = a.at <= b.at ? a : b, &right = a.at <= b.at ? b : a;
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.at - b.at);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0 && std::isfinite(square))) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double least =
      right.at - (right.at - left.at) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::isfinite(least) ? std::min(std::max(least, low), high) : (low + high) / 2;
}
}  // namespace

LbfgsSearch::LbfgsSearch(const Store& weights, const Lbfgs& options) : weights_(weights), options_(options) {
  check(options);
  for (const Store::Entry& weight : weights_) {
    if (weight.value.dtype() != Dtype::float32 && weight.value.dtype() != Dtype::float64)
      throw DtypeError("Step: '" + weight.name + "' is " + name_of(weight.value.dtype()) + ", not float32 or float64");
    size_ += weight.value.count();
  }
  if (size_ == 0) throw Error("Step: there are no weights");
  if (options_.plays == 0) options_.plays = options_.iterations * 5 / 4;
  factors_.resize(static_cast<std::size_t>(options_.history));
  counts_ = state_.add("counts", Array(Dtype::int64, {4}));
  length_ = state_.add("length", Array(Dtype::float64, {1}));
  scale_ = state_.add("scale", Array(Dtype::float64, {1}));
  direction_ = state_.add("direction", Array(Dtype::float64, {size_}));
  gradient_ = state_.add("gradient", Array(Dtype::float64, {size_}));
  changes_ = state_.add("changes", Array(Dtype::float64, {options_.history, size_}));
  gradient_changes_ = state_.add("gradient_changes", Array(Dtype::float64, {options_.history, size_}));
}

double* LbfgsSearch::change(std::int64_t i) {
  return changes_.as<double>() + (counts()[3] + i) % options_.history * size_;
}
double* LbfgsSearch::gradient_change(std::int64_t i) {
  return gradient_changes_.as<double>() + (counts()[3] + i) % options_.history * size_;
}

void LbfgsSearch::read_weights(std::vector<double>& to) const {
  to.clear();
  for (const Store::Entry& weight : weights_)
    visit_floats(weight.value, [&](const auto* values) { to.insert(to.end(), values, values + weight.value.count()); });
}

void LbfgsSearch::set_weights(const std::vector<double>& from, double length) {
  const double* next = from.data();
  const double* direction = direction_.as<double>();
  for (const Store::Entry& weight : weights_) {
    Array array(weight.value);
    visit_floats(array, [&](auto* values) {
      using T = std::remove_pointer_t<decltype(values)>;
      for (std::int64_t i = 0; i < array.count(); ++i, ++next, ++direction)
        values[i] = static_cast<T>(length == 0 ? *next : *next + length * *direction);
    });
  }
}

LbfgsSearch::Point LbfgsSearch::point(const Evaluate& evaluate, double at) {
  set_weights(start_, at);
  Point found{at};
  found.loss = evaluate(found.gradient);
  if (std::isnan(found.loss)) found.loss = std::numeric_limits<double>::infinity();
  found.slope = inner(found.gradient.data(), direction_.as<double>(), size_);
  return found;
}

double LbfgsSearch::update(const Evaluate& evaluate, double rate) {
  std::vector<double> before;
  read_weights(before);
  try {
    return search(evaluate, rate);
  } catch (...) {
    set_weights(before, 0);
    counts()[1] = counts()[2] = counts()[3] = 0;
    throw;
  }
}

double LbfgsSearch::search(const Evaluate& evaluate, double rate) {
  read_weights(start_);
  Point now;
  now.loss = evaluate(now.gradient);
  const double first_loss = now.loss;
  norm_ = std::sqrt(inner(now.gradient.data(), now.gradient.data(), size_));
  if (!std::isfinite(first_loss) || !std::isfinite(norm_))
    throw UpdateError("update " + std::to_string(updates() + 1) + ": the loss or its gradient is not finite");
  const auto is_flat = [&] { return largest_size(now.gradient.data(), size_) <= options_.gradient_tolerance; };
  std::int64_t plays = 1;
  for (std::int64_t i = 0; i < options_.iterations && !is_flat() && (i == 0 || plays < options_.plays); ++i) {
    if (++counts()[1] == 1) {
      counts()[2] = 0;
      *scale_.as<double>() = 1;
    } else {
      remember(now.gradient);
    }
    find_direction(now.gradient);
    std::copy(now.gradient.begin(), now.gradient.end(), gradient_.as<double>());
    double length = options_.rate * rate;
    if (counts()[1] == 1) {
      double sum = 0;
      for (const double each : now.gradient) sum += std::abs(each);
      length *= std::min(1.0, 1 / sum);
    }
    *length_.as<double>() = length;
    now.slope = inner(now.gradient.data(), direction_.as<double>(), size_);
    if (now.slope > -options_.change_tolerance) break;
    const double loss_before = now.loss;
    now.at = 0;
    read_weights(start_);
    if (options_.strong_wolfe) {
      now = line_search(evaluate, length, now, options_.plays - plays, plays);
    } else if (i + 1 < options_.iterations) {
      now = point(evaluate, length);
      ++plays;
    } else {
      now.at = length;
    }
    *length_.as<double>() = now.at;
    set_weights(start_, now.at);
    if (!std::isfinite(now.loss))
      throw UpdateError("update " + std::to_string(updates() + 1) + ": the loss is not finite at the new weights");
    if (largest_size(direction_.as<double>(), size_) * std::abs(now.at) <= options_.change_tolerance) break;
    if (std::abs(now.loss - loss_before) < options_.change_tolerance) break;
  }
  ++counts()[0];
  return first_loss;
}

void LbfgsSearch::remember(const std::vector<double>& gradient) {
  constexpr double least_curvature = 1e-10;
  const double *before = gradient_.as<double>(), *direction = direction_.as<double>();
  const double length = *length_.as<double>();
  double curvature = 0, square = 0;
  for (std::int64_t i = 0; i < size_; ++i) {
    const double change = gradient[static_cast<std::size_t>(i)] - before[i];
    curvature += change * (direction[i] * length);
    square += change * change;
  }
  if (!(curvature > least_curvature)) return;
  std::int64_t &count = counts()[2], &oldest = counts()[3];
  if (count == options_.history)
    oldest = (oldest + 1) % options_.history;
  else
    ++count;
  for (std::int64_t i = 0; i < size_; ++i) {
    gradient_change(count - 1)[i] = gradient[static_cast<std::size_t>(i)] - before[i];
    change(count - 1)[i] = direction[i] * length;
  }
  *scale_.as<double>() = curvature / square;
}

void LbfgsSearch::find_direction(const std::vector<double>& gradient) {
  double* const direction = direction_.as<double>();
  for (std::int64_t i = 0; i < size_; ++i) direction[i] = -gradient[static_cast<std::size_t>(i)];
  const std::int64_t count = counts()[2];
  const auto curvature = [&](std::int64_t i) { return inner(gradient_change(i), change(i), size_); };
  for (std::int64_t i = count; i-- > 0;) {
    factors_[static_cast<std::size_t>(i)] = inner(change(i), direction, size_) / curvature(i);
    move_by(-factors_[static_cast<std::size_t>(i)], gradient_change(i), direction, size_);
  }
  for (std::int64_t i = 0; i < size_; ++i) direction[i] *= *scale_.as<double>();
  for (std::int64_t i = 0; i < count; ++i) {
    const double back = inner(gradient_change(i), direction, size_) / curvature(i);
    move_by(factors_[static_cast<std::size_t>(i)] - back, change(i), direction, size_);
  }
}

LbfgsSearch::Point LbfgsSearch::line_search(const Evaluate& evaluate, double length, const Point& start,
                                            std::int64_t most_plays, std::int64_t& plays) {
  constexpr double enough_decrease = 1e-4, enough_flatness = 0.9;
  const auto play = [&](double at) {
    ++plays;
    return point(evaluate, at);
  };
  const auto decreases = [&](const Point& p) { return p.loss <= start.loss + enough_decrease * p.at * start.slope; };
  const auto is_flat = [&](const Point& p) { return std::abs(p.slope) <= -enough_flatness * start.slope; };
  // Lengthens the step until two points bracket one that meets both conditions of Wolfe.
  Point a = start, b = play(length);
  std::int64_t tries = 0;
  for (; tries < most_plays; ++tries) {
    if (!decreases(b) || (tries > 1 && b.loss >= a.loss)) break;
    if (is_flat(b)) return b;
    if (b.slope >= 0) break;
    const double next = between(a, b, b.at + 0.01 * (b.at - a.at), b.at * 10);
    a = std::move(b);
    b = play(next);
  }
  if (tries == most_plays) a = start;
  // Shortens the bracket.
  Point *low = a.loss <= b.loss ? &a : &b, *high = low == &a ? &b : &a;
  const double most = largest_size(direction_.as<double>(), size_);
  bool was_near = false;
  for (; tries < most_plays && std::abs(b.at - a.at) * most >= options_.change_tolerance; ++tries) {
    const double left = std::min(a.at, b.at), right = std::max(a.at, b.at), margin = 0.1 * (right - left);
    double at = between(a, b, left, right);
    const bool is_near = std::min(right - at, at - left) < margin;
    if (is_near && (was_near || at >= right || at <= left)) {
      at = std::abs(at - right) < std::abs(at - left) ? right - margin : left + margin;
      was_near = false;
    } else {
      was_near = is_near;
    }
    Point next = play(at);
    if (!decreases(next) || next.loss >= low->loss) {
      *high = std::move(next);
      low = a.loss <= b.loss ? &a : &b;
      high = low == &a ? &b : &a;
      continue;
    }
    const bool done = is_flat(next);
    if (!done && next.slope * (high->at - low->at) >= 0) *high = std::move(*low);
    *low = std::move(next);
    if (done) break;
  }
  return *low;
}

}  // namespace xtape
