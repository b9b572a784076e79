/// Layer normalisation and root-mean-square normalisation of rows, and their gradients.
///
/// Arrays of (rows, length) are dense. `weight` and `bias` are of (length), or null. Outputs may be x or dy.
#pragma once

#include <cstddef>
#include <cstdint>


namespace xtape {

/// Of rows [first, last): y = (x - mean) * rstd * weight + bias, with rstd = 1 / sqrt(mean((x - mean)^2) + epsilon).
/// Keeps mean and rstd [rows].
template <class T>
void layer_norm(const T* x, const T* weight, const T* bias, double epsilon, T* y, T* mean, T* rstd, std::int64_t first,
                std::int64_t last, std::int64_t length);

/// Of rows [first, last): y = x * rstd * weight, with rstd = 1 / sqrt(mean(x^2) + epsilon). Keeps rstd [rows].
template <class T>
void rms_norm(const T* x, const T* weight, double epsilon, T* y, T* rstd, std::int64_t first, std::int64_t last,
              std::int64_t length);

/// The gradient of either (of rms_norm where `mean` is null). `dweight` and `dbias` may be null; their sums over rows
/// are made over chunks of rows that depend on the shape alone, hence are the same for any number of threads. `scratch`
/// holds norm_grad_scratch bytes.
template <class T>
void norm_grad(const T* dy, const T* x, const T* mean, const T* rstd, const T* weight, T* dx, T* dweight, T* dbias,
               void* scratch, std::int64_t rows, std::int64_t length, int threads);
std::size_t norm_grad_scratch(std::int64_t rows, std::int64_t length, std::size_t element);

}  // namespace xtape
