/// The privacy guarantee, epsilon and delta, of training with clipped gradients and Gaussian noise.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// The privacy loss of a training. The training is (epsilon, delta)-differentially private for each example.
struct PrivacySpent {
  double epsilon = 0;  ///< Infinite if there is no bound.
  /// The Rényi order that gives the bound, or 0 without updates. If it is the first or last order of the accountant's
  /// list, further orders could give a smaller epsilon.
  double order = 0;
};

/// Adds up the privacy loss of updates of DP-SGD (Abadi et al., 2016, Deep learning with differential privacy). Each
/// update draws every example with probability `sample_rate`, independently (Poisson sampling). It sums gradients of
/// norm at most C, and adds Gaussian noise of standard deviation noise_multiplier * C to every element of the sum. The
/// accountant tracks the Rényi divergence for several orders (Mironov, Talwar and Zhang, 2019, Rényi differential
/// privacy of the sampled Gaussian mechanism). Neighbouring data sets differ by the presence of one example.
class PrivacyAccountant {
 public:
  /// `orders` must be above 1 and at most 2^20. If empty, they are default_orders(). Throws Error if an order is out of
  /// range.
  explicit PrivacyAccountant(std::vector<double> orders = {});
  /// 1.1, 1.2 … 10.9 and 12, 13 … 63, as in Opacus.
  static std::vector<double> default_orders();

  /// Counts `updates` additional updates. Throws Error if noise_multiplier is negative or not finite, sample_rate is
  /// outside [0, 1], or `updates` is negative. If there is no noise, epsilon becomes infinite.
  void count(double noise_multiplier, double sample_rate, std::int64_t updates = 1);

  /// Returns the smallest epsilon over all orders for this delta (Balle et al., 2020, Hypothesis testing
  /// interpretations and Rényi differential privacy, theorem 21). Throws Error if delta is not strictly between 0 and
  /// 1.
  PrivacySpent spent(double delta) const;
  double epsilon(double delta) const { return spent(delta).epsilon; }

  const std::vector<double>& orders() const { return orders_; }
  /// The Rényi divergence of all updates so far, for each order.
  const std::vector<double>& divergences() const { return divergences_; }

 private:
  std::vector<double> orders_, divergences_;
  bool counted_ = false;
};

}  // namespace xtape
