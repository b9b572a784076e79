/// Weights stored as bfloat16, float16 or int8, for inference.
#pragma once

#include <map>
#include <string>

#include "xtape/model.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

/// The name of the array that holds the scales of a weight stored as int8.
inline std::string scale_name(const std::string& weight) {
  return weight + ".scale";
}

/// The var of a weight on `tape`, as `dtype`, however the weight is stored.
Var weight_on(Tape& tape, const Store& store, const std::string& name, Dtype dtype);

/// The weights of two and more axes that all functions of the model use only as factors of products and in `take`, each
/// with the axes along which its scales may vary: those that no product sums, or axis 0 if that is every axis.
std::map<std::string, Axes> narrowable_weights(const Model& model);

/// The shape of the scales of a weight: its sizes along `channels`, 1 along the other axes.
Shape shape_of_scale(const Shape& weight, const Axes& channels);

/// `weight`, of another float dtype, as a half; no array if only then a number is infinite.
Array as_half(const Array& weight, Dtype dtype);

/// q = round(weight / scale), with one scale for each index of the axes `channels`: the largest magnitude / 127. The
/// scales have size 1 along the other axes. Throws Error, which has the name, if a number is not finite.
struct Quantised {
  Array numbers;  ///< int8.
  Array scale;    ///< Has the weight's dtype.
};
Quantised as_int8(const std::string& name, const Array& weight, const Axes& channels);

}  // namespace xtape::model
