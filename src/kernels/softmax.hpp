/// Softmax and log-softmax along one axis of dense arrays, and their gradients.
///
/// An array is viewed as [outer, size, inner], with the axis in the middle. An output may be any of the inputs. A row
/// whose elements are all -inf gives zeros (log_softmax: -inf).
#pragma once

#include <cstddef>
#include <cstdint>

#include "middle.hpp"

namespace xtape {

/// The bytes of `scratch` for the functions below, if they read `operands` arrays of elements of `element` bytes.
std::size_t softmax_scratch(const Middle& extent, int operands, std::size_t element, int threads);

/// y = exp(x - max x) / sum exp(x - max x).
template <class T>
void softmax(const T* x, T* y, const Middle& extent, void* scratch, int threads);

/// y = x - max x - log sum exp(x - max x).
template <class T>
void log_softmax(const T* x, T* y, const Middle& extent, void* scratch, int threads);

/// dx = scale * y * (dy - sum(dy * y)).
template <class T>
void softmax_grad(const T* y, const T* dy, T* dx, T scale, const Middle& extent, void* scratch, int threads);

/// dx = dy - exp(y) * sum(dy).
template <class T>
void log_softmax_grad(const T* y, const T* dy, T* dx, const Middle& extent, void* scratch, int threads);

/// y = softmax(scale * x) along the last axis, with -inf for x where `mask` is true. Both layouts have the same shape
/// and any strides; y is dense.
template <class T>
void masked_softmax(const T* x, const Layout& x_layout, T scale, const bool* mask, const Layout& mask_layout, T* y,
                    int threads);

}  // namespace xtape
