// Replaces ops by their bodies or expansions.
#include <algorithm>

#include "passes.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
bool must_expand(const Op& op) { return op.expand && !op.lowering.runs(); }

bool expands(const Node& node, Expand which) {
  if (which == Expand::all) return static_cast<bool>(node.op->expand);
  return must_expand(*node.op) || (which == Expand::fused && node.fused && node.op->expand);
}

bool any_expands(const Program& program, Expand which) {
  return std::any_of(program.order.begin(), program.order.end(),
                     [&](std::int32_t index) { return expands(program.node(index), which); });
}
}  // namespace

void expand_node(Rewriter& rewriter, std::int32_t index) {
  const Node& node = rewriter.program().node(index);
  const auto in_site = rewriter.tape().in_site(node.site);
  const Vars outputs = node.op->expand({*node.op, node, rewriter.tape(), rewriter.vars(node.inputs)});
  // An expansion may compute in a wider dtype: operands of int8 are promoted to int32.
  for (std::size_t k = 0; k < outputs.size(); ++k)
    rewriter.replace({index, static_cast<std::int32_t>(k)}, cast(outputs[k], node.outputs[k].dtype));
  if (node.body)
    rewriter.close_in_new_region(index);
  else
    rewriter.close(index);
}

void expand_pass(Program& program, Expand which) {
  for (int depth = 0; any_expands(program, which); ++depth) {
    if (depth > 100) throw Error("the expansions of ops do not end: the expansion of some op contains that op");
    Rewriter rewriter(program);
    for (const std::int32_t index : program.order)
      if (expands(program.node(index), which))
        expand_node(rewriter, index);
      else
        rewriter.keep(index);
    rewriter.finish();
  }
}

}  // namespace xtape
