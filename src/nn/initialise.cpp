#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
#include "kernels/random/named_draws.hpp"
#include "nn/layers.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
using Settings = Initialiser::Settings;
constexpr double from_shape = std::numeric_limits<double>::quiet_NaN();

const std::map<std::string, Settings>& table() {
  static const Settings fans = {{"gain", 1}, {"fan_in", from_shape}, {"fan_out", from_shape}};
  static const Settings fan_in = {{"gain", 1}, {"fan_in", from_shape}};
  static const std::map<std::string, Settings> rows = {
      {"zeros", {}},
      {"ones", {}},
      {"constant", {{"value", 0}}},
      {"normal", {{"mean", 0}, {"std", 1}}},
      {"truncated_normal", {{"mean", 0}, {"std", 1}}},
      {"uniform", {{"low", 0}, {"high", 1}}},
      {"glorot_uniform", fans},
      {"glorot_normal", fans},
      {"he_uniform", fan_in},
      {"he_normal", fan_in},
      {"lecun_uniform", fan_in},
      {"lecun_normal", fan_in},
      {"orthogonal", {{"gain", 1}}},
      {"identity", {{"gain", 1}}},
  };
  return rows;
}

/// Fills `array` with pairs of numbers. pair(i) returns the elements 2 i and 2 i + 1.
template <class T, class Pair>
void fill_pairs(Array& array, const Pair& pair) {
  T* out = array.as<T>();
  const std::int64_t count = array.count();
  parallel_for(thread_count(), (count + 1) / 2, 4096, [&](std::int64_t begin, std::int64_t finish) {
    for (std::int64_t i = begin; i < finish; ++i) {
      const auto [first, second] = pair(static_cast<std::uint64_t>(i));
      out[2 * i] = static_cast<T>(first);
      if (2 * i + 1 < count) out[2 * i + 1] = static_cast<T>(second);
    }
  });
}

struct Fans {
  double in, out;
};

/// Returns fans by the convention of Keras: the last axis is the output, the second last axis is the input, and all
/// earlier axes form the receptive field.
Fans fans_of(const Shape& shape) {
  if (shape.empty()) return {1, 1};
  if (shape.size() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double field = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) field *= static_cast<double>(shape[i]);
  return {field * static_cast<double>(shape[shape.size() - 2]), field * static_cast<double>(shape.back())};
}

/// The sum of products, in four lanes whatever the width of a register is.
double dot(const double* a, const double* b, std::int64_t count) {
  double lanes[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (std::int64_t lane = 0; lane < 4; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i) lanes[0] += a[i] * b[i];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/// y += factor * x
void add_multiple(double factor, const double* x, double* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

/// Returns a matrix whose rows are orthonormal or, if there are more rows than columns, whose columns are orthonormal.
/// All axes except the last are flattened into rows. Applies Gram-Schmidt twice to normal random numbers, which gives a
/// uniformly (Haar) distributed orthonormal matrix.
std::vector<double> orthogonal_values(const Shape& shape, const Draws& draws) {
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  const std::int64_t rows = count_of(shape) / columns;
  const std::int64_t few = std::min(rows, columns);
  const std::int64_t length = std::max(rows, columns);
  std::vector<double> basis(static_cast<std::size_t>(few * length));  // [few, length], one vector after the other
  for (std::size_t i = 0; i < basis.size(); ++i) basis[i] = draws.normal(i).first;
  const auto vector = [&](std::int64_t i) { return &basis[i * length]; };
  for (int pass = 0; pass < 2; ++pass)
    for (std::int64_t i = 0; i < few; ++i) {
      double* made = vector(i);
      const double norm = std::sqrt(dot(made, made, length));
      for (std::int64_t k = 0; k < length; ++k) made[k] /= norm;
      const std::int64_t grain = 1 + (1 << 15) / length;
      parallel_for(thread_count(), few - i - 1, grain, [&](std::int64_t begin, std::int64_t finish) {
        for (std::int64_t j = i + 1 + begin; j < i + 1 + finish; ++j) {
          double* other = vector(j);
          add_multiple(-dot(made, other, length), made, other, length);
        }
      });
    }
  if (rows < columns) return basis;
  std::vector<double> turned(basis.size());
  for (std::int64_t i = 0; i < few; ++i)
    for (std::int64_t k = 0; k < length; ++k) turned[k * few + i] = vector(i)[k];
  return turned;
}

template <class T>
void fill_identity(Array& array, double gain) {
  const std::int64_t columns = array.shape().back(), rows = array.shape()[array.shape().size() - 2];
  T* out = array.as<T>();
  for (std::int64_t i = 0; i < array.count(); ++i)
    out[i] = static_cast<T>(i % columns == i / columns % rows ? gain : 0);
}

template <class T>
void fill(Array& array, const Initialiser& initialiser, const Draws& draws) {
  const std::string& name = initialiser.name;
  const Fans fans = fans_of(array.shape());
  const auto setting = [&](const char* wanted) {
    double value = from_shape;
    for (const auto& [each, initial] : *initialiser_settings(name))
      if (each == wanted) value = initial;
    for (const auto& [each, given] : initialiser.settings)
      if (each == wanted) value = given;
    return value;
  };
  const auto fan = [&](const char* wanted, double otherwise) {
    const double given = setting(wanted);
    return std::isnan(given) ? otherwise : given;
  };
  const auto normals = [&](double mean, double std) {
    fill_pairs<T>(array, [&](std::uint64_t i) {
      const auto [a, b] = draws.normal(i);
      return std::pair{mean + std * a, mean + std * b};
    });
  };
  const auto uniforms = [&](double low, double high) {
    fill_pairs<T>(array, [&](std::uint64_t i) {
      const auto [a, b] = draws.uniform(i);
      return std::pair{low + (high - low) * a, low + (high - low) * b};
    });
  };
  const auto within = [&](double limit) { uniforms(-limit, limit); };
  const auto constant = [&](double value) { std::fill_n(array.as<T>(), array.count(), static_cast<T>(value)); };
  const auto of_both = [&](double factor) {
    return setting("gain") * std::sqrt(factor / (fan("fan_in", fans.in) + fan("fan_out", fans.out)));
  };
  const auto of_fan_in = [&](double factor) { return setting("gain") * std::sqrt(factor / fan("fan_in", fans.in)); };
  const std::map<std::string, std::function<void()>> kinds = {
      {"zeros", [&] { constant(0); }},
      {"ones", [&] { constant(1); }},
      {"constant", [&] { constant(setting("value")); }},
      {"normal", [&] { normals(setting("mean"), setting("std")); }},
      {"truncated_normal",
       [&] {
         fill_pairs<T>(array, [&, mean = setting("mean"), std = setting("std")](std::uint64_t i) {
           return std::pair{mean + std * draws.truncated(2 * i), mean + std * draws.truncated(2 * i + 1)};
         });
       }},
      {"uniform", [&] { uniforms(setting("low"), setting("high")); }},
      {"glorot_uniform", [&] { within(of_both(6)); }},
      {"glorot_normal", [&] { normals(0, of_both(2)); }},
      {"he_uniform", [&] { within(of_fan_in(6)); }},
      {"he_normal", [&] { normals(0, of_fan_in(2)); }},
      {"lecun_uniform", [&] { within(of_fan_in(3)); }},
      {"lecun_normal", [&] { normals(0, of_fan_in(1)); }},
      {"orthogonal",
       [&] {
         const std::vector<double> values = orthogonal_values(array.shape(), draws);
         std::transform(values.begin(), values.end(), array.as<T>(),
                        [gain = setting("gain")](double value) { return static_cast<T>(gain * value); });
       }},
      {"identity", [&] { fill_identity<T>(array, setting("gain")); }},
  };
  kinds.at(name)();
}

void check_initialiser(const Initialiser& initialiser, const Shape& shape) {
  const Settings* known = initialiser_settings(initialiser.name);
  if (known == nullptr)
    throw Error("there is no initialiser '" + initialiser.name + "'" +
                did_you_mean(initialiser.name, initialiser_names()));
  std::vector<std::string> names;
  for (const auto& setting : *known) names.push_back(setting.first);
  for (const auto& setting : initialiser.settings)
    if (!contains(names, setting.first))
      throw Error("the initialiser " + initialiser.name + " has no setting '" + setting.first + "'" +
                  did_you_mean(setting.first, names));
  if (initialiser.name == "identity" && shape.size() < 2)
    throw ShapeError("the initialiser identity needs a matrix, got shape " + to_string(shape));
}
}  // namespace

const Settings* initialiser_settings(const std::string& name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : &found->second;
}

std::vector<std::string> initialiser_names() {
  std::vector<std::string> names;
  for (const auto& row : table()) names.push_back(row.first);
  return names;
}

std::string to_string(const Initialiser& initialiser) {
  std::string list;
  for (const auto& [name, value] : initialiser.settings) {
    char digits[32];
    const auto written = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6);
    list += (list.empty() ? "" : ", ") + name + "=" + std::string(digits, written.ptr);
  }
  return initialiser.name + (list.empty() ? "" : "(" + list + ")");
}

void initialise(Array& array, const Initialiser& initialiser, std::uint64_t seed, const std::string& name) {
  if (initialiser.values) return array.assign(initialiser.values);
  if (array.dtype() != Dtype::float32 && array.dtype() != Dtype::float64)
    throw DtypeError(std::string("an initialiser makes float32 or float64, not ") + name_of(array.dtype()));
  check_initialiser(initialiser, array.shape());
  if (array.count() == 0) return;
  const Draws draws(seed, name);
  if (array.dtype() == Dtype::float64)
    fill<double>(array, initialiser, draws);
  else
    fill<float>(array, initialiser, draws);
}

namespace init {
namespace {
/// Returns an initialiser that scales with fans. If a fan is 0, the shape of the array determines it.
Initialiser scaled(const char* kind, double gain, double fan_in, double fan_out = 0) {
  Initialiser made(kind, {{"gain", gain}});
  if (fan_in != 0) made.settings.emplace_back("fan_in", fan_in);
  if (fan_out != 0) made.settings.emplace_back("fan_out", fan_out);
  return made;
}
}  // namespace

Initialiser zeros() {
  return {"zeros", {}};
}
Initialiser ones() {
  return {"ones", {}};
}
Initialiser constant(double value) {
  return {"constant", {{"value", value}}};
}
Initialiser normal(double std) {
  return normal(0, std);
}
Initialiser normal(double mean, double std) {
  return {"normal", {{"mean", mean}, {"std", std}}};
}
Initialiser truncated_normal(double std) {
  return truncated_normal(0, std);
}
Initialiser truncated_normal(double mean, double std) {
  return {"truncated_normal", {{"mean", mean}, {"std", std}}};
}
Initialiser uniform(double low, double high) {
  return {"uniform", {{"low", low}, {"high", high}}};
}
Initialiser glorot_uniform(double gain, double fan_in, double fan_out) {
  return scaled("glorot_uniform", gain, fan_in, fan_out);
}
Initialiser glorot_normal(double gain, double fan_in, double fan_out) {
  return scaled("glorot_normal", gain, fan_in, fan_out);
}
Initialiser he_uniform(double gain, double fan_in) {
  return scaled("he_uniform", gain, fan_in);
}
Initialiser he_normal(double gain, double fan_in) {
  return scaled("he_normal", gain, fan_in);
}
Initialiser lecun_uniform(double gain, double fan_in) {
  return scaled("lecun_uniform", gain, fan_in);
}
Initialiser lecun_normal(double gain, double fan_in) {
  return scaled("lecun_normal", gain, fan_in);
}
Initialiser orthogonal(double gain) {
  return {"orthogonal", {{"gain", gain}}};
}
Initialiser identity(double gain) {
  return {"identity", {{"gain", gain}}};
}
Initialiser from(const ArrayView& values) {
  Initialiser made("from", {});
  made.values = Array(values);
  return made;
}
}  // namespace init

}  // namespace xtape
