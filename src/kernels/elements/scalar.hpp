/// Dispatches from a dtype known at run time to a C++ scalar type.
#pragma once

#include <cstdint>
#include <type_traits>

#include "xtape/array.hpp"

namespace xtape {

/// Whether `dtype` is only a storage format: bfloat16, float16, int8 or a block format.
inline bool is_narrow(Dtype dtype) {
  return is_half(dtype) || dtype == Dtype::int8 || is_block(dtype);
}
/// The dtype in which kernels compute with elements of `dtype`.
inline Dtype computed_in(Dtype dtype) {
  return is_half(dtype) || is_block(dtype) ? Dtype::float32 : dtype == Dtype::int8 ? Dtype::int32 : dtype;
}

/// Calls f(T{}) with T the C++ scalar of `dtype`, float32 or float64.
template <class F>
auto with_floating(Dtype dtype, const F& f) {
  return dtype == Dtype::float64 ? f(double{}) : f(float{});
}

/// Calls f(Index{}) with the C++ type of indices of `dtype`, int32 or int64.
template <class F>
auto with_index(Dtype dtype, const F& f) {
  return dtype == Dtype::int32 ? f(std::int32_t{}) : f(std::int64_t{});
}

/// Calls f(T{}) with T the C++ scalar of `dtype`: float32, float64, int32 or int64.
template <class F>
auto with_number(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::float32:
      return f(float{});
    case Dtype::float64:
      return f(double{});
    case Dtype::int32:
      return f(std::int32_t{});
    case Dtype::int64:
      return f(std::int64_t{});
    default:
      throw DtypeError(std::string("kernels do not compute with ") + name_of(dtype));
  }
}

/// Calls f(T{}) with T the C++ scalar of `dtype`: bool, or a dtype of with_number.
template <class F>
auto with_scalar(Dtype dtype, const F& f) {
  return dtype == Dtype::boolean ? f(bool{}) : with_number(dtype, f);
}

/// Calls f(N{}) with N the C++ scalar of `dtype`: bfloat16, float16 or int8.
template <class F>
auto with_narrow(Dtype dtype, const F& f) {
  return dtype == Dtype::bfloat16 ? f(bfloat16{}) : dtype == Dtype::float16 ? f(float16{}) : f(std::int8_t{});
}

/// Calls f(T{}) with T the C++ scalar of `dtype`, for kernels that only move or convert elements.
template <class F>
auto with_element(Dtype dtype, const F& f) {
  return is_narrow(dtype) ? with_narrow(dtype, f) : with_scalar(dtype, f);
}

/// The type that loops use to read elements of type T. Compilers do not vectorise loops that read bool.
template <class T>
using ReadAs = std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;

/// The type for computing sums, differences and products of T. Integers wrap, as in NumPy. C++ defines wrapping only
/// for unsigned integers.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

template <class T>
T wrapping_sum(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}

}  // namespace xtape
