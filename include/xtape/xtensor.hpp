/// Includes xtensor, and makes xt::xarray what Array::to, ArrayView::to and Player::value return. No other header
/// includes xtensor. Version 0.26 of xtensor moved its headers into subfolders.
#pragma once

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xtensor.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>
#endif

namespace xtape {

template <class T>
struct XtensorOf {
  using type = xt::xarray<T>;
};

}  // namespace xtape
