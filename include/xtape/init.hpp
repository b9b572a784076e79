/// Initial values of parameters, under the names that definitions use ("init"). The seed, the name of the parameter and
/// the index of the element determine each number. Other parameters and the number of threads have no effect.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// The rule for the elements of a new parameter. The functions of namespace init return initialisers. A number converts
/// to an initialiser that sets every element to this number.
struct Initialiser {
  /// Settings by name. NaN means that the shape determines the value.
  using Settings = std::vector<std::pair<std::string, double>>;

  Initialiser() = default;  ///< Zeros.
  Initialiser(std::string kind, Settings given) : name(std::move(kind)), settings(std::move(given)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Initialiser(T value)  // NOLINT: converts by intent
      : name("constant"), settings{{"value", static_cast<double>(value)}} {}

  std::string name = "zeros";  ///< zeros, ones, constant, normal, uniform, glorot_uniform, …
  Settings settings;           ///< The given settings. Others have their defaults.
  Array values;                ///< For init::from, the elements. Otherwise empty.
};

/// Fills `array` (float32 or float64) with the numbers of (seed, name). float32 arrays get the rounded float64 numbers.
/// Throws Error if the initialiser or a setting is unknown, ShapeError if it cannot fill the shape, DtypeError if the
/// dtype is not supported.
void initialise(Array& array, const Initialiser& initialiser, std::uint64_t seed, const std::string& name);

/// Each function returns an initialiser. fan_in is the number of elements that one output is computed from. fan_out is
/// the number of outputs that one input contributes to. The layers of namespace nn set their own fans. A fan of 0 means
/// the default, which follows Keras: the last axis is the output, the axis before it is the input, and the sizes of all
/// other axes multiply both fans.
namespace init {

Initialiser zeros();
Initialiser ones();
Initialiser constant(double value);
Initialiser normal(double std = 1);
Initialiser normal(double mean, double std);
/// Normal samples, redrawn beyond two standard deviations. `std` is the standard deviation before the truncation.
Initialiser truncated_normal(double std = 1);
Initialiser truncated_normal(double mean, double std);
Initialiser uniform(double low = 0, double high = 1);
/// Within ± gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
Initialiser glorot_uniform(double gain = 1, double fan_in = 0, double fan_out = 0);
/// std = gain sqrt(2 / (fan_in + fan_out)).
Initialiser glorot_normal(double gain = 1, double fan_in = 0, double fan_out = 0);
/// Within ± gain sqrt(6 / fan_in) (He et al., 2015).
Initialiser he_uniform(double gain = 1, double fan_in = 0);
/// std = gain sqrt(2 / fan_in).
Initialiser he_normal(double gain = 1, double fan_in = 0);
/// Within ± gain sqrt(3 / fan_in).
Initialiser lecun_uniform(double gain = 1, double fan_in = 0);
/// std = gain sqrt(1 / fan_in) (LeCun et al., 1998).
Initialiser lecun_normal(double gain = 1, double fan_in = 0);
/// `gain` times orthonormal rows or columns, whichever are fewer. All axes before the last together form the rows (Saxe
/// et al., 2014).
Initialiser orthogonal(double gain = 1);
/// `gain` where the indices of the last two axes are equal, otherwise 0. Needs two axes.
Initialiser identity(double gain = 1);
/// Copies the given elements, which must have the parameter's shape and dtype.
Initialiser from(const ArrayView& values);

// Aliases with the names of PyTorch and NumPy.
inline Initialiser xavier_uniform(double gain = 1) {  ///< PyTorch's name of glorot_uniform.
  return glorot_uniform(gain);
}
inline Initialiser xavier_normal(double gain = 1) {  ///< PyTorch's name of glorot_normal.
  return glorot_normal(gain);
}
inline Initialiser kaiming_uniform(double gain = 1) {  ///< PyTorch's name of he_uniform.
  return he_uniform(gain);
}
inline Initialiser kaiming_normal(double gain = 1) {  ///< PyTorch's name of he_normal.
  return he_normal(gain);
}
inline Initialiser eye(double gain = 1) {  ///< NumPy's name of identity.
  return identity(gain);
}

}  // namespace init
}  // namespace xtape
