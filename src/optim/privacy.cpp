// The privacy accountant. It computes Rényi divergences of the sampled Gaussian mechanism. All sums are sums of
// logarithms.
#include "xtape/privacy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "xtape/literal.hpp"

namespace xtape {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
/// Terms of the series whose logarithm is below this value are ignored. They are small relative to A, which is at least
/// 1.
constexpr double negligible = -30;
constexpr int most_summands = 1 << 20;

/// Returns log(exp(a) + exp(b)).
double log_sum(double a, double b) {
  const double larger = std::max(a, b), smaller = std::min(a, b);
  return smaller == -infinity ? larger : larger + std::log1p(std::exp(smaller - larger));
}

/// Returns log(exp(a) - exp(b)), or NaN if the difference is negative.
double log_difference(double a, double b) {
  return b == -infinity ? a : a + std::log1p(-std::exp(b - a));
}

/// Returns log(erfc(x) / 2). Also works where erfc(x) is below the smallest double.
double log_half_erfc(double x) {
  if (x < 25) return std::log(std::erfc(x) / 2);
  const double over = 1 / (2 * x * x);  // the asymptotic series, whose next term is below 1e-12
  const double series = 1 - over * (1 - 3 * over * (1 - 5 * over));
  return -x * x - std::log(2 * x * std::sqrt(std::acos(-1.0))) + std::log(series);
}

/// Returns log A(order) for an integer order: a sum over the number of times that the example is drawn (Mironov et al.,
/// 2019, section 3.3).
double log_moment_of_integer(double q, double sigma, double order) {
  double total = -infinity;
  for (double i = 0; i <= order; ++i) {
    const double choices = std::lgamma(order + 1) - std::lgamma(i + 1) - std::lgamma(order - i + 1);
    total =
        log_sum(total, choices + i * std::log(q) + (order - i) * std::log1p(-q) + i * (i - 1) / (2 * sigma * sigma));
  }
  return total;
}

/// Returns log A(order) for an order that is not an integer. Uses two series, for the integrals on both sides of z0.
/// The result is NaN or infinity if the series do not converge in double precision.
double log_moment_of_fraction(double q, double sigma, double order) {
  const double variance = sigma * sigma, z0 = variance * std::log(1 / q - 1) + 0.5;
  double left = -infinity, right = -infinity;
  double log_choices = 0;  // log |order choose i|
  bool negative = false;
  for (int i = 0; i < most_summands; ++i) {
    const double k = i, j = order - k;
    const double left_term = log_choices + k * std::log(q) + j * std::log1p(-q) + k * (k - 1) / (2 * variance) +
                             log_half_erfc((k - z0) / (std::sqrt(2.0) * sigma));
    const double right_term = log_choices + j * std::log(q) + k * std::log1p(-q) + j * (j - 1) / (2 * variance) +
                              log_half_erfc((z0 - j) / (std::sqrt(2.0) * sigma));
    left = negative ? log_difference(left, left_term) : log_sum(left, left_term);
    right = negative ? log_difference(right, right_term) : log_sum(right, right_term);
    if (std::isnan(left) || std::isnan(right)) break;
    if (std::max(left_term, right_term) < negligible) return log_sum(left, right);
    log_choices += std::log(std::abs(j)) - std::log(k + 1);
    negative = negative != (j < 0);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// Returns the Rényi divergence of one update.
double divergence(double q, double sigma, double order) {
  if (q == 0) return 0;
  if (sigma * sigma == 0) return infinity;
  if (q == 1) return order / (2 * sigma * sigma);
  const bool is_integer = order == std::floor(order);
  const double log_moment =
      is_integer ? log_moment_of_integer(q, sigma, order) : log_moment_of_fraction(q, sigma, order);
  if (std::isfinite(log_moment)) return std::max(0.0, log_moment) / (order - 1);
  // the divergence grows with the order, so the next integer order gives a bound
  return is_integer ? infinity : divergence(q, sigma, std::ceil(order));
}
}  // namespace

std::vector<double> PrivacyAccountant::default_orders() {
  std::vector<double> orders;
  for (int tenth = 11; tenth < 110; ++tenth) orders.push_back(tenth / 10.0);
  for (int order = 12; order < 64; ++order) orders.push_back(order);
  return orders;
}

PrivacyAccountant::PrivacyAccountant(std::vector<double> orders)
    : orders_(orders.empty() ? default_orders() : std::move(orders)), divergences_(orders_.size(), 0) {
  for (const double order : orders_)
    if (!(order > 1 && order <= most_summands))  // the sum for an integer order has about `order` summands
      throw Error("privacy: orders must be above 1 and at most 2^20, got " + to_string(Literal(order)));
}

void PrivacyAccountant::count(double noise_multiplier, double sample_rate, std::int64_t updates) {
  if (!(noise_multiplier >= 0 && std::isfinite(noise_multiplier)))
    throw Error("privacy: noise_multiplier must be finite and at least 0, got " + to_string(Literal(noise_multiplier)));
  if (!(sample_rate >= 0 && sample_rate <= 1))
    throw Error("privacy: sample_rate must be in [0, 1], got " + to_string(Literal(sample_rate)));
  if (updates < 0) throw Error("privacy: updates must be at least 0, got " + std::to_string(updates));
  if (updates == 0) return;
  counted_ = true;
  for (std::size_t i = 0; i < orders_.size(); ++i)
    divergences_[i] += divergence(sample_rate, noise_multiplier, orders_[i]) * static_cast<double>(updates);
}

PrivacySpent PrivacyAccountant::spent(double delta) const {
  if (!(delta > 0 && delta < 1))
    throw Error("privacy: delta must be between 0 and 1, got " + to_string(Literal(delta)));
  if (!counted_) return {};
  PrivacySpent least{infinity, orders_[0]};
  for (std::size_t i = 0; i < orders_.size(); ++i) {
    const double order = orders_[i];
    const double epsilon = divergences_[i] - (std::log(delta) + std::log(order)) / (order - 1) + std::log1p(-1 / order);
    if (epsilon < least.epsilon) least = {epsilon, order};
  }
  least.epsilon = std::max(0.0, least.epsilon);
  return least;
}

}  // namespace xtape
