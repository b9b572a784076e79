// The passes in their order.
#include "passes.hpp"

#include "bands.hpp"

namespace xtape {

Program optimised(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  const Passes& passes = options.passes;
  Program program = extract(tape, outputs, options.carries);
  if (passes.fuse && !passes.expand) program = fuse_pass(program);
  program = expand_pass(program, passes.expand);
  program = scan_pass(program);
  if (passes.fold) program = fold_pass(program);
  if (passes.common) program = common_pass(program);
  if (passes.accumulate) program = accumulate_pass(program);
  if (passes.chains) program = chain_pass(program);
  if (passes.bands) program = follow_pass(program);
  return program;
}

}  // namespace xtape
