/// The table of ONNX operators: how each is recorded with xtape's ops.
#pragma once

#include <string>
#include <vector>

#include "node_call.hpp"

namespace xtape::onnx {

/// Records a call and returns its outputs; those at the end that the node does not name may be missing.
using Function = Vars (*)(NodeCall& node);

struct Operator {
  const char* name;
  Function function;
};
using Operators = std::vector<Operator>;

// A function for each family, in the file of its name.
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

/// The function of an operator; null if xtape lacks it.
Function find_operator(const std::string& name);
/// All names, in alphabetical order.
std::vector<std::string> operator_names();

}  // namespace xtape::onnx
