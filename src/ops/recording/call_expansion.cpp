#include "ops/recording/call_expansion.hpp"

#include <algorithm>

#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Returns whether the op itself computes with floats. If not, its expansion only moves elements or plays a body as
/// recorded.
bool computes(const ExpandCall& call) {
  const Op& op = call.op;
  if (call.node.body || runs_on_any_dtype(op)) return false;
  return op.lowering.runs() ||
         std::ranges::any_of(op.inputs, [](const InputSpec& input) { return input.accept == Accept::floating; });
}
}  // namespace

bool runs_on_any_dtype(const Op& op) {
  const Lowering& lowering = op.lowering;
  return lowering.any_dtype || lowering.casts || lowering.view || lowering.parts || lowering.steps;
}

Vars expansion(const ExpandCall& call) {
  ExpandCall wide = call;
  if (computes(call))
    for (Var& input : wide.inputs)
      if (is_half(input.dtype())) input = cast(input, Dtype::float32);
  Vars results = call.op.expand(wide);
  for (std::size_t k = 0; k < results.size(); ++k) results[k] = cast(results[k], call.node.outputs[k].dtype);
  return results;
}

}  // namespace xtape
