// cholesky, triangular_solve, lu, qr, eigh and svd: errors of factors against bounds, LAPACK, and digests of their
// bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/system/instruction_set.hpp"
#include "dense_call.hpp"
#include "dense_matrix.hpp"
#include "lapack.hpp"

using namespace xtape;
using namespace xtape::tests;

namespace {
/// Runs a kernel on one matrix, or on a batch in one matrix of several times the rows.
template <class T>
std::vector<Matrix<T>> run(const std::string& op, const std::vector<Matrix<T>>& inputs, std::int64_t batch = 1,
                           int threads = 1, Attributes attributes = {}, Matrix<std::int64_t>* permutation = nullptr) {
  const std::int64_t m = inputs[0].rows / batch, n = inputs[0].columns, k = std::min(m, n);
  const auto of = [&](std::int64_t rows, std::int64_t columns) {
    return ValueType{dtype_of<T>(), {batch, rows, columns}};
  };
  std::vector<ValueType> in, out;
  for (const auto& each : inputs) in.push_back(of(each.rows / batch, each.columns));
  const ValueType vector{dtype_of<T>(), {batch, k}}, scalar{dtype_of<T>(), {batch}}, numbers{Dtype::int64, {batch, k}};
  if (op == "cholesky" || op == "triangular_solve") out = {in.back()};
  if (op == "lu") out = {in[0], numbers, scalar};
  if (op == "qr") out = {of(m, k), of(k, n)};
  if (op == "eigh") out = {vector, in[0]};
  if (op == "svd") out = {of(m, k), vector, of(k, n)};
  if (op != "qr" && op != "triangular_solve") attributes = {{"check", false}};
  std::vector<Matrix<T>> results;
  Matrix<std::int64_t> order{batch, k};
  std::vector<void*> to;
  results.reserve(out.size());
  for (const ValueType& type : out) {
    const std::int64_t columns = type.shape.size() == 3 ? type.shape.back() : 1;
    const std::int64_t rows = columns == 0 ? 0 : count_of(type.shape) / columns;
    results.push_back(Matrix<T>{rows, columns});
    to.push_back(type.dtype == Dtype::int64 ? static_cast<void*>(order.x.data()) : results.back().x.data());
  }
  std::vector<const void*> from;
  for (const auto& each : inputs) from.push_back(each.x.data());
  DenseCall(in, out, attributes, threads).run(op, from, to);
  if (permutation != nullptr) *permutation = order;
  return results;
}
Attributes triangle(bool upper, bool transposed, bool unit) {
  return {{"upper", upper}, {"transposed", transposed}, {"unit_diagonal", unit}, {"check", false}};
}

template <class T>
void check_qr(const Matrix<T>& a) {
  const auto found = run<T>("qr", {a});
  check_near(a, product(found[0], found[1]), unit<T>(a.rows + a.columns) * a.largest());
  check_orthonormal(found[0]);
}
template <class T>
void check_eigh(const Matrix<T>& a) {
  const auto found = run<T>("eigh", {a});
  check_near(a, product(scaled(found[1], found[0]), turned(found[1])), unit<T>(a.rows) * a.largest());
  check_orthonormal(found[1]);
  CHECK(std::is_sorted(found[0].x.begin(), found[0].x.end()));
}
template <class T>
void check_svd(const Matrix<T>& a) {
  const auto found = run<T>("svd", {a});
  check_near(a, product(scaled(found[0], found[1]), found[2]), unit<T>(a.rows + a.columns) * a.largest());
  check_orthonormal(found[0]);
  check_orthonormal(turned(found[2]));
  CHECK(std::is_sorted(found[1].x.begin(), found[1].x.end(), std::greater<>()));
  for (const T value : found[1].x) CHECK(value >= 0);
}

const std::vector<std::int64_t> sizes{0, 1, 2, 3, 5, 16, 17, 64, 100, 257};
const std::vector<std::pair<std::int64_t, std::int64_t>> forms{{257, 100}, {100, 257}, {5, 17}, {64, 1}, {1, 64}};

/// Calls check(T{}) for both types.
template <class F>
void for_types(const F& check) {
  SUBCASE("float32") {
    check(float{});
  }
  SUBCASE("float64") {
    check(double{});
  }
}

template <class T>
std::uint64_t digest(const std::string& op, int threads) {
  std::uint64_t hash = 0;
  for (const std::int64_t n : {1, 5, 37, 100, 150}) {
    const std::int64_t batch = n < 100 ? 3 : 1;
    Matrix<T> a = drawn_matrix<T>(batch * n, n, static_cast<unsigned>(n)), b = drawn_matrix<T>(batch * n, 7);
    for (std::int64_t i = 0; i < batch * n && (op == "cholesky" || op == "triangular_solve"); ++i)
      a(i, i % n) += static_cast<T>(n);
    const bool solves = op == "triangular_solve";
    for (const auto& each : run<T>(op, solves ? std::vector{a, b} : std::vector{a}, batch, threads,
                                   solves ? triangle(true, false, false) : Attributes{}))
      for (const T x : each.x) {
        hash =
            (hash ^ std::bit_cast<std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>(x)) * 0x100000001b3;
        hash ^= hash >> 29;
      }
  }
  return hash;
}
}  // namespace

TEST_CASE("cholesky: L times its transpose is A, as close as LAPACK's") {
  for_types([](auto scalar) {
    using T = decltype(scalar);
    for (const std::int64_t n : sizes) {
      CAPTURE(n);
      const Matrix<T> a = positive<T>(n), l = run<T>("cholesky", {a})[0];
      check_near(a, product(l, turned(l)), unit<T>(n) * a.largest());
      Matrix<T> peer = a;
      int size = static_cast<int>(n), info = 0;
      if (n > 0) Lapack<T>::potrf("U", &size, peer.x.data(), &size, &info, 1);
      for (std::int64_t i = 0; i < n; ++i) std::fill_n(&peer(i, i) + 1, n - i - 1, T{0});
      check_near(l, widened(peer), 10 * unit<T>(n));
    }
    // Of a Hilbert matrix, as much is positive definite as its numbers are exact.
    const Matrix<T> hilbert = filled<T>(6, 6, [](auto i, auto j) { return 1.0 / static_cast<double>(i + j + 1); });
    const Matrix<T> l = run<T>("cholesky", {hilbert})[0];
    if (sizeof(T) == 8) check_near(hilbert, product(l, turned(l)), unit<T>(6));
    CHECK(run<T>("cholesky", {filled<T>(40, 40, [](auto i, auto j) { return i == j ? i != 30 : 0; })})[0].x.size() ==
          1600);
    CHECK(
        std::isnan(run<T>("cholesky", {filled<T>(40, 40, [](auto i, auto j) { return i == j && i != 30; })})[0](0, 0)));
  });
}

TEST_CASE("triangular_solve: A X is B for all forms") {
  for_types([](auto scalar) {
    using T = decltype(scalar);
    for (const std::int64_t n : sizes)
      for (const int form : {0, 1, 2, 3, 4, 5, 6, 7}) {
        const bool upper = (form & 1) != 0, transposed = (form & 2) != 0, unit_diagonal = (form & 4) != 0;
        CAPTURE(n);
        CAPTURE(form);
        const Matrix<T> full = filled<T>(n, n, [&, x = drawn_matrix<T>(n, n)](auto i, auto j) {
          return i == j ? 2 + x(i, i) : x(i, j) / static_cast<T>(n);
        });
        const Matrix<T> b = drawn_matrix<T>(n, 1 + n % 40, 2);
        Matrix<T> a = filled<T>(n, n, [&](auto i, auto j) {
          return i == j ? unit_diagonal ? T{1} : full(i, i) : (i < j) == upper ? full(i, j) : T{0};
        });
        if (transposed) a = turned(a);
        const Matrix<T> x = run<T>("triangular_solve", {full, b}, 1, 1, triangle(upper, transposed, unit_diagonal))[0];
        check_near(b, product(a, x), unit<T>(n) * 4);
      }
  });
}

TEST_CASE("lu: L U is A with permuted rows; pivots are LAPACK's") {
  for_types([](auto scalar) {
    using T = decltype(scalar);
    for (const std::int64_t n : sizes) {
      CAPTURE(n);
      const Matrix<T> a = drawn_matrix<T>(n, n);
      Matrix<std::int64_t> order;
      const auto found = run<T>("lu", {a}, 1, 1, {}, &order);
      const Matrix<T>& lu = found[0];
      const auto part = [&](bool lower) {
        return filled<T>(n, n, [&](auto i, auto j) {
          return i == j && lower ? T{1} : (j < i) == lower ? lu(i, j) : T{0};
        });
      };
      const Matrix<T> moved =
          filled<T>(n, n, [&](auto i, auto j) { return a(order.x[static_cast<std::size_t>(i)], j); });
      check_near(moved, product(part(true), part(false)), unit<T>(n));
      Matrix<T> peer = turned(a);
      std::vector<int> pivots(static_cast<std::size_t>(n));
      int size = static_cast<int>(n), info = 0;
      if (n > 0) Lapack<T>::getrf(&size, &size, peer.x.data(), &size, pivots.data(), &info);
      Matrix<std::int64_t> rows = filled<std::int64_t>(n, 1, [](auto i, auto) { return i; });
      for (std::size_t i = 0; i < pivots.size(); ++i)
        std::swap(rows.x[i], rows.x[static_cast<std::size_t>(pivots[i] - 1)]);
      CHECK(rows.x == order.x);
      check_near(lu, widened(turned(peer)), 1000 * unit<T>(n));
    }
    CHECK(run<T>("lu", {Matrix<T>{20, 20}})[2].x[0] == 0);
  });
}

TEST_CASE("qr: Q R is A, Q orthonormal; signs are LAPACK's") {
  for_types([](auto scalar) {
    using T = decltype(scalar);
    for (const std::int64_t n : sizes) check_qr(drawn_matrix<T>(n, n));
    for (const auto& [m, n] : forms) {
      const Matrix<T> a = drawn_matrix<T>(m, n);
      check_qr(a);
      Matrix<T> peer = turned(a);
      std::vector<T> tau(static_cast<std::size_t>(n)), work(100000);
      const int rows = static_cast<int>(m), columns = static_cast<int>(n), size = 100000;
      int info = 0;
      Lapack<T>::geqrf(&rows, &columns, peer.x.data(), &rows, tau.data(), work.data(), &size, &info);
      const std::int64_t k = std::min(m, n);
      check_near(run<T>("qr", {a})[1], filled<double>(k, n, [&](auto i, auto j) { return i <= j ? peer(j, i) : T{0}; }),
                 100 * unit<T>(m));
    }
  });
}

TEST_CASE("eigh and svd: values are LAPACK's") {
  for_types([](auto scalar) {
    using T = decltype(scalar);
    for (const std::int64_t n : sizes) {
      CAPTURE(n);
      const Matrix<T> general = drawn_matrix<T>(n, n), a = symmetric(general);
      check_eigh(a);
      check_svd(general);
      if (n == 0) continue;
      Matrix<T> peer = a, left{n, n}, right{n, n}, values{n, 1};
      std::vector<T> work(static_cast<std::size_t>(10 * n * n + 1000));
      std::vector<int> integers(static_cast<std::size_t>(20 * n + 100));
      const int order = static_cast<int>(n), size = static_cast<int>(work.size()),
                count = static_cast<int>(integers.size());
      int info = 0;
      Lapack<T>::syevd("V", "U", &order, peer.x.data(), &order, values.x.data(), work.data(), &size, integers.data(),
                       &count, &info, 1, 1);
      check_near(run<T>("eigh", {a})[0], widened(values), unit<T>(n) * std::sqrt(static_cast<double>(n)));
      peer = general;
      Lapack<T>::gesdd("S", &order, &order, peer.x.data(), &order, values.x.data(), left.x.data(), &order,
                       right.x.data(), &order, work.data(), &size, integers.data(), &info, 1);
      check_near(run<T>("svd", {general})[1], widened(values), unit<T>(n) * std::sqrt(static_cast<double>(n)));
    }
    for (const auto& [m, n] : forms) check_svd(drawn_matrix<T>(m, n));
  });
}

TEST_CASE("qr, eigh and svd: hard matrices") {
  for_types([](auto scalar) {
    using T = decltype(scalar);
    const double reach = sizeof(T) == 8 ? 150 : 18;
    for (const std::int64_t n : {3, 40, 100}) {
      CAPTURE(n);
      const Matrix<T> x = drawn_matrix<T>(n, 2);
      const auto exponent = [&](auto i, auto j) {
        return reach * (1 - static_cast<double>(i + j) / static_cast<double>(n - 1));
      };
      const double least = static_cast<double>(std::numeric_limits<T>::denorm_min());
      const std::vector<Matrix<T>> matrices{
          filled<T>(n, n, [](auto i, auto j) { return 1.0 / static_cast<double>(i + j + 1); }),    // Hilbert
          filled<T>(n, n, [&](auto i, auto j) { return x(i, 0) * x(j, 0) + x(i, 1) * x(j, 1); }),  // of rank 2
          filled<T>(n, n, [&](auto i, auto j) { return std::pow(10.0, exponent(i, j)); }),
          filled<T>(n, n, [&](auto i, auto j) { return i == j ? std::pow(10.0, exponent(i, i)) : 0; }),
          filled<T>(n, n, [&](auto i, auto j) { return i == j ? std::pow(10.0, -exponent(i, i)) : 0; }),
          filled<T>(n, n, [](auto i, auto j) { return i == j; }),
          filled<T>(n, n, [](auto, auto) { return 1; }),
          filled<T>(n, n, [&](auto i, auto j) { return i + j == n - 1; }),
          filled<T>(n, n, [](auto i, auto j) { return i == j ? 0 : i - j == 1 || j - i == 1; }),
          filled<T>(n, n, [](auto i, auto j) { return i == j                     ? 1
                                                      : (i < j ? i : j) % 3 == 0 ? 0
                                                                                 : 1e-3; }),
          Matrix<T>{n, n},
      };
      for (std::size_t number = 0; number < matrices.size(); ++number) {
        CAPTURE(number);
        check_qr(matrices[number]);
        check_eigh(matrices[number]);
        check_svd(matrices[number]);
      }
      // A shift matrix, whose diagonals have zeros; and whole multiples of the least number.
      check_svd(filled<T>(n, n, [](auto i, auto j) { return j == i + 1; }));
      check_svd(filled<T>(n, n, [](auto i, auto j) { return i == j ? i % 4 : j == i + 1; }));
      const Matrix<T> small = filled<T>(n, n, [&, y = drawn_matrix<T>(n, n)](auto i, auto j) {
        return std::round(1e6 * static_cast<double>(y(i, j))) * least;
      });
      for (const char* op : {"qr", "svd"}) check_orthonormal(run<T>(op, {small})[0]);
      check_orthonormal(run<T>("eigh", {small})[1]);
    }
  });
}

TEST_CASE("factorisations: a matrix with NaN or infinity gives NaN") {
  for_types([](auto scalar) {
    using T = decltype(scalar);
    for (const T odd : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity()}) {
      Matrix<T> a = positive<T>(40);
      a(3, 7) = odd;
      for (const char* op : {"lu", "qr", "eigh", "svd"}) CHECK(run<T>(op, {a})[0].is_nan());
      CHECK(std::isnan(run<T>("cholesky", {a})[0](39, 39)));
    }
    // Sums overflow.
    const Matrix<T> large = filled<T>(40, 40, [](auto i, auto j) {
      return i < j ? 0.9 * static_cast<double>(std::numeric_limits<T>::max())
                   : 0.5 * static_cast<double>(std::numeric_limits<T>::max());
    });
    for (const char* op : {"cholesky", "lu", "qr", "eigh", "svd"}) run<T>(op, {large});
  });
}

TEST_CASE("factorisations: the same bits on all processors with fused multiply-adds, for any number of threads") {
  struct Expected {
    const char* op;
    std::uint64_t narrow, wide;
  };
  for (const Expected& each :
       std::initializer_list<Expected>{{"cholesky", 0x62b650b8b1a9ed4c, 0xc1b067ff438bbd51},
                                       {"triangular_solve", 0x4e5e790f4e30d50a, 0x6efeb59311df7986},
                                       {"lu", 0x38f634232b4675c9, 0x816db0d28d3b74ea},
                                       {"qr", 0x5671fa906e33982f, 0x2e6f397d5c5073a7},
                                       {"eigh", 0xefc9fb11d331c2be, 0x6372670c2b54c722},
                                       {"svd", 0x2e17d789773b4a72, 0x2266cfa2475f8c75}}) {
    const std::uint64_t narrow = digest<float>(each.op, 1), wide = digest<double>(each.op, 1);
    CHECK(digest<float>(each.op, 3) == narrow);
    CHECK(digest<double>(each.op, 3) == wide);
    if (instruction_set() == InstructionSet::baseline) continue;
    INFO(std::string(each.op) << ": " << narrow << ", " << wide);
    CHECK(narrow == each.narrow);
    CHECK(wide == each.wide);
  }
}
