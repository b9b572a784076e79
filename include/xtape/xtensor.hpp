/// Includes xtensor. Array::to, ArrayView::to and Player::value then return xt::xarray, and `tensor` returns xtensor's
/// adaptors. No other header includes xtensor. Version 0.26 of xtensor moved its headers into subfolders.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>
#endif

#include "xtape/array.hpp"

namespace xtape {

template <class T>
struct XtensorOf {
  using Element = std::remove_const_t<T>;
  using Sizes = std::vector<std::size_t>;
  using Elements = xt::xbuffer_adaptor<T*, xt::no_ownership, std::allocator<Element>>;
  using type = xt::xarray<Element>;
  using view = xt::xarray_adaptor<Elements, xt::layout_type::row_major, Sizes>;

  static view over(T* data, const Shape& shape) {
    return view(Elements(std::move(data), static_cast<std::size_t>(count_of(shape))),
                Sizes(shape.begin(), shape.end()));
  }
};

}  // namespace xtape
