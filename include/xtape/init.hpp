/// Initial values of parameters, by the names that definitions use ("init"). The numbers are a function of the seed,
/// the name of the parameter and the element: they depend neither on other parameters nor on the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// How a new parameter gets its elements. Made by the functions of namespace init, or from a number, which is every
/// element.
struct Initialiser {
  /// Settings by name. NaN stands for what the shape determines.
  using Settings = std::vector<std::pair<std::string, double>>;

  Initialiser() = default;  ///< Zeros.
  Initialiser(std::string kind, Settings given) : name(std::move(kind)), settings(std::move(given)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Initialiser(T value)  // NOLINT: converts by intent
      : name("constant"), settings{{"value", static_cast<double>(value)}} {}

  std::string name = "zeros";  ///< zeros, ones, constant, normal, uniform, glorot_uniform, …
  Settings settings;           ///< Those that are given; others have their defaults.
  Array values;                ///< For init::from: the elements; else empty.
};

/// Fills `array` (float32 or float64; float32 gets the float64 numbers, rounded) with the numbers of (seed, name).
/// Throws Error for an unknown initialiser or setting, ShapeError for a shape that it cannot fill, DtypeError for
/// another dtype.
void initialise(Array& array, const Initialiser& initialiser, std::uint64_t seed, const std::string& name);

/// Each function gives an initialiser. A fan is the number of elements that one output is computed from (fan_in), or
/// that one input contributes to (fan_out). The layers of namespace nn give their own. Else, as in Keras, the last axis
/// is the output, the one before it the input, and all axes before that multiply both. 0: as just said.
namespace init {

Initialiser zeros();
Initialiser ones();
Initialiser constant(double value);
Initialiser normal(double std = 1);
Initialiser normal(double mean, double std);
/// Normal numbers, drawn again beyond two standard deviations; `std` is that before the truncation.
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
/// `gain` times orthonormal rows or columns, whichever are fewer; the axes before the last together are the rows (Saxe
/// et al., 2014).
Initialiser orthogonal(double gain = 1);
/// `gain` where the indices of the last two axes are equal, else 0. Needs two axes.
Initialiser identity(double gain = 1);
/// These elements, of the parameter's shape and dtype. Copies them.
Initialiser from(const ArrayView& values);

// The names of PyTorch and NumPy.
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
