/// L-BFGS with a strong-Wolfe line search, for Step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "xtape/step.hpp"

namespace xtape {

/// The search of an Lbfgs step, in float64. Everything that later updates need is in its state.
class LbfgsSearch {
 public:
  /// Returns the loss at the current weights, and writes its gradient, one weight after the other.
  using Evaluate = std::function<double(std::vector<double>& gradient)>;

  /// Shares the memory of the weights. Throws Error if an option is out of range, DtypeError if a weight is no float.
  LbfgsSearch(const Store& weights, const Lbfgs& options);
  /// Makes an update and returns the loss before it. `rate` is a factor of Lbfgs::rate. If `evaluate` throws or the
  /// loss at the new weights is not finite, the weights become those before the update, the history is dropped, and the
  /// error propagates, or UpdateError.
  double update(const Evaluate& evaluate, double rate);
  std::int64_t updates() const { return counts()[0]; }
  double length() const { return *length_.as<double>(); }  ///< The length of the last step.
  double norm() const { return norm_; }                    ///< That of the first gradient of the last update.
  const Store& state() const { return state_; }

 private:
  /// A point of a line search: its distance, loss, gradient and slope.
  struct Point {
    double at = 0, loss = 0;
    std::vector<double> gradient = {};
    double slope = 0;
  };
  std::int64_t* counts() { return counts_.as<std::int64_t>(); }
  const std::int64_t* counts() const { return counts_.as<std::int64_t>(); }
  double* change(std::int64_t i);           // the i-th oldest change of weights in the history
  double* gradient_change(std::int64_t i);  // and of gradients
  void read_weights(std::vector<double>& to) const;
  void set_weights(const std::vector<double>& from, double length);
  Point point(const Evaluate& evaluate, double at);
  double search(const Evaluate& evaluate, double rate);
  void remember(const std::vector<double>& gradient);
  void find_direction(const std::vector<double>& gradient);
  Point line_search(const Evaluate& evaluate, double length, const Point& start, std::int64_t most_plays,
                    std::int64_t& plays);

  Store weights_;
  Lbfgs options_;
  std::int64_t size_ = 0;  // of all weights
  double norm_ = 0;
  std::vector<double> start_, factors_;
  // The state: updates, iterations, length of the history, its oldest entry; numbers; vectors.
  Array counts_, length_, scale_, direction_, gradient_, changes_, gradient_changes_;
  Store state_;
};

}  // namespace xtape
