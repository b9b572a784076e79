#include "kernels/random/draws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/threads/threads.hpp"
#include "kernels/elements/scalar.hpp"
#include "kernels/math/vector_math.hpp"
#include "kernels/random/philox.hpp"

namespace xtape {

namespace {
constexpr std::int64_t draw_grain = 1 << 12;  // elements; a multiple of philox::words

/// The stream of the second random word, for elements that need more than 32 random bits. The result has the key of
/// `stream`. Its step is that of `stream` with the top bit set. No play reaches such a step.
RandomStream second_word(RandomStream stream) {
  stream.step ^= std::uint64_t{1} << 63;
  return stream;
}

double unit_double(std::uint32_t first, std::uint32_t second) {
  const std::uint64_t bits = (std::uint64_t{first} << 21) | (second >> 11);
  return static_cast<double>(bits) * 0x1p-53;
}

/// `unit` scaled from [0, 1) to [low, high). If rounding reaches `high`, returns `last`, the largest number below
/// `high`.
template <class T>
T scaled(T unit, T low, T width, T last) {
  return std::min(low + width * unit, last);
}

/// Applies dropout to `count` elements with their random words. `out` may be `x`.
template <class T>
void drop_by(const std::uint32_t* words, std::int64_t count, std::int32_t threshold, T scale, const T* x, T* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int32_t>(words[i] >> 8) < threshold ? x[i] * scale : T{0};
}

/// The key of the random numbers of a call.
std::uint64_t key_of(const KernelForm& form) {
  return RandomStream::key_of(form.seed, form.site);
}

/// A kernel that draws the elements of its output. draw(stream, begin, size, to) writes `size` elements, from `begin`
/// on, to `to`.
template <class T, class Draw>
Kernel drawing(const KernelForm& form, const Draw& draw) {
  return {[=, key = key_of(form), count = count_of(form.outputs[0].shape),
           threads = form.threads](const KernelArguments& arguments) {
    parallel_for(threads, count, draw_grain, [&](std::int64_t begin, std::int64_t finish) {
      draw(RandomStream{key, arguments.step}, begin, finish - begin, out<T>(arguments, 0) + begin);
    });
  }};
}

/// Uniform over [low, high): 24 random bits for float32, 53 for float64. The leading bits of both dtypes come from the
/// same random words.
Kernel make_uniform(const KernelForm& form) {
  const double low = form.get<double>("low"), high = form.get<double>("high");
  if (form.outputs[0].dtype == Dtype::float32) {
    const auto from = static_cast<float>(low), width = static_cast<float>(high - low);
    const float last = std::nextafter(static_cast<float>(high), from);
    return drawing<float>(form, [=](RandomStream stream, std::int64_t begin, std::int64_t size, float* to) {
      for_random_words(stream, begin, size, [=](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
#pragma omp simd
        for (std::int64_t j = 0; j < n; ++j) to[i + j] = scaled(unit_float(words[j]), from, width, last);
      });
    });
  }
  const double last = std::nextafter(high, low);
  return drawing<double>(form, [=](RandomStream stream, std::int64_t begin, std::int64_t size, double* to) {
    for_random_words(stream, begin, size, [=](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
      alignas(64) std::uint32_t more[philox::words];
      philox::fill(second_word(stream), begin + i, more);
      for (std::int64_t j = 0; j < n; ++j) to[i + j] = scaled(unit_double(words[j], more[j]), low, high - low, last);
    });
  });
}

/// Each element is true with probability p. It is true if the uniform float32 number in [0, 1) with the same stream and
/// the same index is less than p.
Kernel make_bernoulli(const KernelForm& form) {
  const std::int32_t threshold = threshold_of(form.get<double>("p"));
  return drawing<bool>(form, [=](RandomStream stream, std::int64_t begin, std::int64_t size, bool* to) {
    for_random_words(stream, begin, size, [=](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) to[i + j] = static_cast<std::int32_t>(words[j] >> 8) < threshold;
    });
  });
}

/// The first index at which the cumulative sum of exp(logit - max) exceeds `unit` times the total, or -1 if there is no
/// total because a logit is NaN or infinity.
template <class T>
std::int64_t chosen_class(const T* row, std::int64_t classes, double unit) {
  const double greatest = *std::max_element(row, row + classes);
  if (greatest == -std::numeric_limits<double>::infinity()) return 0;
  const auto weight = [&](std::int64_t i) { return vector_math::exp(static_cast<double>(row[i]) - greatest); };
  double total = 0;
  for (std::int64_t i = 0; i < classes; ++i) total += weight(i);
  if (std::isnan(total)) return -1;
  double left = unit * total;
  std::int64_t last = 0;  // the last class of nonzero probability: the result if rounding runs past the end
  for (std::int64_t i = 0; i < classes; ++i) {
    const double each = weight(i);
    if (each > 0) last = i;
    if (left < each) return i;
    left -= each;
  }
  return last;
}

/// For each row of logits, draws an index from softmax(row). A row of -inf gives 0.
Kernel make_categorical(const KernelForm& form) {
  return with_floating(form.dtype(0), [&](auto scalar) {
    using T = decltype(scalar);
    return Kernel{[key = key_of(form), shape = form.outputs[0].shape, classes = form.shape(0).back(),
                   threads = form.threads](const KernelArguments& arguments) {
      const std::int64_t rows = count_of(shape);
      const RandomStream stream{key, arguments.step};
      const T* logits = in<T>(arguments, 0);
      auto* to = out<std::int64_t>(arguments, 0);
      parallel_for(threads, rows, 4, [&](std::int64_t begin, std::int64_t finish) {
        for_random_words(
            stream, begin, finish - begin, [&](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
              alignas(64) std::uint32_t more[philox::words];
              philox::fill(second_word(stream), begin + i, more);
              for (std::int64_t j = 0; j < n; ++j)
                to[begin + i + j] =
                    chosen_class(logits + (begin + i + j) * classes, classes, unit_double(words[j], more[j]));
            });
      });
      const std::int64_t wrong = std::find(to, to + rows, -1) - to;
      if (wrong < rows) refuse_logits(wrong, shape);
    }};
  });
}
}  // namespace

template <class T>
void drop(const RandomStream& stream, std::int64_t first, std::int64_t count, double keep, T scale, const T* x,
          T* out) {
  const std::int32_t threshold = threshold_of(keep);
  const std::int64_t before = first % 4;  // words are drawn in groups of four
  for_random_words(
      stream, first - before, before + count, [=](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
        const std::int64_t begin = std::max<std::int64_t>(0, before - i);
        drop_by(words + begin, n - begin, threshold, scale, x + i + begin - before, out + i + begin - before);
      });
}
template void drop(const RandomStream&, std::int64_t, std::int64_t, double, float, const float*, float*);
template void drop(const RandomStream&, std::int64_t, std::int64_t, double, double, const double*, double*);

TileFunction make_dropout(const KernelForm& form) {
  const double keep = 1 - form.get<double>("rate");
  return with_floating(form.dtype(0), [&](auto scalar) -> TileFunction {
    using T = decltype(scalar);
    return [key = key_of(form), keep, scale = static_cast<T>(1 / keep)](const Tile& tile) {
      drop({key, tile.step}, tile.first, tile.count, keep, scale, static_cast<const T*>(tile.in[0]),
           static_cast<T*>(tile.out[0]));
    };
  });
}

KernelList list_draws() {
  return {{"uniform", make_uniform}, {"bernoulli", make_bernoulli}, {"categorical", make_categorical}};
}

}  // namespace xtape
