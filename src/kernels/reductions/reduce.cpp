#include "kernels/table/unrolled.hpp"

#include "kernels/reductions/reduce.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/loop_kernel.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
constexpr std::int64_t lanes = 64;          // independent partial results, in registers
constexpr std::int64_t short_lanes = 8;     // like `lanes`, for short rows
constexpr std::int64_t in_line_lanes = 16;  // elements of a lane that are combined sequentially, as in NumPy
constexpr std::int64_t strip = 512;         // columns that are combined together, in the first-level cache
constexpr std::int64_t in_line_rows = 32;   // rows that are combined sequentially; more are combined pairwise
constexpr std::int64_t chunk_elements = std::int64_t{1} << 15;  // elements per partial result, approximately

struct Add {
  template <class T>
  static constexpr T start() {
    return T{0};
  }
  template <class T>
  T operator()(T a, T b) const {
    return wrapping_sum(a, b);
  }
};
struct Greatest {
  template <class T>
  static constexpr T start() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  template <class T>
  T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};
struct Least {
  template <class T>
  static constexpr T start() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  }
  template <class T>
  T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};
struct Or {
  template <class T>
  static constexpr T start() {
    return T{0};
  }
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct And {
  template <class T>
  static constexpr T start() {
    return T{1};
  }
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

/// Combines `lines` lines (at least one) of `width` adjacent elements sequentially, lane by lane, in `partial`. The
/// compiler keeps this local array in registers.
template <std::int64_t width, class In, class Out, class Combine>
[[gnu::always_inline]] inline void in_line(const In* in, std::int64_t lines, Out (&partial)[width], Combine combine) {
#pragma omp simd
  for (std::int64_t lane = 0; lane < width; ++lane)
    partial[lane] = combine(Combine::template start<Out>(), static_cast<Out>(in[lane]));
#pragma GCC unroll 1
  for (std::int64_t i = 1; i < lines; ++i) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < width; ++lane)
      partial[lane] = combine(partial[lane], static_cast<Out>(in[i * width + lane]));
  }
}

/// Like in_line for many lines. Combines lines in blocks, and blocks in a balanced tree.
template <std::int64_t width, class In, class Out, class Combine>
void in_blocks(const In* in, std::int64_t lines, Out (&result)[width], Combine combine) {
  if (lines <= in_line_lanes) {
    alignas(64) Out one[width];
    in_line(in, lines, one, combine);
    std::copy(one, one + width, result);
    return;
  }
  alignas(64) Out second[width];
  const std::int64_t first = round_up(lines / 2, in_line_lanes);
  in_blocks(in, first, result, combine);
  in_blocks(in + first * width, lines - first, second, combine);
#pragma omp simd
  for (std::int64_t lane = 0; lane < width; ++lane) result[lane] = combine(result[lane], second[lane]);
}

/// Combines the last elements of a row, which do not fill a line, with `partial`. Then combines all of `partial`
/// pairwise.
template <std::int64_t width, class In, class Out, class Combine>
[[gnu::always_inline]] inline Out joined(Out (&partial)[width], const In* rest, std::int64_t count, Combine combine) {
  for (std::int64_t lane = 0; lane < count; ++lane)
    partial[lane] = combine(partial[lane], static_cast<Out>(rest[lane]));
  for (std::int64_t half = width / 2; half > 0; half /= 2)
    for (std::int64_t lane = 0; lane < half; ++lane) partial[lane] = combine(partial[lane], partial[lane + half]);
  return partial[0];
}

/// Reduces contiguous elements in `width` lanes.
template <std::int64_t width, class In, class Out, class Combine>
inline Out reduce_by_lanes(const In* row, std::int64_t size, Combine combine) {
  const std::int64_t lines = size / width;
  alignas(64) Out partial[width];
  if (lines <= in_line_lanes || !std::is_same_v<Combine, Add>) {  // only sums round
    in_line(row, lines, partial, combine);
    return joined(partial, row + lines * width, size - lines * width, combine);
  }
  alignas(64) Out blocks[width];  // a separate array, so that the compiler keeps `partial` in registers
  in_blocks(row, lines, blocks, combine);
  return joined(blocks, row + lines * width, size - lines * width, combine);
}

/// Reduces contiguous elements, at most one chunk.
template <class In, class Out, class Combine>
Out reduce_row(const In* row, std::int64_t size, Combine combine) {
  if constexpr (std::is_floating_point_v<Out>) {  // the order does not matter for integers
    if (size >= 2 * lanes) return reduce_by_lanes<lanes, In, Out>(row, size, combine);
    if (size >= short_lanes) return reduce_by_lanes<short_lanes, In, Out>(row, size, combine);
  }
  Out result = Combine::template start<Out>();
  for (std::int64_t i = 0; i < size; ++i) result = combine(result, static_cast<Out>(row[i]));
  return result;
}

/// Reduces at most `strip` adjacent columns over `size` rows that are `step` elements apart.
template <class In, class Out, class Combine>
void reduce_columns(const In* in, std::int64_t size, std::int64_t step, std::int64_t columns, Out* out,
                    Combine combine) {
  if (size <= in_line_rows) {
    for (std::int64_t j = 0; j < columns; ++j)
      out[j] = size > 0 ? static_cast<Out>(in[j]) : Combine::template start<Out>();
    for (std::int64_t i = 1; i < size; ++i) {
      const In* row = in + i * step;
#pragma omp simd
      for (std::int64_t j = 0; j < columns; ++j) out[j] = combine(out[j], static_cast<Out>(row[j]));
    }
    return;
  }
  // Each half consists of complete blocks, so that the sums form a balanced tree. Its depth is the logarithm of the
  // number of blocks in a chunk, which is small.
  const std::int64_t first = round_up(size / 2, in_line_rows);
  reduce_columns(in, first, step, columns, out, combine);
  alignas(64) Out second[strip];
  reduce_columns(in + first * step, size - first, step, columns, second, combine);
  for (std::int64_t j = 0; j < columns; ++j) out[j] = combine(out[j], second[j]);
}

/// Reduces `count` rows of `size` contiguous elements. Compiled once for all callers, because its code is large.
template <class In, class Out, class Combine>
#ifndef __clang__
[[gnu::noclone]]
#endif
[[gnu::noinline]] void
reduce_rows(const In* in, std::int64_t count, std::int64_t size, Out* out, Combine combine) {
  for (std::int64_t row = 0; row < count; ++row) out[row] = reduce_row<In, Out>(in + row * size, size, combine);
}

/// Reduces the units [begin, finish) of reduce_chunks. A unit is at most `strip` columns of a chunk.
template <class In, class Out, class Combine>
void reduce_units(const In* in, Middle extent, std::int64_t chunk, std::int64_t chunks, Out* out, Combine combine,
                  std::int64_t begin, std::int64_t finish) {
  const auto [outer, size, inner] = extent;
  if (inner == 1 && chunks == 1) return reduce_rows(in + begin * size, finish - begin, size, out + begin, combine);
  const std::int64_t strips = ceiling(inner, strip);
  // The loop counts strips and chunks, because a division takes longer than reducing few elements.
  std::int64_t column = begin % strips * strip, row = begin / strips % chunks * chunk;
  in += begin / strips / chunks * size * inner;
  out += begin / strips * inner;
  for (std::int64_t unit = begin; unit < finish; ++unit) {
    const In* from = in + row * inner + column;
    const std::int64_t rows = std::min(chunk, size - row);
    if (inner == 1)
      reduce_rows(from, 1, rows, out, combine);
    else
      reduce_columns(from, rows, inner, std::min(strip, inner - column), out + column, combine);
    column += strip;
    if (column < inner) continue;
    column = 0;
    out += inner;
    row += chunk;
    if (row < size) continue;
    row = 0;
    in += size * inner;
  }
}

/// Reduces each chunk of the middle of `in` separately to out[outer, chunks, inner].
template <class In, class Out, class Combine>
[[gnu::noinline]] void reduce_chunks(const In* in, const Middle& extent, std::int64_t chunk, std::int64_t chunks,
                                     Out* out, int threads, Combine combine) {
  const std::int64_t work = std::min(chunk, extent.size) * std::min(extent.inner, strip) + 1;
  const std::int64_t grain = std::max<std::int64_t>(1, (std::int64_t{1} << 14) / work);
  parallel_for(threads, extent.outer * chunks * ceiling(extent.inner, strip), grain,
               [&](std::int64_t begin, std::int64_t finish) {
                 reduce_units(in, extent, chunk, chunks, out, combine, begin, finish);
               });
}

/// The number of rows of the middle per partial result.
std::int64_t chunk_of(const Middle& extent) {
  const std::int64_t wide = std::clamp<std::int64_t>(extent.inner, 1, strip);
  // Wide arrays have enough strips for all threads, so their chunks are longer.
  const std::int64_t elements = extent.outer * extent.inner >= 64 * strip ? 8 * chunk_elements : chunk_elements;
  return std::max<std::int64_t>(in_line_rows, elements / wide);
}

/// Reduces arrays of one shape over `axes`. Maximum and minimum propagate NaN.
class Reducer {
 public:
  /// `axes[i]` says whether axis i is reduced. The result has the dtype of the input for maximum and minimum of
  /// numbers, for sum and mean of floats, and for any and all of bool. The sum of integers and bool is int64.
  Reducer(Reduction reduction, Dtype in, const Shape& shape, const std::vector<bool>& axes, int threads);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  /// If the reduction consists of one pass, in one chunk, over at most `elements` elements: the extent of this pass.
  /// Otherwise empty.
  std::optional<Middle> only_pass(std::int64_t elements) const;
  void run(const void* in, void* out, void* scratch) const;

 private:
  /// One pass over the array. Adjacent axes that are all reduced or all kept form a group. Each pass reduces the
  /// innermost reduced group that remains.
  struct Pass {
    Middle extent;
    /// The middle axis is divided into `chunks` chunks of `chunk` elements (the last may have fewer). Each chunk has a
    /// partial result. With several chunks, the partial results are in scratch.
    std::int64_t chunk = 0;
    std::int64_t chunks = 1;
    std::size_t partial_bytes = 0;  ///< Bytes of the partial results.
  };
  template <class In, class Out, class Combine>
  void run_as(const void* in, void* out, void* scratch, Combine combine) const;

  Reduction reduction_;
  Dtype in_;
  Dtype out_;
  int threads_;
  std::int64_t count_ = 1;  ///< Elements per result.
  std::int64_t results_ = 1;
  std::vector<Pass> passes_;
  std::size_t between_bytes_ = 0;  ///< Bytes of the largest intermediate result.
  std::size_t scratch_bytes_ = 0;
};

Reducer::Reducer(Reduction reduction, Dtype in, const Shape& shape, const std::vector<bool>& axes, int threads)
    : reduction_(reduction), in_(in), out_(in), threads_(threads) {
  if (reduction == Reduction::sum && !is_floating(in)) out_ = Dtype::int64;
  struct Group {
    bool reduced;
    std::int64_t size;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    (axes[i] ? count_ : results_) *= shape[i];
    if (shape[i] == 1) continue;
    if (!groups.empty() && groups.back().reduced == axes[i])
      groups.back().size *= shape[i];
    else
      groups.push_back({axes[i], shape[i]});
  }
  for (std::size_t i = groups.size(); i-- > 0;) {
    if (!groups[i].reduced) continue;
    Pass pass;
    for (std::size_t j = 0; j < i; ++j) pass.extent.outer *= groups[j].size;
    pass.extent.size = groups[i].size;
    for (std::size_t j = i + 1; j < groups.size(); ++j)
      if (!groups[j].reduced) pass.extent.inner *= groups[j].size;
    passes_.push_back(pass);
  }
  if (passes_.empty()) passes_.push_back({{1, 1, count_of(shape)}});
  std::size_t partial = 0;
  for (Pass& pass : passes_) {
    const Middle& extent = pass.extent;
    pass.chunk = chunk_of(extent);
    pass.chunks = std::max<std::int64_t>(1, ceiling(extent.size, pass.chunk));
    if (pass.chunks > 1)
      pass.partial_bytes =
          whole_lines(static_cast<std::size_t>(extent.outer * pass.chunks * extent.inner) * size_of(out_));
    partial = std::max(partial, pass.partial_bytes);
    if (&pass != &passes_.back())
      between_bytes_ =
          std::max(between_bytes_, whole_lines(static_cast<std::size_t>(extent.outer * extent.inner) * size_of(out_)));
  }
  scratch_bytes_ = partial + 2 * between_bytes_;  // passes read one intermediate result while they write the other
}

std::optional<Middle> Reducer::only_pass(std::int64_t elements) const {
  const Pass& pass = passes_[0];
  if (passes_.size() > 1 || pass.chunks > 1 || count_ * results_ > elements) return std::nullopt;
  return pass.extent;
}

template <class In, class Out, class Combine>
void Reducer::run_as(const void* in, void* out, void* scratch, Combine combine) const {
  auto* partial = static_cast<Out*>(scratch);
  auto* between = reinterpret_cast<std::byte*>(scratch) + (scratch_bytes_ - 2 * between_bytes_);
  const void* from = in;
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    const Pass& pass = passes_[i];
    const bool last = i + 1 == passes_.size();
    Out* to = last ? static_cast<Out*>(out) : reinterpret_cast<Out*>(between + (i % 2) * between_bytes_);
    Out* first = pass.chunks > 1 ? partial : to;
    if (i == 0)
      reduce_chunks(static_cast<const In*>(from), pass.extent, pass.chunk, pass.chunks, first, threads_, combine);
    else
      reduce_chunks(static_cast<const Out*>(from), pass.extent, pass.chunk, pass.chunks, first, threads_, combine);
    if (pass.chunks > 1)
      reduce_chunks(static_cast<const Out*>(partial), {pass.extent.outer, pass.chunks, pass.extent.inner}, pass.chunks,
                    1, to, threads_, combine);
    from = to;
  }
}

void Reducer::run(const void* in, void* out, void* scratch) const {
  switch (reduction_) {
    case Reduction::sum:
    case Reduction::mean:
      with_scalar(in_, [&](auto scalar) {
        using T = ReadAs<decltype(scalar)>;
        using Out = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
        run_as<T, Out>(in, out, scratch, Add{});
        if (reduction_ == Reduction::mean)
          for (std::int64_t i = 0; i < results_; ++i) static_cast<Out*>(out)[i] /= static_cast<Out>(count_);
      });
      break;
    case Reduction::maximum:
    case Reduction::minimum:
      with_number(in_, [&](auto scalar) {
        using T = decltype(scalar);
        if (reduction_ == Reduction::maximum)
          run_as<T, T>(in, out, scratch, Greatest{});
        else
          run_as<T, T>(in, out, scratch, Least{});
      });
      break;
    case Reduction::any:
      run_as<ReadAs<bool>, ReadAs<bool>>(in, out, scratch, Or{});
      break;
    case Reduction::all:
      run_as<ReadAs<bool>, ReadAs<bool>>(in, out, scratch, And{});
      break;
  }
}

/// Sums of up to this many elements are loop kernels (loop_kernel.hpp), because a Reducer takes longer to begin than to
/// add so few elements. There are no loop kernels for maxima, because maxima are rarer in programs with few numbers.
constexpr std::int64_t few_elements = 64;

template <class T>
T sum_of_few(const T* row, std::int64_t size) {
  if (size > few_elements) __builtin_unreachable();  // removes the code for more elements
  return reduce_row<T, T>(row, size, Add{});
}

/// Like reduce_chunks, for few elements.
template <class T>
TileFunction few_summed(const Middle& extent) {
  if (extent.outer == 1 && extent.inner == 1)
    return +[](const Tile& tile) {
      *static_cast<T*>(tile.out[0]) = sum_of_few(static_cast<const T*>(tile.in[0]), tile.count);
    };
  return [extent](const Tile& tile) {
    const auto [outer, size, inner] = extent;
    const T* from = static_cast<const T*>(tile.in[0]);
    T* to = static_cast<T*>(tile.out[0]);
    for (std::int64_t i = 0; i < outer; ++i, from += size * inner, to += inner)
      if (inner == 1)
        *to = sum_of_few(from, size);
      else
        reduce_columns(from, size, inner, inner, to, Add{});
  };
}

Kernel kernel_of(const std::shared_ptr<const Reducer>& reducer) {
  return {[reducer](const KernelArguments& arguments) {
            reducer->run(arguments.in[0], arguments.out[0], arguments.scratch);
          },
          reducer->scratch_bytes()};
}

template <Reduction reduction>
Kernel make_reduction(const KernelForm& form) {
  const Shape& shape = form.shape(0);
  const auto& axis = form.get<std::vector<std::int64_t>>("axis");
  std::vector<bool> axes(shape.size(), axis.empty());
  for (const std::int64_t each : axis) axes[normal_axis(each, shape.size())] = true;
  const auto reducer = std::make_shared<const Reducer>(reduction, form.dtype(0), shape, axes, form.threads);
  if constexpr (reduction == Reduction::sum)
    if (const auto extent = reducer->only_pass(few_elements); extent && is_floating(form.dtype(0)))
      return one_loop(with_floating(form.dtype(0), [&](auto scalar) { return few_summed<decltype(scalar)>(*extent); }),
                      count_of(shape));
  return kernel_of(reducer);
}
}  // namespace

Kernel make_row_sum(Dtype dtype, std::int64_t rows, std::int64_t columns, int threads) {
  return kernel_of(
      std::make_shared<const Reducer>(Reduction::sum, dtype, Shape{rows, columns}, std::vector{true, false}, threads));
}

KernelList list_reduce() {
  return {{"sum", make_reduction<Reduction::sum>},     {"mean", make_reduction<Reduction::mean>},
          {"max", make_reduction<Reduction::maximum>}, {"min", make_reduction<Reduction::minimum>},
          {"any", make_reduction<Reduction::any>},     {"all", make_reduction<Reduction::all>}};
}

}  // namespace xtape
