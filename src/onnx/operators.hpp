/// The table of ONNX operators. It specifies how to record each operator with xtape's ops.
#pragma once

#include <string>
#include <vector>

#include "node_call.hpp"

namespace xtape::onnx {

/// Records a call and returns its outputs. Trailing outputs that the node does not name may be missing.
using Function = Vars (*)(NodeCall& node);

struct Operator {
  const char* name;
  Function function;
};
using Operators = std::vector<Operator>;

// There is one function for each family, in the file of the same name.
const Operators& attention_operators();
const Operators& elementwise_operators();
const Operators& constant_operators();
const Operators& control_operators();
const Operators& reduction_operators();
const Operators& shape_operators();
const Operators& indexing_operators();
const Operators& product_operators();
const Operators& norm_operators();
const Operators& recurrent_operators();
const Operators& resampling_operators();
const Operators& scattering_operators();

/// Returns the function of an operator, or null if xtape lacks the operator.
Function find_operator(const std::string& name);
/// Returns all names in alphabetical order.
std::vector<std::string> operator_names();

}  // namespace xtape::onnx
