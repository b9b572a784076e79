/// Weights stored as bfloat16, float16 or int8, for inference.
#pragma once

#include <map>
#include <string>

#include "xtape/model.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

/// Returns the name of the array with the scales of a weight stored as int8.
inline std::string scale_name(const std::string& weight) {
  return weight + ".scale";
}

/// Returns the var of a weight on `tape`, converted to `dtype` from any storage dtype.
Var weight_on(Tape& tape, const Store& store, const std::string& name, Dtype dtype);

/// Returns the weights of two or more axes that all functions of the model use only as operands of products and in
/// `take`. Each weight comes with the axes along which its scales may vary: the axes that no product sums over, or axis
/// 0 if no product sums over any axis.
std::map<std::string, Axes> narrowable_weights(const Model& model);

/// Returns the shape of the scales of a weight: its sizes along `channels`, and 1 along all other axes.
Shape shape_of_scale(const Shape& weight, const Axes& channels);

/// Converts `weight` from another float dtype to bfloat16 or float16. Returns an empty array if the conversion would
/// make a finite number infinite.
Array as_half(const Array& weight, Dtype dtype);

/// A quantised weight. `numbers` is round(weight / scale).
struct Quantised {
  Array numbers;  ///< int8.
  Array scale;    ///< Has the weight's dtype.
};
/// Quantises `weight`. Each index of the axes `channels` has its own scale, which is the largest magnitude there / 127.
/// The scales have size 1 along all other axes. Throws Error if a number is not finite. The message names the weight.
Quantised as_int8(const std::string& name, const Array& weight, const Axes& channels);

}  // namespace xtape::model
