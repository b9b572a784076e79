/// Kernels that draw random numbers.
#pragma once

#include <cstdint>

#include "random_stream.hpp"
#include "xtape/array.hpp"

namespace xtape {

/// Uniform over [low, high): 24 random bits for float32, 53 for float64. The leading bits of both dtypes come from the
/// same random words.
void draw_uniform(const RandomStream& stream, Dtype dtype, std::int64_t count, double low, double high, void* out,
                  int threads);

/// True with probability p: if the float32 uniform number in [0, 1) of the same stream is less than p.
void draw_bernoulli(const RandomStream& stream, std::int64_t count, double p, bool* out, int threads);

/// For each row of `classes` logits, an index drawn from softmax(row). A row of -inf gives 0.
void draw_categorical(const RandomStream& stream, Dtype dtype, const void* logits, std::int64_t rows,
                      std::int64_t classes, std::int64_t* out, int threads);

/// Dropout of elements [first, first + count) of an array: x * scale if the element's Bernoulli draw with probability
/// `keep` is true, else 0. `x` and `out` point to element `first`; `out` may be `x`.
template <class T>
void drop(const RandomStream& stream, std::int64_t first, std::int64_t count, double keep, T scale, const T* x,
          T* out);

}  // namespace xtape
