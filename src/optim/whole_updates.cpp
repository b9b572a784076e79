// Updates that need a whole weight: adafactor and muon. Their sums have the same bits for any number of threads.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/threads.hpp"
#include "kernels/table/kernels.hpp"
#include "optim/optimizer.hpp"

namespace xtape {

template <class T>
double Optimizer::Data::all_squares(const T* values, std::int64_t count) const {
  const std::int64_t parts = (count + Piece::most - 1) / Piece::most;
  parallel_for(threads_, parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      parts_[static_cast<std::size_t>(i)] =
          kernels().of<T>().square_sum(values + i * Piece::most, std::min(Piece::most, count - i * Piece::most));
  });
  double sum = 0;
  for (std::int64_t i = 0; i < parts; ++i) sum += parts_[static_cast<std::size_t>(i)];
  return sum;
}

// Muon.

namespace {
/// Returns the kernel of a product of two dense matrices.
Kernel product_of(Dtype dtype, const std::string& equation, const Shape& a, const Shape& b, const Shape& c, int threads,
                  Bits bits) {
  const std::vector<ValueType> inputs = {{dtype, a}, {dtype, b}}, outputs = {{dtype, c}};
  const Attributes attributes = {{"equation", equation}};
  const std::vector<Layout> in = {Layout::dense(a), Layout::dense(b)}, out = {Layout::dense(c)};
  const std::vector<bool> fixed = {false, false};
  return kernels().make("einsum", {.inputs = inputs,
                                   .outputs = outputs,
                                   .attributes = attributes,
                                   .in = in,
                                   .out = out,
                                   .fixed = fixed,
                                   .threads = threads,
                                   .bits = bits});
}
}  // namespace

Orthogonal::Orthogonal(Dtype dtype, std::int64_t rows, std::int64_t columns, int threads, Bits bits)
    : small_(std::min(rows, columns)), count_(rows * columns), wide_(columns >= rows), threads_(threads) {
  const Shape whole{rows, columns}, small{small_, small_};
  gram_ = product_of(dtype, wide_ ? "ab,cb->ac" : "ba,bc->ac", whole, whole, small, threads, bits);
  square_ = product_of(dtype, "ab,bc->ac", small, small, small, threads, bits);
  product_ = product_of(dtype, "ab,bc->ac", wide_ ? small : whole, wide_ ? whole : small, whole, threads, bits);
  const auto of_small = static_cast<std::size_t>(small_ * small_) * size_of(dtype);
  const std::size_t parts[] = {of_small, of_small, static_cast<std::size_t>(count_) * size_of(dtype),
                               std::max({gram_.scratch_bytes, square_.scratch_bytes, product_.scratch_bytes})};
  for (std::size_t i = 0; i < 4; ++i) offsets_[i + 1] = offsets_[i] + (parts[i] + 63) / 64 * 64;
}

template <class T>
T* Orthogonal::operator()(T* x, double norm, std::int64_t iterations, void* scratch) const {
  constexpr double least_norm = 1e-7;
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  auto* const memory = static_cast<std::byte*>(scratch);
  auto *const gram = reinterpret_cast<T*>(memory + offsets_[0]), *const square =
                                                                     reinterpret_cast<T*>(memory + offsets_[1]);
  T* next = reinterpret_cast<T*>(memory + offsets_[2]);
  const auto run = [&](const Kernel& kernel, const T* left, const T* right, T* to) {
    const void* in[] = {left, right};
    void* out[] = {to};
    kernel.run({.in = in, .out = out, .scratch = memory + offsets_[3]});
  };
  const auto combine = [&](double of_x, const T* one, double of_y, const T* other, T* to, std::int64_t count) {
    parallel_for(threads_, count, 4096, [&](std::int64_t begin, std::int64_t end) {
      kernels().of<T>().combine(of_x, one + begin, of_y, other + begin, to + begin, end - begin);
    });
  };
  combine(1 / std::max(norm, least_norm), x, 0, x, x, count_);
  for (std::int64_t i = 0; i < iterations; ++i) {  // x = (a + b A + c A^2) x, where A is the Gram matrix
    run(gram_, x, x, gram);
    run(square_, gram, gram, square);
    combine(b, gram, c, square, gram, small_ * small_);
    for (std::int64_t k = 0; k < small_; ++k) gram[k * small_ + k] += static_cast<T>(a);
    run(product_, wide_ ? gram : x, wide_ ? x : gram, next);
    std::swap(x, next);
  }
  return x;
}
template float* Orthogonal::operator()(float*, double, std::int64_t, void*) const;
template double* Orthogonal::operator()(double*, double, std::int64_t, void*) const;

template <class T>
void Optimizer::Data::update_muon(const Piece& piece, T* weight, const T* gradient, T* velocity) const {
  const auto& functions = kernels().of<T>();
  const OptimizerOptions& options = of(piece).options;
  const AdamUpdate& step = of(piece).step;
  const Shape& shape = weights_[piece.weight].value.shape();
  auto* const change = static_cast<T*>(scratch_.data());
  const auto in_parallel = [&](const auto& f) {
    parallel_for(threads_, piece.count, 4096, [&](std::int64_t begin, std::int64_t end) { f(begin, end - begin); });
  };
  const double rest = (1 - options.momentum) * step.scale;
  in_parallel([&](std::int64_t i, std::int64_t count) {
    functions.combine(options.momentum, velocity + i, rest, gradient + i, velocity + i, count);
    if (options.nesterov)
      functions.combine(options.momentum, velocity + i, rest, gradient + i, change + i, count);
    else
      std::copy_n(velocity + i, count, change + i);
  });
  const double norm = std::sqrt(all_squares(change, piece.count));
  const std::size_t bytes = (static_cast<std::size_t>(piece.count) * sizeof(T) + 63) / 64 * 64;
  const T* const result =
      (*orthogonal_[piece.weight])(change, norm, options.iterations, static_cast<std::byte*>(scratch_.data()) + bytes);
  const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
  const double factor =
      options.match_adamw ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  const double shrink = 1 - step.rate * decay_of(piece);
  in_parallel([&](std::int64_t i, std::int64_t count) {
    functions.combine(shrink, weight + i, -step.rate * factor, result + i, weight + i, count);
  });
}

// Adafactor.

namespace {
/// Calls f(first, count) for parts of a row, which are so small that their changes fit on the stack.
constexpr std::int64_t most_of_row = 2048;
template <class F>
void for_parts_of_row(std::int64_t columns, const F& f) {
  for (std::int64_t first = 0; first < columns; first += most_of_row) f(first, std::min(most_of_row, columns - first));
}

/// The means of squares of adafactor change by a share of the new ones.
struct Averages {
  double kept, fresh;
  template <class T>
  void add(T& mean, double square) const {
    mean = static_cast<T>(kept * static_cast<double>(mean) + fresh * square);
  }
};
}  // namespace

template <class T>
void Optimizer::Data::add_mean_squares(const T* gradient, T* rows, T* columns, std::int64_t row_count,
                                       std::int64_t width, const AdamUpdate& step, double fresh) const {
  const Averages averages{1 - fresh, fresh};
  const double square = step.scale * step.scale;
  parallel_for(threads_, row_count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      averages.add(rows[i],
                   square * kernels().of<T>().square_sum(gradient + i * width, width) / static_cast<double>(width));
  });
  parallel_for(threads_, width, 64, [&](std::int64_t begin, std::int64_t end) {
    std::fill_n(sums_.data() + begin, end - begin, 0.0);
    for (std::int64_t i = 0; i < row_count; ++i)
      kernels().of<T>().add_squares(gradient + i * width + begin, sums_.data() + begin, end - begin);
    for (std::int64_t k = begin; k < end; ++k)
      averages.add(columns[k], square * sums_[static_cast<std::size_t>(k)] / static_cast<double>(row_count));
  });
}

template <class T>
void Optimizer::Data::update_adafactor(const Piece& piece, T* weight, const T* gradient,
                                       const PieceMoments& moments) const {
  const auto& functions = kernels().of<T>();
  const Group& group = of(piece);
  const OptimizerOptions& options = group.options;
  const AdamUpdate& step = group.step;
  const auto at = [&](Moment kind) { return static_cast<T*>(moments[static_cast<std::size_t>(kind)]); };
  const Shape& shape = weights_[piece.weight].value.shape();
  const std::int64_t width = shape.empty() ? 1 : shape.back(), rows = piece.count / width;
  const std::int64_t rows_of_matrix = shape.size() < 2 ? 1 : shape[shape.size() - 2];
  const double fresh = kernels().numbers.pow(updates_of(piece), options.beta2_decay);
  const double size = std::sqrt(all_squares(weight, piece.count) / static_cast<double>(piece.count));
  constexpr double least = std::numeric_limits<T>::epsilon();
  // Per row: what the means of columns are multiplied by to estimate the means of squares of elements.
  double* const factors = sums_.data() + width;
  if (shape.size() < 2) {
    const Averages averages{1 - fresh, fresh};
    for (std::int64_t i = 0; i < width; ++i) {
      const double g = static_cast<double>(gradient[i]) * step.scale;
      averages.add(at(Moment::second)[i], g * g);
    }
    factors[0] = 1;
  }
  for (std::int64_t first = 0; first < rows && shape.size() >= 2; first += rows_of_matrix) {
    T* const of_rows = at(Moment::rows) + first;
    add_mean_squares(gradient + first * width, of_rows, at(Moment::columns) + first / rows_of_matrix * width,
                     rows_of_matrix, width, step, fresh);
    double mean = 0;
    for (std::int64_t i = 0; i < rows_of_matrix; ++i) mean += static_cast<double>(of_rows[i]);
    mean = std::max(mean / static_cast<double>(rows_of_matrix), least);
    for (std::int64_t i = 0; i < rows_of_matrix; ++i) factors[first + i] = static_cast<double>(of_rows[i]) / mean;
  }
  /// Calls f(index of the row, first element, changes, count).
  const auto for_changes = [&](const auto& f) {
    parallel_for(threads_, rows, 1, [&](std::int64_t begin, std::int64_t end) {
      T changes[most_of_row];
      for (std::int64_t i = begin; i < end; ++i)
        for_parts_of_row(width, [&](std::int64_t k, std::int64_t count) {
          const T* const means =
              shape.size() < 2 ? at(Moment::second) : at(Moment::columns) + i / rows_of_matrix * width;
          functions.factored_row(gradient + i * width + k, means + k, changes, count,
                                 {factors[i], step.scale, least * least});
          f(i, i * width + k, changes, count);
        });
    });
  };
  double* const squares = factors + rows;
  std::fill_n(squares, rows, 0.0);
  for_changes([&](std::int64_t row, std::int64_t, const T* changes, std::int64_t count) {
    squares[row] += functions.square_sum(changes, count);
  });
  double all = 0;
  for (std::int64_t i = 0; i < rows; ++i) all += squares[i];
  const double most = std::sqrt(all / static_cast<double>(piece.count)) / options.most_change;
  const double rate = std::max(options.least_scale, size) * std::min(step.rate, 1 / std::sqrt(updates_of(piece)));
  const double shrink = 1 - step.rate * decay_of(piece);
  for_changes([&](std::int64_t, std::int64_t first, const T* changes, std::int64_t count) {
    functions.combine(shrink, weight + first, -rate / std::max(1.0, most), changes, weight + first, count);
  });
}

template void Optimizer::Data::update_muon(const Piece&, float*, const float*, float*) const;
template void Optimizer::Data::update_muon(const Piece&, double*, const double*, double*) const;
template void Optimizer::Data::update_adafactor(const Piece&, float*, const float*, const PieceMoments&) const;
template void Optimizer::Data::update_adafactor(const Piece&, double*, const double*, const PieceMoments&) const;

}  // namespace xtape
