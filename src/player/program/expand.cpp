// Replaces ops by their bodies or expansions.
#include <algorithm>

#include "ops/recording/op_helpers.hpp"
#include "player/program/passes.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
bool must_expand(const Op& op) {
  return op.expand && !op.lowering.runs();
}

bool expands(const Node& node, Expand which) {
  const bool is_kept_scan = which == Expand::all_but_scans && node.op->lowering.body.steps;
  if (which >= Expand::all_but_scans) return node.op->expand && !is_kept_scan;
  return must_expand(*node.op) || (which == Expand::fused && node.fused && node.op->expand);
}

bool any_expands(const Program& program, Expand which) {
  return std::any_of(program.order.begin(), program.order.end(),
                     [&](std::int32_t index) { return expands(program.node(index), which); });
}
}  // namespace

namespace {
/// Records the node's expansion on the program's tape and returns its outputs. The expansion function itself works on a
/// separate tape with nodes in order. It can access only what it receives: its inputs, and whether each input is a
/// number.
Vars recorded_expansion(Rewriter& rewriter, const Node& node) {
  Tape apart = rewriter.tape().blank();
  const auto in_site = apart.in_site(node.site);
  Copier copier(apart, rewriter.tape());
  Vars inputs;
  for (const ValueId& id : node.inputs) {
    const ValueId now = rewriter.now(id);
    const Node& given = rewriter.program().node(now.node);
    const ValueType& type = rewriter.program().type(now);
    inputs.push_back(is_number(given) ? apart.constant(given.storage)
                                      : apart.input("in" + std::to_string(inputs.size()), type.shape, type.dtype));
    copier.replace(inputs.back().id(), now);
  }
  const auto given = static_cast<std::int32_t>(apart.size());
  const Vars outputs = expansion(node, apart, inputs);
  for (std::int32_t i = given; i < static_cast<std::int32_t>(apart.size()); ++i) copier.copy(i);
  Vars placed;
  for (const Var& output : outputs) {
    if (output.tape() != apart) throw HandleError(node.op->name + ": its expansion gives a var of another tape");
    placed.push_back(rewriter.program().var(copier.now(output.id())));
  }
  return placed;
}
}  // namespace

void expand_node(Rewriter& rewriter, std::int32_t index) {
  const Node& node = rewriter.program().node(index);
  const auto in_site = rewriter.tape().in_site(node.site);
  const Vars outputs = recorded_expansion(rewriter, node);
  for (std::size_t k = 0; k < outputs.size(); ++k) rewriter.replace({index, static_cast<std::int32_t>(k)}, outputs[k]);
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
