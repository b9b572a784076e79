/// The passes: each takes a program to an equal one that plays faster or in less memory. `optimised` runs them in this
/// order.
#pragma once

#include "cost.hpp"
#include "program.hpp"

namespace xtape {

/// What is replaced by its expansion: what cannot run itself (checkpoint), what `grad` fused too, or whatever has one.
enum class Expand : std::uint8_t { without_kernel, fused, all };
Program expand_pass(Program program, Expand which);
/// Records the expansion of a node in its place.
void expand_node(Rewriter& rewriter, std::int32_t index);

/// Applies the rules of the tape's table; a fused call and the one that `grad` recorded for it become one.
Program fuse_pass(Program program);
/// Which of the rules fuse_pass applies, and which it nearly would.
std::vector<Plan::Fusion> notes_on_rules(const Program& program);
/// The same for a tape whose rules were those of `table` when it was planned; nothing where `options` applies no rules.
std::vector<Plan::Fusion> notes_on_rules(const Tape& tape, const OpTable& table, const Vars& outputs,
                                         const PlayerOptions& options);

/// Takes the outputs that nobody reads off the scans: most of what they offer for the gradient.
Program scan_pass(Program program);

/// Computes small values that depend on constants alone.
Program fold_pass(Program program);

/// Makes equal calls on equal inputs once. What comes out of different bodies is kept apart.
Program common_pass(Program program);

/// Turns the sum of a value and a call, such as a product, into a call that adds onto the value, by `Op::accumulate`.
Program accumulate_pass(Program program);

/// Fuses elementwise ops of one shape; the fused op runs tile by tile.
Program elementwise_pass(Program program);

/// What `outputs` and the carries of `options` need of a tape, after all the passes that `options` allows.
Program optimised(const Tape& tape, const Vars& outputs, const PlayerOptions& options);

/// The op of fused elementwise ops: a node whose body holds the elementwise ops.
const Op& fused_elementwise_op();

/// Whether the op is elementwise with a kernel of tiles, or fused of such.
bool runs_in_tiles(const Op& op);

/// The kernel of such an op.
Kernel make_elementwise(const KernelCall& call);

/// The kernel of an op whose body is played step by step: the body is planned once with `options`. And what all steps
/// cost.
Kernel make_stepped(const KernelCall& call, const PlayerOptions& options, Cost& cost);

}  // namespace xtape
