#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/table/kernels.hpp"
#include "svg/canvas.hpp"

namespace xtape::svg {

namespace {

/// Returns 10 to an integer power as the nearest double, so that the same numbers are round everywhere.
double power_of_ten(int exponent) {
  const std::string digits = "1e" + std::to_string(exponent);
  double power = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), power);
  return power;
}

double log10_of(double number) {
  return kernels().numbers.log(number) / M_LN10;  // the same bits on every processor
}

int exponent_of(double number) {
  return static_cast<int>(std::floor(log10_of(number) + 1e-9));
}

std::string superscript(int number) {
  static constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(number))) text += digits[digit - '0'];
  return text;
}

std::string fixed(double number, int digits) {
  char text[400];
  return {text, std::to_chars(text, text + sizeof text, number, std::chars_format::fixed, digits).ptr};
}

/// Returns 1, 2 or 5 times a power of ten, not below `step`.
double round_step(double step) {
  const double power = power_of_ten(exponent_of(step));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

std::string label_of(double number, double step) {
  if (std::abs(number) < step / 1e6) return "0";
  const double size = std::abs(number);
  const int digits = std::max(0, -exponent_of(step));
  if (size < 1e6 && (size >= 1e-3 || digits <= 4)) {
    std::string text = fixed(size, digits);
    if (size >= 1e4)
      for (std::size_t at = std::min(text.find('.'), text.size()); at > 3; at -= 3)
        text.insert(at - 3, at > 3 ? "," : "");
    return (number < 0 ? "−" : "") + text;
  }
  const int exponent = exponent_of(size);
  const double power = power_of_ten(exponent);
  const std::string factor = fixed(size / power, std::clamp(exponent - exponent_of(step), 0, 6));
  return (number < 0 ? "−" : "") + (factor == "1" ? "" : factor + "×") + "10" + superscript(exponent);
}

Scale::Scale(const Axis& axis, const std::vector<double>& values) : log_(axis.log), low_(HUGE_VAL), high_(-HUGE_VAL) {
  // Within these bounds, differences and quotients of values are finite.
  const double most = log_ ? 1e150 : 1e300, least = log_ ? 1e-150 : 1e-290;
  for (const double value : values) {
    if (!shows(value)) continue;
    const double bounded = std::clamp(!log_ && std::abs(value) < least ? 0 : value, log_ ? least : -most, most);
    low_ = std::min(low_, bounded);
    high_ = std::max(high_, bounded);
  }
  if (low_ > high_) low_ = log_ ? 1 : 0, high_ = log_ ? 10 : 1;
  constexpr double margin = 0.04;
  if (log_) {
    const double space = kernels().numbers.pow(high_ / low_, margin);
    low_ /= space, high_ *= space;
    if (high_ < low_ * 1.01) low_ /= 1.5, high_ *= 1.5;
  } else {
    const double space = (high_ - low_) * margin;
    low_ -= space, high_ += space;
    const double size = std::max(std::abs(low_), std::abs(high_)), half = size > 0 ? size / 10 : 1;
    if (high_ - low_ <= size * 1e-9) low_ -= half, high_ += half;
  }
  low_ = axis.low.value_or(low_);
  high_ = std::max(axis.high.value_or(high_), log_ ? low_ * 1.01 : low_ + std::max(std::abs(low_) * 1e-6, 1e-300));
}

bool Scale::shows(double number) const {
  return std::isfinite(number) && (!log_ || number > 0);
}

double Scale::fraction(double number) const {
  return log_ ? (log10_of(number) - log10_of(low_)) / log10_of(high_ / low_) : (number - low_) / (high_ - low_);
}

std::vector<Tic> Scale::tics(std::size_t most) const {
  return log_ && high_ > low_ * 5 ? decades(most) : linear_tics(most);
}

std::vector<Tic> Scale::linear_tics(std::size_t most) const {
  const double step = round_step((high_ - low_) / static_cast<double>(most));
  const double first = std::ceil(low_ / step - 1e-6);
  std::vector<Tic> all;
  for (double i = 0; i <= static_cast<double>(most) + 1; ++i) {
    // Above 1, a whole multiple; below, a quotient: both are the doubles nearest to the decimal numbers.
    const double at = (first + i) * step;
    if (at > high_ + step * 1e-6) break;
    all.push_back({at, label_of(at, step)});
  }
  return all;
}

std::vector<Tic> Scale::decades(std::size_t most) const {
  const int first = static_cast<int>(std::ceil(log10_of(low_) - 1e-9)), last = exponent_of(high_);
  const bool plain = first >= -3 && last <= 4;
  std::vector<Tic> all;
  if (last - first < 2) {  // too few powers of ten: also 2 and 5 times these
    for (int exponent = first - 1; exponent <= last; ++exponent)
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double at = factor * power_of_ten(exponent);
        if (at >= low_ && at <= high_) all.push_back({at, label_of(at, power_of_ten(exponent))});
      }
    return all;
  }
  const int step = 1 + (last - first) / static_cast<int>(most);
  for (int exponent = first; exponent <= last; ++exponent)
    if (exponent % step == 0) {
      const double at = power_of_ten(exponent);
      all.push_back({at, plain ? label_of(at, std::min(at, 1.0)) : "10" + superscript(exponent)});
    }
  return all;
}

}  // namespace xtape::svg
