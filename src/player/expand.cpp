// Replaces ops by their bodies or expansions.
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
  for (std::size_t i = 0; i < program.tape.size(); ++i)
    if (expands(program.tape.node(i), which)) return true;
  return false;
}
}  // namespace

void expand_node(Rewriter& rewriter, std::int32_t index) {
  const Node& node = rewriter.from().node(index);
  const auto in_site = rewriter.tape().in_site(node.site);
  const Vars outputs = node.op->expand({*node.op, node, rewriter.tape(), rewriter.now(node.inputs)});
  // An expansion may compute in a wider dtype: operands of int8 are promoted to int32.
  for (std::size_t k = 0; k < outputs.size(); ++k)
    rewriter.replace({index, static_cast<std::int32_t>(k)}, cast(outputs[k], node.outputs[k].dtype));
  if (node.body)
    rewriter.close_in_new_region(index);
  else
    rewriter.close(index);
}

Program expand_pass(Program program, Expand which) {
  Program current = std::move(program);
  for (int depth = 0; any_expands(current, which); ++depth) {
    if (depth > 100) throw Error("the expansions of ops do not end: the expansion of some op contains that op");
    Rewriter rewriter(current);
    for (std::size_t i = 0; i < current.tape.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      if (expands(current.tape.node(i), which))
        expand_node(rewriter, index);
      else
        rewriter.keep(index);
    }
    current = rewriter.finish();
  }
  return current;
}

}  // namespace xtape
