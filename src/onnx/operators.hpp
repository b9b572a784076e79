/// The table of ONNX operators. It specifies how to record each operator with xtape's ops.
#pragma once

#include <string>
#include <vector>

#include "onnx/node_call.hpp"

namespace xtape::onnx {

/// Records a call and returns its outputs. Trailing outputs that the node does not name may be missing.
using Function = Vars (*)(NodeCall& node);

/// For Operator::like: the function determines the dtype of the first output.
constexpr std::size_t own = static_cast<std::size_t>(-1);

struct Operator {
  const char* name;
  Function function;
  /// The input whose dtype the first output has. The output is converted if the function returns another dtype.
  std::size_t like = 0;
  bool can_leave_range = false;  ///< Whether integers of the first output must be wrapped to the range of their type.
};
constexpr bool wraps = true;  ///< For Operator::can_leave_range.
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

/// Returns an operator, or null if xtape lacks it.
const Operator* find_operator(const std::string& name);
/// Returns all names in alphabetical order.
std::vector<std::string> operator_names();

}  // namespace xtape::onnx
