/// The functions of this layer, compiled for several instruction sets. Higher layers call them only through
/// `kernels()`. The functions themselves are visible only within one set (src/kernels/meson.build).
#pragma once

#include <string>
#include <tuple>

#include "base/system/instruction_set.hpp"
#include "kernels/elements/copy.hpp"
#include "kernels/elements/elementwise.hpp"
#include "kernels/math/functions.hpp"
#include "kernels/products/product.hpp"
#include "kernels/reductions/reduce.hpp"
#include "kernels/table/choices.hpp"
#include "kernels/table/kernel_form.hpp"
#include "kernels/table/update.hpp"

namespace xtape {

/// Functions of a float type T that are not kernels of ops.
template <class T>
struct FloatFunctions {
  decltype(&xtape::sgd_update<T>) sgd_update = &xtape::sgd_update<T>;
  decltype(&xtape::adam_update<T>) adam_update = &xtape::adam_update<T>;
  decltype(&xtape::adam_update_bytes<T>) adam_update_bytes = &xtape::adam_update_bytes<T>;
  decltype(&xtape::lion_update<T>) lion_update = &xtape::lion_update<T>;
  decltype(&xtape::rmsprop_update<T>) rmsprop_update = &xtape::rmsprop_update<T>;
  decltype(&xtape::factored_row<T>) factored_row = &xtape::factored_row<T>;
  decltype(&xtape::combine<T>) combine = &xtape::combine<T>;
  decltype(&xtape::add_squares<T>) add_squares = &xtape::add_squares<T>;
  decltype(&xtape::square_sum<T>) square_sum = &xtape::square_sum<T>;
  decltype(&xtape::add_arrays<T>) add_arrays = &xtape::add_arrays<T>;
  decltype(&xtape::greatest<T>) greatest = &xtape::greatest<T>;
  decltype(&xtape::has_odd<T>) has_odd = &xtape::has_odd<T>;
  decltype(&xtape::first_above<T>) first_above = &xtape::first_above<T>;
  decltype(&xtape::log_sum_exp<T>) log_sum_exp = &xtape::log_sum_exp<T>;
  decltype(&xtape::weights_of<T>) weights_of = &xtape::weights_of<T>;
  decltype(&xtape::sum_of_weights<T>) sum_of_weights = &xtape::sum_of_weights<T>;
};

struct Kernels {
  /// Return the kernel or the tile function of the op of this name. Both throw Error if there is none.
  Kernel (*make)(const std::string& op, const KernelForm& form);
  TileFunction (*make_tile)(const std::string& op, const KernelForm& form);
  decltype(&xtape::make_joint_loop) make_joint_loop;
  decltype(&xtape::make_copy) make_copy;
  decltype(&xtape::make_fill) make_fill;
  decltype(&xtape::make_product) make_product;
  decltype(&xtape::make_row_sum) make_row_sum;
  bool fuses;  ///< Whether they multiply and add with one rounding (has_fma).
  std::tuple<FloatFunctions<float>, FloatFunctions<double>> functions = {};
  NumberFunctions numbers = {};

  /// The functions of the type T: `of<float>()`.
  template <class T>
  const FloatFunctions<T>& of() const {
    return std::get<FloatFunctions<T>>(functions);
  }
};

/// Returns the functions for instruction_set().
const Kernels& kernels();

}  // namespace xtape
