#include "draws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "philox.hpp"
#include "scalar.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr std::int64_t draw_grain = 1 << 12;  // elements; a multiple of philox::words

/// The stream of the second word, for elements that need more than 32 random bits. It has the same key and the top bit
/// of the step set, which no play reaches.
RandomStream second_word(RandomStream stream) {
  stream.step ^= std::uint64_t{1} << 63;
  return stream;
}

double unit_double(std::uint32_t first, std::uint32_t second) {
  const std::uint64_t bits = (std::uint64_t{first} << 21) | (second >> 11);
  return static_cast<double>(bits) * 0x1p-53;
}

/// `unit` scaled from [0, 1) to [low, high). `last` is the largest number below `high`, which rounding could reach.
template <class T>
T scaled(T unit, T low, T width, T last) {
  return std::min(low + width * unit, last);
}

/// The dropout of `count` elements by their random words. `out` may be `x`.
template <class T>
void drop_by(const std::uint32_t* words, std::int64_t count, std::int32_t threshold, T scale, const T* x, T* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int32_t>(words[i] >> 8) < threshold ? x[i] * scale : T{0};
}
}  // namespace

void draw_uniform(const RandomStream& stream, Dtype dtype, std::int64_t count, double low, double high, void* out,
                  int threads) {
  if (dtype == Dtype::float32) {
    const auto from = static_cast<float>(low), width = static_cast<float>(high - low);
    const float last = std::nextafter(static_cast<float>(high), from);
    parallel_for(threads, count, draw_grain, [=](std::int64_t begin, std::int64_t finish) {
      float* to = static_cast<float*>(out) + begin;
      for_random_words(stream, begin, finish - begin, [=](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
#pragma omp simd
        for (std::int64_t j = 0; j < n; ++j) to[i + j] = scaled(unit_float(words[j]), from, width, last);
      });
    });
    return;
  }
  const double last = std::nextafter(high, low);
  parallel_for(threads, count, draw_grain, [=](std::int64_t begin, std::int64_t finish) {
    double* to = static_cast<double*>(out) + begin;
    for_random_words(stream, begin, finish - begin, [=](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
      alignas(64) std::uint32_t more[philox::words];
      philox::fill(second_word(stream), begin + i, more);
      for (std::int64_t j = 0; j < n; ++j) to[i + j] = scaled(unit_double(words[j], more[j]), low, high - low, last);
    });
  });
}

void draw_bernoulli(const RandomStream& stream, std::int64_t count, double p, bool* out, int threads) {
  const std::int32_t threshold = threshold_of(p);
  parallel_for(threads, count, draw_grain, [=](std::int64_t begin, std::int64_t finish) {
    bool* to = out + begin;
    for_random_words(stream, begin, finish - begin, [=](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
#pragma omp simd
      for (std::int64_t j = 0; j < n; ++j) to[i + j] = static_cast<std::int32_t>(words[j] >> 8) < threshold;
    });
  });
}

namespace {
/// The first index at which the cumulative sum of exp(logit - max) exceeds `unit` times the total.
template <class T>
std::int64_t chosen_class(const T* row, std::int64_t classes, double unit) {
  const double greatest = *std::max_element(row, row + classes);
  if (greatest == -std::numeric_limits<double>::infinity()) return 0;
  const auto weight = [&](std::int64_t i) { return std::exp(static_cast<double>(row[i]) - greatest); };
  double total = 0;
  for (std::int64_t i = 0; i < classes; ++i) total += weight(i);
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
}  // namespace

void draw_categorical(const RandomStream& stream, Dtype dtype, const void* logits, std::int64_t rows,
                      std::int64_t classes, std::int64_t* out, int threads) {
  const auto draw = [&](const auto* first) {
    parallel_for(threads, rows, 4, [&](std::int64_t begin, std::int64_t finish) {
      for_random_words(stream, begin, finish - begin, [&](const std::uint32_t* words, std::int64_t i, std::int64_t n) {
        alignas(64) std::uint32_t more[philox::words];
        philox::fill(second_word(stream), begin + i, more);
        for (std::int64_t j = 0; j < n; ++j)
          out[begin + i + j] = chosen_class(first + (begin + i + j) * classes, classes, unit_double(words[j], more[j]));
      });
    });
  };
  if (dtype == Dtype::float64)
    draw(static_cast<const double*>(logits));
  else
    draw(static_cast<const float*>(logits));
}

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

}  // namespace xtape
