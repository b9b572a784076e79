#include "kernels/table/unrolled.hpp"

#include <array>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/elements/loops.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/math/vector_math.hpp"
#include "kernels/reductions/reduce.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
constexpr std::int64_t columns_at_once = 16;

/// The number of scratch elements per thread and operand if the axis is not the last.
std::int64_t gathered_elements(const Middle& extent) {
  return (extent.size * columns_at_once + 15) / 16 * 16;
}

/// Calls row(in, out, length) on every row. If the axis is not the last, adjacent rows are first gathered into scratch
/// memory, processed there, and then copied to `out`. Cache lines are then used completely.
template <class T, std::size_t operands, class Row>
void for_rows(const std::array<const T*, operands>& in, T* out, const Middle& extent, void* scratch, int threads,
              const Row& row) {
  const std::int64_t length = extent.size;
  if (extent.inner == 1) {
    parallel_for(threads, extent.outer, rows_a_piece(length), [&](std::int64_t begin, std::int64_t finish) {
      for (std::int64_t r = begin; r < finish; ++r) {
        std::array<const T*, operands> at;
        for (std::size_t k = 0; k < operands; ++k) at[k] = in[k] + r * length;
        row(at, out + r * length, length);
      }
    });
    return;
  }
  const std::int64_t groups_across = ceiling(extent.inner, columns_at_once);
  const std::int64_t groups = extent.outer * groups_across;
  const std::int64_t grain = rows_a_piece(length * columns_at_once);
  parallel_pieces(threads, groups, grain, [&](std::int64_t begin, std::int64_t finish, std::int64_t worker) {
    std::array<T*, operands> gathered;
    for (std::size_t k = 0; k < operands; ++k)
      gathered[k] =
          static_cast<T*>(scratch) +
          (worker * static_cast<std::int64_t>(operands) + static_cast<std::int64_t>(k)) * gathered_elements(extent);
    for (std::int64_t group = begin; group < finish; ++group) {
      const std::int64_t first = group % groups_across * columns_at_once;
      const std::int64_t columns = std::min(columns_at_once, extent.inner - first);
      const std::int64_t base = group / groups_across * length * extent.inner + first;
      for (std::size_t k = 0; k < operands; ++k)
        for (std::int64_t i = 0; i < length; ++i)
          for (std::int64_t c = 0; c < columns; ++c) gathered[k][c * length + i] = in[k][base + i * extent.inner + c];
      for (std::int64_t c = 0; c < columns; ++c) {
        std::array<const T*, operands> at;
        for (std::size_t k = 0; k < operands; ++k) at[k] = gathered[k] + c * length;
        row(at, gathered[0] + c * length, length);
      }
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t c = 0; c < columns; ++c) out[base + i * extent.inner + c] = gathered[0][c * length + i];
    }
  });
}

/// Returns the largest element m, or 0 for a row of -inf. exp(x - m) is then 0 instead of NaN.
template <class T>
T finite_max(const T* x, std::int64_t count) {
  const T largest = max_of_lanes(x, count);
  return largest == -std::numeric_limits<T>::infinity() ? T{0} : largest;
}

/// The softmax of a row of n registers, as in attention over few keys. Stores no intermediate results.
template <std::size_t n, class T, class Lanes>
void softmax_registers(const T* x, T* y, const Lanes& lanes) {
  using Batch = xsimd::batch<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  std::array<Batch, n> row;
#pragma GCC unroll 16
  for (std::size_t k = 0; k < n; ++k) row[k] = lanes.load(x + k * Batch::size, lowest);
  Batch most = row[0];
#pragma GCC unroll 16
  for (std::size_t k = 1; k < n; ++k) most = xsimd::max(most, row[k]);
  const T largest = fold_lanes(most, [](const auto& p, const auto& q) { return p > q ? p : q; });
  const Batch shift(largest == lowest ? T{0} : largest);
#pragma GCC unroll 16
  for (std::size_t k = 0; k < n; ++k) row[k] = vector_math::clipped_exp(row[k] - shift);
  // in the same order as sum_of_lanes
  std::array<Batch, std::max(n, std::tuple_size_v<Line<T>>)> sum;
  sum.fill(Batch(T{}));
  for (std::size_t k = 0; k < n; ++k) sum[k] = row[k];
  const double total = static_cast<double>(add_line<T>(sum));
  const Batch scale(total == 0 ? T{0} : static_cast<T>(1 / total));
#pragma GCC unroll 16
  for (std::size_t k = 0; k < n; ++k) lanes.store(y + k * Batch::size, row[k] * scale);
}

template <class T>
void softmax_row(const T* x, T* y, std::int64_t count) {
  using Batch = xsimd::batch<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  constexpr std::size_t registers = std::tuple_size_v<Line<T>>;
  constexpr std::int64_t width = Batch::size, line = static_cast<std::int64_t>(registers) * width;
  if (count == 4 * line) return softmax_registers<4 * registers>(x, y, AllLanes<T>{});
  if (count == 2 * line) return softmax_registers<2 * registers>(x, y, AllLanes<T>{});
  if (registers > 1 && count == line) return softmax_registers<registers>(x, y, AllLanes<T>{});
  if (count <= width) return softmax_registers<1>(x, y, FirstLanes<T>{count});
  const Batch shift(finite_max(x, count));
  const double total = sum_of_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    const Batch e = vector_math::clipped_exp(lanes.load(x + i, lowest) - shift);
    lanes.store(y + i, e);
    return e;
  });
  const Batch scale(total == 0 ? T{0} : static_cast<T>(1 / total));
  for_lanes<T>(count, [&](std::int64_t i, const auto& lanes) { lanes.store(y + i, lanes.load(y + i) * scale); });
}

template <class T>
void log_softmax_row(const T* x, T* y, std::int64_t count) {
  using Batch = xsimd::batch<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  const Batch shift(finite_max(x, count));
  const double total = sum_of_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    return vector_math::clipped_exp(lanes.load(x + i, lowest) - shift);
  });
  const Batch logarithm(total == 0 ? T{0} : static_cast<T>(vector_math::log(total)));
  for_lanes<T>(count,
               [&](std::int64_t i, const auto& lanes) { lanes.store(y + i, (lanes.load(x + i) - shift) - logarithm); });
}

/// dx = scale * y * (dy - sum(dy * y)).
template <class T>
void softmax_grad_row(const T* y, const T* dy, T* dx, T scale, std::int64_t count) {
  using Batch = xsimd::batch<T>;
  const double dot =
      sum_of_lanes<T>(count, [&](std::int64_t i, const auto& lanes) { return lanes.load(y + i) * lanes.load(dy + i); });
  const Batch shift(static_cast<T>(dot));
  const Batch factor(scale);
  for_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    lanes.store(dx + i, lanes.load(y + i) * (lanes.load(dy + i) - shift) * factor);
  });
}

/// dx = dy - exp(y) * sum(dy).
template <class T>
void log_softmax_grad_row(const T* y, const T* dy, T* dx, std::int64_t count) {
  const double sum = sum_of_lanes<T>(count, [&](std::int64_t i, const auto& lanes) { return lanes.load(dy + i); });
  const xsimd::batch<T> total(static_cast<T>(sum));
  for_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    lanes.store(dx + i, lanes.load(dy + i) - vector_math::clipped_exp(lanes.load(y + i)) * total);
  });
}

/// Returns a kernel that calls row(inputs, output, length) on every row along the attribute `axis`.
template <std::size_t operands, class Row>
Kernel along_axis(const KernelForm& form, const Row& row) {
  const Middle extent = Middle::around(form.shape(0), form.get<std::int64_t>("axis"));
  const std::int64_t gathered = extent.inner == 1 ? 0 : gathered_elements(extent) * operands * form.threads;
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[=, threads = form.threads](const KernelArguments& arguments) {
                    std::array<const T*, operands> from;
                    for (std::size_t k = 0; k < operands; ++k) from[k] = in<T>(arguments, k);
                    for_rows(from, out<T>(arguments, 0), extent, arguments.scratch, threads, row);
                  },
                  static_cast<std::size_t>(gathered) * sizeof(T)};
  });
}

Kernel make_softmax(const KernelForm& form) {
  return along_axis<1>(form, [](const auto& x, auto* y, std::int64_t count) { softmax_row(x[0], y, count); });
}
Kernel make_log_softmax(const KernelForm& form) {
  return along_axis<1>(form, [](const auto& x, auto* y, std::int64_t count) { log_softmax_row(x[0], y, count); });
}
Kernel make_softmax_grad(const KernelForm& form) {
  return along_axis<2>(form, []<class T>(const std::array<const T*, 2>& of, T* dx, std::int64_t count) {
    softmax_grad_row(of[0], of[1], dx, T{1}, count);
  });
}
Kernel make_log_softmax_grad(const KernelForm& form) {
  return along_axis<2>(
      form, [](const auto& of, auto* dx, std::int64_t count) { log_softmax_grad_row(of[0], of[1], dx, count); });
}

/// Writes x * factor, or -inf where the mask is true. The loops for dense rows with a mask stride of 0 or 1, which
/// attention uses, are vectorised.
template <class T>
void scale_and_mask(const T* x, std::int64_t x_step, T factor, const bool* mask, std::int64_t mask_step, T* y,
                    std::int64_t count) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  if (x_step == 1 && mask_step == 1) {
    // Reads the mask as bytes, because compilers do not vectorise loops that read bool.
    const auto* masked = reinterpret_cast<const unsigned char*>(mask);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) y[i] = masked[i] != 0 ? lowest : x[i] * factor;
  } else if (x_step == 1 && mask_step == 0) {
    const bool masked = mask[0];
    for (std::int64_t i = 0; i < count; ++i) y[i] = masked ? lowest : x[i] * factor;
  } else {
    for (std::int64_t i = 0; i < count; ++i) y[i] = mask[i * mask_step] ? lowest : x[i * x_step] * factor;
  }
}
}  // namespace

template <class T>
void softmax_grad(const T* y, const T* dy, T* dx, T scale, std::int64_t rows, std::int64_t length) {
  for (std::int64_t r = 0; r < rows; ++r)
    softmax_grad_row(y + r * length, dy + r * length, dx + r * length, scale, length);
}

template <class T>
void masked_softmax(const T* x, const Layout& x_layout, T scale, const bool* mask, const Layout& mask_layout, T* y,
                    int threads) {
  const std::int64_t length = x_layout.shape.back();
  if (length == 0) return;
  Loops<2> rows = loops_over(x_layout, mask_layout);
  rows.erase(rows.rank() - 1);
  rows.merge();
  if (rows.rank() == 0) rows.add(1, {0, 0});
  const std::size_t last = rows.rank() - 1;
  // Several rows are masked before the first of them is read again. If a row were read at once, the processor would
  // stall, because the row was written through narrower registers. The rows must be few enough to stay in the
  // first-level cache.
  const std::int64_t at_once = std::max<std::int64_t>(1, 2048 / length);
  parallel_for(threads, rows.count(), rows_a_piece(length), [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t r = begin; r < finish;) {  // `run` rows with a constant stride
      const std::int64_t first = r % rows.sizes[last];
      const std::int64_t run = std::min({rows.sizes[last] - first, finish - r, at_once});
      const auto [x_start, mask_start] = rows.offsets(r / rows.sizes[last], last);
      for (std::int64_t i = 0; i < run; ++i)
        scale_and_mask(x + x_start + (first + i) * rows.strides[0][last], x_layout.strides.back(), scale,
                       mask + mask_start + (first + i) * rows.strides[1][last], mask_layout.strides.back(),
                       y + (r + i) * length, length);
      for (std::int64_t i = 0; i < run; ++i, ++r) softmax_row(y + r * length, y + r * length, length);
    }
  });
}

template void softmax_grad(const float*, const float*, float*, float, std::int64_t, std::int64_t);
template void softmax_grad(const double*, const double*, double*, double, std::int64_t, std::int64_t);
template void masked_softmax(const float*, const Layout&, float, const bool*, const Layout&, float*, int);
template void masked_softmax(const double*, const Layout&, double, const bool*, const Layout&, double*, int);

KernelList list_softmax() {
  return {{"softmax", make_softmax},
          {"log_softmax", make_log_softmax},
          {"softmax_grad", make_softmax_grad},
          {"log_softmax_grad", make_log_softmax_grad}};
}

}  // namespace xtape
