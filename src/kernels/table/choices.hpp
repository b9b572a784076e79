/// Loops over the logits of one row, for sampling tokens.
#pragma once

#include <cstdint>

namespace xtape {

/// The largest logit, or -inf if there are no logits. Unspecified if a logit is NaN.
template <class T>
T greatest(const T* logits, std::int64_t count);

/// Whether a logit is NaN or plus infinity.
template <class T>
bool has_odd(const T* logits, std::int64_t count);

/// The first index in [from, count) whose logit is above `bound`, or `count` if there is none.
template <class T>
std::int64_t first_above(const T* logits, std::int64_t from, std::int64_t count, T bound);

/// The logarithm of the sum of exp(logits). NaN or infinite if a logit is NaN or plus infinity, or if all logits are
/// -inf.
template <class T>
double log_sum_exp(const T* logits, std::int64_t count);

/// weights = exp((logits - top) / temperature).
template <class T>
void weights_of(const T* logits, std::int64_t count, T top, T temperature, T* weights);

/// The sum of exp((logits - top) / temperature).
template <class T>
double sum_of_weights(const T* logits, std::int64_t count, T top, T temperature);

}  // namespace xtape
