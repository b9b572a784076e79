// The passes in their order.
#include "passes.hpp"

namespace xtape {

Program optimised(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  const Passes& passes = options.passes;
  Program program = extract(tape, outputs, options.carries);
  program = expand_pass(program, passes.expand ? Expand::all : passes.fuse ? Expand::without_kernel : Expand::fused);
  if (passes.fuse && !passes.expand) program = fuse_pass(program);
  program = scan_pass(program);
  if (passes.fold) program = fold_pass(program);
  if (passes.common) program = common_pass(program);
  if (passes.accumulate) program = accumulate_pass(program);
  if (passes.chains) program = chain_pass(program);
  return program;
}

}  // namespace xtape
