/// The privacy that training with clipped gradients and Gaussian noise gives: epsilon and delta.
#pragma once

#include <cstdint>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// What a training has revealed about any one example: it is (epsilon, delta)-differentially private.
struct PrivacySpent {
  double epsilon = 0;  ///< Infinite if there is no bound.
  double order = 0;    ///< The Rényi order that gives the bound; 0 without updates. The first or last order of the
                       ///< accountant's list means that further orders could give a smaller epsilon.
};

/// Adds up the privacy loss of updates of DP-SGD (Abadi et al., 2016, Deep learning with differential privacy). Each
/// update draws every example with probability `sample_rate`, independently (Poisson sampling), adds up gradients of
/// at most norm C, and adds Gaussian noise of standard deviation noise_multiplier * C to every element of the sum. The
/// loss is a Rényi divergence for each of some orders (Mironov, Talwar and Zhang, 2019, Rényi differential privacy of
/// the sampled Gaussian mechanism). Neighbouring data sets differ by one example that one of them lacks.
class PrivacyAccountant {
 public:
  /// `orders` are above 1 and at most 2^20; empty: default_orders(). Throws Error for others.
  explicit PrivacyAccountant(std::vector<double> orders = {});
  /// 1.1, 1.2 … 10.9 and 12, 13 … 63, as in Opacus.
  static std::vector<double> default_orders();

  /// Counts `updates` more updates. Throws Error if noise_multiplier is negative or not finite, sample_rate outside
  /// [0, 1], or `updates` negative. Without noise, epsilon becomes infinite.
  void count(double noise_multiplier, double sample_rate, std::int64_t updates = 1);

  /// The smallest epsilon over all orders, for this delta (Balle et al., 2020, Hypothesis testing interpretations and
  /// Rényi differential privacy, theorem 21). Throws Error unless delta is between 0 and 1, exclusive.
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
