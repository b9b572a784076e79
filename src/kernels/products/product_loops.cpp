#include "kernels/table/unrolled.hpp"

#if defined(__GNUC__) && !defined(__clang__)
// The compiler need not make versions of loops for strides of 1. Loops that gain from such versions have them below.
#pragma GCC optimize("no-version-loops-for-strides", "no-unswitch-loops")
#endif
#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/math/lanes.hpp"
#include "kernels/products/product_loops.hpp"

namespace xtape {

namespace {
// Multiply-adds per thread. For fewer, starting a thread does not pay off.
constexpr std::int64_t product_grain = 32768;
constexpr std::int64_t chunk = 1024;      // results summed together, which stay in the first-level cache
constexpr std::int64_t sum_block = 256;   // terms added sequentially before they are added to the total
constexpr std::int64_t dot_block = 4096;  // like sum_block, for dot products, which use `dot_lanes` partial sums
constexpr std::int64_t dot_lanes = 64;
constexpr std::int64_t few_lanes = 16;  // like dot_lanes, for shorter dot products
constexpr std::int64_t long_sum =
    65536;  // terms; longer sums with few results are cut into parts of this length for the threads

/// The sum of x[i] * y[i] in a fixed order, with `lanes` partial sums.
template <std::int64_t lanes, class T>
[[gnu::always_inline]] inline T dot_by_lanes(const T* x, std::int64_t x_step, const T* y, std::int64_t y_step,
                                             std::int64_t count) {
  T chains[lanes];
  std::int64_t i = 0;
  if (x_step == 1 && y_step == 1 && count >= lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) chains[lane] = x[lane] * y[lane];
    for (i = lanes; i + lanes <= count; i += lanes)
      for (std::int64_t lane = 0; lane < lanes; ++lane) chains[lane] = fused(x[i + lane], y[i + lane], chains[lane]);
    for (std::int64_t lane = 0; lane < count - i; ++lane) chains[lane] = fused(x[i + lane], y[i + lane], chains[lane]);
  } else {
    std::fill_n(chains, lanes, T{});
    for (; i + lanes <= count; i += lanes)
      for (std::int64_t lane = 0; lane < lanes; ++lane)
        chains[lane] = fused(x[(i + lane) * x_step], y[(i + lane) * y_step], chains[lane]);
    for (std::int64_t lane = 0; i < count; ++i, ++lane)
      chains[lane] = fused(x[i * x_step], y[i * y_step], chains[lane]);
  }
  for (std::int64_t width = lanes / 2; width > 0; width /= 2)
    for (std::int64_t lane = 0; lane < width; ++lane) chains[lane] += chains[lane + width];
  return chains[0];
}
template <class T>
T dot(const T* x, std::int64_t x_step, const T* y, std::int64_t y_step, std::int64_t count) {
  if constexpr (std::is_floating_point_v<T>)
    if (count < dot_lanes) return dot_by_lanes<few_lanes>(x, x_step, y, y_step, count);
  T total{};
  for (std::int64_t i = 0; i < count; i += dot_block)
    total += dot_by_lanes<dot_lanes>(x + i * x_step, x_step, y + i * y_step, y_step, std::min(dot_block, count - i));
  return total;
}

/// For j < count, total[j] += the sum over k < terms of a[k * a_next + j * a_step] * b[k * b_next + j * b_step]. The
/// template parameters fix strides at compile time. `a_is_scalar` means a_step = 0. `plain` means b_step = 1, and
/// a_step = 1 unless `a_is_scalar`.
template <class T, bool a_is_scalar, bool plain>
void add_products(T* total, const T* a, std::int64_t a_step, std::int64_t a_next, const T* b, std::int64_t b_step,
                  std::int64_t b_next, std::int64_t terms, std::int64_t count) {
  const auto x = [&](std::int64_t k, std::int64_t j) {
    return a[k * a_next + (a_is_scalar ? 0 : plain ? j : j * a_step)];
  };
  const auto y = [&](std::int64_t k, std::int64_t j) { return b[k * b_next + (plain ? j : j * b_step)]; };
  std::int64_t k = 0;
  for (; k + 4 <= terms; k += 4)
    for (std::int64_t j = 0; j < count; ++j)
      total[j] =
          fused(x(k + 3, j), y(k + 3, j),
                fused(x(k + 2, j), y(k + 2, j), fused(x(k + 1, j), y(k + 1, j), fused(x(k, j), y(k, j), total[j]))));
  for (; k < terms; ++k)
    for (std::int64_t j = 0; j < count; ++j) total[j] = fused(x(k, j), y(k, j), total[j]);
}

/// Returns whether a loop over axis `i` of the result reads adjacent elements, or one element, of each operand.
bool is_plain(const Loops<3>& free, std::size_t i) {
  const auto plain = [&](std::size_t k) { return free.strides[k][i] == 0 || free.strides[k][i] == 1; };
  return plain(0) && plain(1);
}

/// Computes many results at once: all sums for a range of the innermost free axis.
template <class T>
std::function<void(const T*, const T*, T*, void*)> side_by_side(const LoopsPlan& plan) {
  const std::size_t last = plan.free.rank() - 1;
  const std::int64_t length = plan.free.sizes[last];
  const std::int64_t chunks = ceiling(length, chunk);
  const std::int64_t terms = plan.sums.sizes.back();
  const std::int64_t sums = plan.sums.count() / terms;
  const std::int64_t rows = plan.free.count() / length, tasks = rows * chunks;
  const std::int64_t cost = std::min(length, chunk) * terms * sums;
  const std::int64_t a_step = plan.free.strides[0][last], b_step = plan.free.strides[1][last];
  const auto add = a_step == 0 && b_step == 1   ? add_products<T, true, true>
                   : a_step == 1 && b_step == 1 ? add_products<T, false, true>
                                                : add_products<T, false, false>;
  // In a run of rows, each offset follows from the previous offset by an addition.
  const std::int64_t run = last > 0 ? plan.free.sizes[last - 1] : 1;
  std::array<std::int64_t, 3> next_row{};
  for (std::size_t i = 0; i < 3 && last > 0; ++i) next_row[i] = plan.free.strides[i][last - 1];
  return [=](const T* a, const T* b, T* c, void*) {
    const auto compute = [&](const std::array<std::int64_t, 3>& at, std::int64_t count) {
      const std::int64_t a_next = plan.sums.strides[0].back(), b_next = plan.sums.strides[1].back();
      const std::int64_t c_step = plan.free.strides[2][last];
      T total[chunk], block[chunk];
      std::fill(total, total + count, T{});
      for (std::int64_t s = 0; s < sums; ++s) {
        const auto [sum_a, sum_b] = plan.sums.offsets(s, plan.sums.rank() - 1);
        const T* x = a + at[0] + sum_a;
        const T* y = b + at[1] + sum_b;
        for (std::int64_t k = 0; k < terms; k += sum_block) {
          const std::int64_t here = std::min(sum_block, terms - k);
          if (terms <= sum_block) {
            add(total, x, a_step, a_next, y, b_step, b_next, here, count);
            continue;
          }
          std::fill(block, block + count, T{});
          add(block, x + k * a_next, a_step, a_next, y + k * b_next, b_step, b_next, here, count);
          for (std::int64_t j = 0; j < count; ++j) total[j] += block[j];
        }
      }
      T* z = c + at[2];
      if (plan.accumulate && c_step == 1)
        for (std::int64_t j = 0; j < count; ++j) z[j] += total[j];
      else if (plan.accumulate)
        for (std::int64_t j = 0; j < count; ++j) z[j * c_step] += total[j];
      else if (c_step == 1)
        std::copy_n(total, count, z);
      else
        for (std::int64_t j = 0; j < count; ++j) z[j * c_step] = total[j];
    };
    parallel_for(plan.threads, tasks, std::max<std::int64_t>(1, product_grain / cost),
                 [&](std::int64_t begin, std::int64_t finish) {
                   for (std::int64_t task = begin; task < finish;) {
                     // Consecutive tasks compute the same chunk of different rows. Rows whose elements have a stride
                     // share cache lines.
                     const std::int64_t row = task % rows, first = task / rows * chunk;
                     auto at = plan.free.offsets(row, last);
                     for (std::size_t i = 0; i < 3; ++i) at[i] += plan.offsets[i] + first * plan.free.strides[i][last];
                     for (const std::int64_t end = std::min(finish, task + run - row % run); task < end; ++task) {
                       compute(at, std::min(chunk, length - first));
                       for (std::size_t i = 0; i < 3; ++i) at[i] += next_row[i];
                     }
                   }
                 });
  };
}

/// Computes the results one after the other, each as a dot product. Long sums of few results are divided into parts for
/// the threads.
template <class T>
std::function<void(const T*, const T*, T*, void*)> one_by_one(const LoopsPlan& plan) {
  const std::int64_t terms = plan.sums.sizes.back();
  const std::int64_t sums = plan.sums.count() / terms;
  const std::int64_t part = loops_scratch_bytes(plan, sizeof(T)) > 0 ? long_sum : terms;
  const std::int64_t parts = ceiling(terms, part);
  return [=](const T* a, const T* b, T* c, void* scratch) {
    T* partial = static_cast<T*>(scratch);
    const std::int64_t a_next = plan.sums.strides[0].back(), b_next = plan.sums.strides[1].back();
    const std::size_t free_rank = plan.free.rank();
    const auto write = [&](T& to, T value) { to = plan.accumulate ? to + value : value; };
    parallel_for(plan.threads, plan.free.count() * parts, std::max<std::int64_t>(1, product_grain / (part * sums)),
                 [&](std::int64_t begin, std::int64_t finish) {
                   for (std::int64_t task = begin; task < finish; ++task) {
                     const auto at = plan.free.offsets(task / parts, free_rank);
                     const std::int64_t first = task % parts * part;
                     T total{};
                     for (std::int64_t s = 0; s < sums; ++s) {
                       const auto [sum_a, sum_b] = plan.sums.offsets(s, plan.sums.rank() - 1);
                       total += dot(a + plan.offsets[0] + at[0] + sum_a + first * a_next, a_next,
                                    b + plan.offsets[1] + at[1] + sum_b + first * b_next, b_next,
                                    std::min(part, terms - first));
                     }
                     if (parts > 1)
                       partial[task] = total;
                     else
                       write(c[plan.offsets[2] + at[2]], total);
                   }
                 });
    if (parts == 1) return;
    for (std::int64_t i = 0; i < plan.free.count(); ++i) {
      T* row = partial + i * parts;
      for (std::int64_t width = 1; width < parts; width *= 2)  // pairwise
        for (std::int64_t j = 0; j + width < parts; j += 2 * width) row[j] += row[j + width];
      write(c[plan.offsets[2] + plan.free.offsets(i, free_rank)[2]], row[0]);
    }
  };
}

/// Estimates the nanoseconds per result if the innermost loop of side_by_side runs over axis `i` of the result.
double side_by_side_cost(const LoopsPlan& plan, std::size_t i) {
  constexpr double a_task = 20, a_plain_term = 0.1, a_strided_term = 1, a_strided_result = 0.05;
  constexpr std::int64_t longest_stride = 32;  // a longer stride takes no longer
  const auto length = static_cast<double>(std::min(chunk, plan.free.sizes[i]));
  const auto terms = static_cast<double>(plan.sums.count());
  const auto stride = static_cast<double>(std::min(longest_stride, std::abs(plan.free.strides[2][i]) - 1));
  return a_task / length + terms * (is_plain(plan.free, i) ? a_plain_term : a_strided_term) + stride * a_strided_result;
}

/// Whether side_by_side is faster than one_by_one.
bool runs_side_by_side(const LoopsPlan& plan) {
  const std::size_t last = plan.free.rank() - 1;
  const bool vectors = plan.sums.strides[0].back() == 1 && plan.sums.strides[1].back() == 1;
  const bool plain = is_plain(plan.free, last);
  const std::int64_t length = plan.free.sizes[last], terms = plan.sums.sizes.back();
  if (plain == vectors) return length >= terms;
  return plain ? length >= 4 || terms < 16 : terms <= 16;
}
}  // namespace

void arrange(LoopsPlan& plan) {
  plan.free.merge();
  plan.free.sort_by(2);
  plan.free.merge();
  if (plan.free.rank() == 0) plan.free.add(1, {0, 0, 0});
  std::size_t best = plan.free.rank() - 1;
  for (std::size_t i = plan.free.rank(); i-- > 0;)
    if (side_by_side_cost(plan, i) < side_by_side_cost(plan, best)) best = i;
  for (std::size_t i = best; i + 1 < plan.free.rank(); ++i) plan.free.swap(i, i + 1);
  plan.sums.merge();
  plan.sums.sort_by(0);
  plan.sums.merge();
  if (plan.sums.rank() == 0) plan.sums.add(1, {0, 0});
  for (std::size_t i = 0; i + 1 < plan.sums.rank(); ++i)
    if (plan.sums.strides[0][i] == 1 && plan.sums.strides[1][i] == 1) plan.sums.swap(i, plan.sums.rank() - 1);
}

double loops_cost(const LoopsPlan& plan) {
  constexpr double a_call = 100;
  const auto results = static_cast<double>(plan.free.count()), terms = static_cast<double>(plan.sums.count());
  if (runs_side_by_side(plan)) return a_call + results * side_by_side_cost(plan, plan.free.rank() - 1);
  const bool fast = plan.sums.strides[0].back() == 1 && plan.sums.strides[1].back() == 1;
  return a_call + results * terms * (fast ? 0.1 : 1.0) * (1 + 24 / static_cast<double>(plan.sums.sizes.back()));
}

std::size_t loops_scratch_bytes(const LoopsPlan& plan, std::size_t element_bytes) {
  const std::int64_t terms = plan.sums.sizes.back();
  if (runs_side_by_side(plan) || plan.free.count() >= 16 || terms <= 2 * long_sum) return 0;
  return static_cast<std::size_t>(plan.free.count() * ceiling(terms, long_sum)) * element_bytes;
}

template <class T>
std::function<void(const T*, const T*, T*, void*)> make_loops(const LoopsPlan& plan) {
  if (!runs_side_by_side(plan)) return one_by_one<T>(plan);
  const std::size_t last = plan.free.rank() - 1;
  if (plan.free.strides[0][last] != 1 || plan.free.strides[1][last] != 0) return side_by_side<T>(plan);
  // side_by_side is specialised for a scalar times a vector, not for a vector times a scalar, so exchange the operands.
  LoopsPlan swapped = plan;
  std::swap(swapped.free.strides[0], swapped.free.strides[1]);
  std::swap(swapped.sums.strides[0], swapped.sums.strides[1]);
  std::swap(swapped.offsets[0], swapped.offsets[1]);
  return [run = side_by_side<T>(swapped)](const T* a, const T* b, T* c, void* scratch) { run(b, a, c, scratch); };
}
template std::function<void(const float*, const float*, float*, void*)> make_loops(const LoopsPlan&);
template std::function<void(const double*, const double*, double*, void*)> make_loops(const LoopsPlan&);
#ifndef XTAPE_SHARED_KERNELS
template std::function<void(const std::uint32_t*, const std::uint32_t*, std::uint32_t*, void*)> make_loops(
    const LoopsPlan&);
template std::function<void(const std::uint64_t*, const std::uint64_t*, std::uint64_t*, void*)> make_loops(
    const LoopsPlan&);
#endif

}  // namespace xtape
