/// Givens rotations of neighbouring rows, in sweeps: the QR iterations for eigenvalues and singular values. Iterations
/// compute on few numbers, in double for both types, and keep their rotations. Many sweeps are then applied to strips
/// of columns that stay in the first-level cache, several sweeps in one pass (Van Zee, van de Geijn and Quintana-Ortí,
/// 2014, Restructuring the tridiagonal and bidiagonal QR algorithms for performance).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

#include "base/arrays/lengths.hpp"
#include "kernels/math/lanes.hpp"

namespace xtape {

/// Rows that rotations turn. They are `row` elements apart: whole lines, and one more, because powers of two would use
/// few sets of the cache.
template <class T>
struct TurnedRows {
  static constexpr std::int64_t line = 64 / sizeof(T);
  T* data;
  std::int64_t row;

  static std::int64_t row_size(std::int64_t length) { return round_up(length, line) + line; }
};

struct Rotation {
  double c, s;
};

/// The rotation that turns (x, y) to (length, 0).
struct ToAxis : Rotation {
  ToAxis(double x, double y);
  double length;
};

/// Sweeps, which rotate the rows `first` and first + 1, then first + 1 and first + 2, up to `last`.
class Sweeps {
 public:
  static constexpr std::int64_t most = 32;
  static constexpr std::int64_t together = 4;  ///< In one pass.

  /// The number of rotations for which `rotations` has room, for n rows.
  static std::int64_t room(std::int64_t n) { return most * size_of(n); }
  Sweeps(Rotation* rotations, std::int64_t n) : rotations_(rotations), size_(size_of(n)) {}

  bool full() const { return count_ == most; }
  void clear() { count_ = 0; }
  /// Adds a sweep. Its rotation of the rows k and k + 1 is to be written to element k of the result.
  Rotation* add(std::int64_t first, std::int64_t last) {
    if (count_ % together == 0) {
      std::fill_n(rotations_ + count_ * size_, together * size_, Rotation{1, 0});
      passes_[count_ / together] = {first, last};
    }
    Pass& pass = passes_[count_ / together];
    pass = {std::min(pass.first, first), std::max(pass.last, last)};
    return rotations_ + count_++ * size_ + together;
  }

  /// Turns rows: (x, y) becomes (c x + s y, c y - s x).
  template <class T>
  void turn(const TurnedRows<T>& rows) const {
    for (std::int64_t column = 0; column + TurnedRows<T>::line < rows.row; column += TurnedRows<T>::line)
      for (std::int64_t pass = 0; pass * together < count_; ++pass) turn_line(pass, rows.data + column, rows.row);
  }

 private:
  struct Pass {
    std::int64_t first, last;
  };
  static std::int64_t size_of(std::int64_t n) { return n + 2 * together; }

  /// A row that one sweep has finished goes to the next sweep, which is one row behind.
  template <class T>
  void turn_line(std::int64_t pass, T* data, std::int64_t row) const {
    using Batch = xsimd::batch<T>;
    constexpr std::size_t registers = std::tuple_size_v<Line<T>>, width = Batch::size;
    const auto [first, last] = passes_[pass];
    const Rotation* rotation = rotations_ + pass * together * size_ + together + first - 1;
    Line<T> zeros, carried[together];
    zeros.fill(Batch(T{0}));
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < together; ++j) carried[j] = zeros;
    for (std::int64_t k = first - 1; k < last + together; ++k, ++rotation) {
      Line<T> x = zeros;
      if (k < last)
#pragma GCC unroll 8
        for (std::size_t r = 0; r < registers; ++r) x[r] = Batch::load_aligned(data + (k + 1) * row + r * width);
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < together; ++j) {
        const Rotation& turn = rotation[j * (size_ - 1)];
        const Batch c(static_cast<T>(turn.c)), s(static_cast<T>(turn.s));
#pragma GCC unroll 8
        for (std::size_t r = 0; r < registers; ++r) {
          const Batch next = x[r];
          x[r] = fused(s, next, c * carried[j][r]);
          carried[j][r] = fused_away(s, carried[j][r], c * next);
        }
      }
      const std::int64_t done = k + 1 - together;
      if (done >= first)
#pragma GCC unroll 8
        for (std::size_t r = 0; r < registers; ++r) x[r].store_aligned(data + done * row + r * width);
    }
  }

  Rotation* rotations_;
  std::int64_t size_;  ///< Rotations a sweep: with others at both ends, which change nothing.
  std::int64_t count_ = 0;
  std::array<Pass, most / together> passes_{};
};

/// The state of an iteration on the diagonal d [n] and the neighbouring diagonal e [n - 1], whose largest element is
/// about 1.
struct QrIteration {
  double *d, *e;
  double precision;     ///< Of the type of the matrix.
  std::int64_t last;    ///< Elements after `last` are finished. At first n - 1.
  std::int64_t sweeps;  ///< That are left until the iteration fails.
};
enum class Progress { more, done, failed };

/// Do sweeps until `sweeps` are full or e is zero. The first is for symmetric tridiagonal matrices, with Wilkinson's
/// shift (LAPACK's steqr). The second is for upper bidiagonal matrices, with the shift of Golub and Kahan, or without
/// one where a singular value may be 0 (Demmel and Kahan, 1990, Accurate singular values of bidiagonal matrices). Its
/// sweeps turn the rows of Uᵀ and of Vᵀ.
Progress diagonalise_symmetric(QrIteration& state, Sweeps& sweeps);
Progress diagonalise_bidiagonal(QrIteration& state, Sweeps& of_u, Sweeps& of_v);

}  // namespace xtape
