/// The functions of this layer, compiled for several instruction sets. The layers above call them through `kernels()`,
/// and only through it: the functions themselves are visible within one set only (src/kernels/meson.build).
#pragma once

#include <cstdint>
#include <tuple>

#include "add.hpp"
#include "argmax.hpp"
#include "attention.hpp"
#include "choices.hpp"
#include "copy.hpp"
#include "cross_entropy.hpp"
#include "cumsum.hpp"
#include "draws.hpp"
#include "elementwise.hpp"
#include "fill.hpp"
#include "indexing.hpp"
#include "instruction_set.hpp"
#include "normalise.hpp"
#include "products/product_cross_entropy.hpp"
#include "products/product.hpp"
#include "reduce.hpp"
#include "rounding.hpp"
#include "softmax.hpp"
#include "triangle.hpp"
#include "update.hpp"

namespace xtape {

/// Functions of a float type T.
template <class T>
struct FloatKernels {
  decltype(&xtape::softmax<T>) softmax = &xtape::softmax<T>;
  decltype(&xtape::log_softmax<T>) log_softmax = &xtape::log_softmax<T>;
  decltype(&xtape::softmax_grad<T>) softmax_grad = &xtape::softmax_grad<T>;
  decltype(&xtape::log_softmax_grad<T>) log_softmax_grad = &xtape::log_softmax_grad<T>;
  decltype(&xtape::layer_norm<T>) layer_norm = &xtape::layer_norm<T>;
  decltype(&xtape::rms_norm<T>) rms_norm = &xtape::rms_norm<T>;
  decltype(&xtape::norm_grad<T>) norm_grad = &xtape::norm_grad<T>;
  decltype(&xtape::drop<T>) drop = &xtape::drop<T>;
  decltype(&xtape::sgd_update<T>) sgd_update = &xtape::sgd_update<T>;
  decltype(&xtape::adam_update<T>) adam_update = &xtape::adam_update<T>;
  decltype(&xtape::square_sum<T>) square_sum = &xtape::square_sum<T>;
  decltype(&xtape::add_arrays<T>) add_arrays = &xtape::add_arrays<T>;
  decltype(&xtape::compare_rounded<T>) compare_rounded = &xtape::compare_rounded<T>;
  decltype(&xtape::greatest<T>) greatest = &xtape::greatest<T>;
  decltype(&xtape::has_odd<T>) has_odd = &xtape::has_odd<T>;
  decltype(&xtape::first_above<T>) first_above = &xtape::first_above<T>;
  decltype(&xtape::log_sum_exp<T>) log_sum_exp = &xtape::log_sum_exp<T>;
  decltype(&xtape::weights_of<T>) weights_of = &xtape::weights_of<T>;
  decltype(&xtape::sum_of_weights<T>) sum_of_weights = &xtape::sum_of_weights<T>;
};

/// Functions of a float type T and an integer type of targets.
template <class T, class Target>
struct LossKernels {
  decltype(&xtape::row_losses<T, Target>) row_losses = &xtape::row_losses<T, Target>;
  decltype(&xtape::sum_losses<T, Target>) sum_losses = &xtape::sum_losses<T, Target>;
  decltype(&xtape::cross_entropy_grad<T, Target>) cross_entropy_grad = &xtape::cross_entropy_grad<T, Target>;
};

/// Functions of an integer type of indices or targets.
template <class Index>
struct IndexKernels {
  decltype(&xtape::check_targets<Index>) check_targets = &xtape::check_targets<Index>;
  decltype(&xtape::first_stray<Index>) first_stray = &xtape::first_stray<Index>;
  decltype(&xtape::take_slices<Index>) take_slices = &xtape::take_slices<Index>;
  decltype(&xtape::take_elements<Index>) take_elements = &xtape::take_elements<Index>;
};

/// Functions of a number type T and an integer type of indices.
template <class T, class Index>
struct PickKernels {
  decltype(&xtape::add_slices<T, Index>) add_slices = &xtape::add_slices<T, Index>;
  decltype(&xtape::add_elements<T, Index>) add_elements = &xtape::add_elements<T, Index>;
};

struct Kernels {
  decltype(&xtape::make_product) make_product = &xtape::make_product;
  decltype(&xtape::make_attention) make_attention = &xtape::make_attention;
  decltype(&xtape::make_attention_grad) make_attention_grad = &xtape::make_attention_grad;
  decltype(&xtape::make_product_cross_entropy) make_product_cross_entropy = &xtape::make_product_cross_entropy;
  decltype(&xtape::make_reduction) make_reduction = &xtape::make_reduction;
  decltype(&xtape::make_element_loop) make_element_loop = &xtape::make_element_loop;
  decltype(&xtape::make_copy) make_copy = &xtape::make_copy;
  decltype(&xtape::make_fill) make_fill = &xtape::make_fill;
  decltype(&xtape::softmax_scratch) softmax_scratch = &xtape::softmax_scratch;
  decltype(&xtape::norm_grad_scratch) norm_grad_scratch = &xtape::norm_grad_scratch;
  decltype(&xtape::argmax_kernel) argmax = &xtape::argmax_kernel;
  decltype(&xtape::top_k_kernel) top_k = &xtape::top_k_kernel;
  decltype(&xtape::top_k_scratch) top_k_scratch = &xtape::top_k_scratch;
  decltype(&xtape::running_sum) running_sum = &xtape::running_sum;
  decltype(&xtape::draw_uniform) draw_uniform = &xtape::draw_uniform;
  decltype(&xtape::draw_bernoulli) draw_bernoulli = &xtape::draw_bernoulli;
  decltype(&xtape::draw_categorical) draw_categorical = &xtape::draw_categorical;
  decltype(&xtape::fill_with) fill_with = &xtape::fill_with;
  decltype(&xtape::fill_indices) fill_indices = &xtape::fill_indices;
  decltype(&xtape::fill_diagonal) fill_diagonal = &xtape::fill_diagonal;
  decltype(&xtape::copy_triangle) copy_triangle = &xtape::copy_triangle;

  /// Those of the given types: `of<float>()`.
  template <class T>
  const FloatKernels<T>& of() const {
    return std::get<FloatKernels<T>>(floats);
  }
  template <class T, class Target>
  const LossKernels<T, Target>& losses_of() const {
    return std::get<LossKernels<T, Target>>(losses);
  }
  template <class Index>
  const IndexKernels<Index>& indices_of() const {
    return std::get<IndexKernels<Index>>(indices);
  }
  template <class T, class Index>
  const PickKernels<T, Index>& picks_of() const {
    return std::get<PickKernels<T, Index>>(picks);
  }

  std::tuple<FloatKernels<float>, FloatKernels<double>> floats;
  std::tuple<LossKernels<float, std::int32_t>, LossKernels<float, std::int64_t>, LossKernels<double, std::int32_t>,
             LossKernels<double, std::int64_t>>
      losses;
  std::tuple<IndexKernels<std::int32_t>, IndexKernels<std::int64_t>> indices;
  std::tuple<PickKernels<float, std::int32_t>, PickKernels<float, std::int64_t>, PickKernels<double, std::int32_t>,
             PickKernels<double, std::int64_t>, PickKernels<std::int32_t, std::int32_t>,
             PickKernels<std::int32_t, std::int64_t>, PickKernels<std::int64_t, std::int32_t>,
             PickKernels<std::int64_t, std::int64_t>>
      picks;
};

/// The functions for instruction_set().
const Kernels& kernels();

}  // namespace xtape
