/// Shared helpers of the norms of channels, for arrays [batch, channels, ...] and one number per channel.
#pragma once

#include <string>
#include <vector>

#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

/// Returns the shape. Throws if it does not have a batch and channels.
inline const Shape& with_channels(const Shape& x) {
  if (x.size() < 2) throw ShapeError("needs x with a batch and channels as its first axes, got " + to_string(x));
  return x;
}

/// Throws ShapeError, with the name `name`, unless `numbers` has one number for each channel of x.
inline void require_one_each(const char* name, const Shape& numbers, const Shape& x) {
  const std::int64_t channels = with_channels(x)[1];
  if (numbers != Shape{channels})
    throw ShapeError(std::string(name) + " must have one number for each of the " + std::to_string(channels) +
                     " channels of x, " + to_string(x) + ", got " + to_string(numbers));
}

/// Returns one number for each channel of x as an array that broadcasts with x.
inline Var for_channels(const Var& numbers, const Var& x) {
  Shape shape = Shape::filled(x.rank() - 1, 1);
  shape[0] = x.shape()[1];
  return reshape(numbers, shape);
}

inline AttributeSpec epsilon_of_channels() {
  return {"epsilon", AttributeType::number, "Added to the variance, inside the square root.", 1e-5};
}

/// Records a norm of the operands with a weight and a bias. Both may be empty.
Vars record_channel_norm(const Op& op, std::vector<Operand> operands, const Var& weight, const Var& bias,
                         const Attributes& attributes);

}  // namespace xtape
