// The passes in their order.
#include "passes.hpp"

namespace xtape {

Program optimised(const Tape& tape, const Vars& outputs, const PlayerOptions& options) {
  const Passes& passes = options.passes;
  Program program = extract(tape, outputs, options.carries);
  program = expand_pass(std::move(program), passes.expand ? Expand::all : passes.fuse ? Expand::without_kernel : Expand::fused);
  if (passes.fuse && !passes.expand) program = fuse_pass(std::move(program));
  program = scan_pass(std::move(program));
  if (passes.fold) program = fold_pass(std::move(program));
  if (passes.common) program = common_pass(std::move(program));
  if (passes.accumulate) program = accumulate_pass(std::move(program));
  if (passes.chains) program = chain_pass(std::move(program));
  return program;
}

}  // namespace xtape
