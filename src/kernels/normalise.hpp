/// Layer normalisation and root-mean-square normalisation of rows, and their gradients.
///
/// Arrays of shape (rows, length) are dense. `weight` and `bias` have shape (length), or are null. Outputs may
/// overwrite x or dy.
#pragma once

#include <cstddef>
#include <cstdint>


namespace xtape {

/// For rows [first, last): y = (x - mean) * rstd * weight + bias, with rstd = 1 / sqrt(mean((x - mean)^2) + epsilon).
/// Also writes mean[rows] and rstd[rows].
template <class T>
void layer_norm(const T* x, const T* weight, const T* bias, double epsilon, T* y, T* mean, T* rstd, std::int64_t first,
                std::int64_t last, std::int64_t length);

/// For rows [first, last): y = x * rstd * weight, with rstd = 1 / sqrt(mean(x^2) + epsilon). Also writes rstd[rows].
template <class T>
void rms_norm(const T* x, const T* weight, double epsilon, T* y, T* rstd, std::int64_t first, std::int64_t last,
              std::int64_t length);

/// The gradient of layer_norm, or of rms_norm if `mean` is null. `dweight` and `dbias` may be null. Their sums over
/// rows go over chunks that depend on the shape only, so the result is the same for any number of threads. `scratch`
/// has norm_grad_scratch bytes.
template <class T>
void norm_grad(const T* dy, const T* x, const T* mean, const T* rstd, const T* weight, T* dx, T* dweight, T* dbias,
               void* scratch, std::int64_t rows, std::int64_t length, int threads);
std::size_t norm_grad_scratch(std::int64_t rows, std::int64_t length, std::size_t element);

}  // namespace xtape
