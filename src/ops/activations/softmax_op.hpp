/// The common definition of softmax, log_softmax and their gradients: ops along one axis on float arrays of the same
/// shape.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/recording/batching.hpp"
#include "ops/recording/op_helpers.hpp"

namespace xtape {

/// The output has the type of the first input and may overwrite any input.
inline Op along_axis_op(const std::string& name, const std::string& doc, std::vector<InputSpec> inputs) {
  Op op;
  op.name = name;
  op.doc = doc;
  const std::size_t operands = inputs.size();
  op.inputs = std::move(inputs);
  op.attributes = {{"axis", AttributeType::integer, "The axis along which softmax sums to 1.", std::int64_t{-1}}};
  op.shape = [](const OpCall& call) {
    axis_of(call);
    for (std::size_t i = 1; i < call.inputs.size(); ++i) require_shape(call, i, call.shape(0), "that of y");
    return std::vector<ValueType>{call.inputs[0]};
  };
  op.batch = batch_along();
  op.lowering.kernel = kernel_by_name;
  for (std::size_t i = operands; i-- > 0;) op.lowering.overwrites.push_back(static_cast<int>(i));
  return op;
}

}  // namespace xtape
