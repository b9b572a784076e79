/// Dense matrices for tests of factorisations.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace xtape::tests {

/// A matrix [rows, columns], or several.
template <class T>
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<T> x = std::vector<T>(static_cast<std::size_t>(rows * columns));

  T& operator()(std::int64_t i, std::int64_t j) { return x[static_cast<std::size_t>(i * columns + j)]; }
  T operator()(std::int64_t i, std::int64_t j) const { return x[static_cast<std::size_t>(i * columns + j)]; }
  double largest() const {
    double most = 0;
    for (const T each : x) most = std::max(most, std::abs(static_cast<double>(each)));
    return most;
  }
  bool is_nan() const {
    return std::all_of(x.begin(), x.end(), [](T each) { return std::isnan(each); });
  }
};

template <class T, class F>
Matrix<T> filled(std::int64_t rows, std::int64_t columns, const F& value) {
  Matrix<T> a{rows, columns};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) a(i, j) = static_cast<T>(value(i, j));
  return a;
}
/// Whole numbers times 2^-20 in (-1, 1), which are the same on all machines.
template <class T>
Matrix<T> drawn_matrix(std::int64_t rows, std::int64_t columns, unsigned seed = 1) {
  std::mt19937 random(seed);
  return filled<T>(rows, columns, [&](auto, auto) { return (static_cast<double>(random() >> 11) - 0x1p20) * 0x1p-20; });
}
template <class T>
Matrix<T> turned(const Matrix<T>& a) {
  return filled<T>(a.columns, a.rows, [&](auto i, auto j) { return a(j, i); });
}
template <class T>
Matrix<double> product(const Matrix<T>& a, const Matrix<T>& b) {
  Matrix<double> c{a.rows, b.columns};
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t j = 0; j < b.columns; ++j)
        c(i, j) += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
  return c;
}
template <class T>
Matrix<T> symmetric(const Matrix<T>& a) {
  return filled<T>(a.rows, a.rows, [&](auto i, auto j) { return (a(i, j) + a(j, i)) / 2; });
}
template <class T>
Matrix<T> positive(std::int64_t n) {
  const Matrix<T> x = drawn_matrix<T>(n, n);
  const Matrix<double> squares = product(x, turned(x));
  return filled<T>(n, n, [&](auto i, auto j) { return squares(i, j) / static_cast<double>(n) + (i == j ? 0.1 : 0); });
}

template <class T>
void check_near(const Matrix<T>& got, const Matrix<double>& right, double limit) {
  double apart = 0;
  for (std::size_t i = 0; i < right.x.size(); ++i) {
    const double each = std::abs(static_cast<double>(got.x[i]) - right.x[i]);
    apart = std::isnan(each) ? std::numeric_limits<double>::infinity() : std::max(apart, each);
  }
  CHECK(apart <= limit);
}
template <class T>
Matrix<double> widened(const Matrix<T>& a) {
  return filled<double>(a.rows, a.columns, [&](auto i, auto j) { return a(i, j); });
}
template <class T>
double unit(std::int64_t n) {
  return 4 * static_cast<double>(n + 3) * static_cast<double>(std::numeric_limits<T>::epsilon());
}
template <class T>
void check_orthonormal(const Matrix<T>& columns) {
  check_near(product(turned(columns), columns),
             filled<double>(columns.columns, columns.columns, [](auto i, auto j) { return i == j; }),
             unit<T>(columns.rows));
}
template <class T>
Matrix<T> scaled(Matrix<T> a, const Matrix<T>& columns) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) a(i, j) *= columns.x[static_cast<std::size_t>(j)];
  return a;
}

}  // namespace xtape::tests
