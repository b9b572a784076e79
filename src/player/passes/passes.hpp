/// The passes. Each rewrites a program into an equivalent one that plays faster or in less memory. `optimised` runs them
/// in the order of their declarations.
#pragma once

#include "passes/program.hpp"
#include "plan/cost.hpp"

namespace xtape {

/// Which ops are replaced by their expansions: those that the player cannot run otherwise (checkpoint); these and the
/// calls that `grad` fused; or all that have one.
enum class Expand : std::uint8_t { without_kernel, fused, all_but_scans, all };
void expand_pass(Program& program, Expand which);
/// Records the expansion of node `index` in place of the node.
void expand_node(Rewriter& rewriter, std::int32_t index);

/// Moves nodes that are played early behind the last of their inputs: tangents beside their primals. So the primals of
/// all layers need not be kept.
void early_pass(Program& program);

/// Applies the rules of the tape's op table. A fused call and the call that `grad` recorded for it become one.
void fuse_pass(Program& program);
/// The places where fuse_pass applies a rule, and its near misses with their reasons.
std::vector<Plan::Fusion> notes_on_rules(Program& program);
/// The same for a tape whose op table was `table` when it was planned; empty if `options` disables rules.
std::vector<Plan::Fusion> notes_on_rules(const Tape& tape, const OpTable& table, const Vars& outputs,
                                         const PlayerOptions& options);

/// What scans compute again in place of reading what other scans stacked: nothing; what elementwise ops give; all that
/// nothing else reads.
enum class RepeatSteps : std::uint8_t { none, elementwise, all };
/// Makes scans compute values of the same step of other scans again, from the states before the step. The gradient of a
/// scan then reads few values of all steps. The bits stay the same. Returns whether there is such a scan.
bool repeat_steps_pass(Program& program, RepeatSteps which);

/// Removes the outputs of scans that nothing reads: most of those that exist for the gradient.
void scan_pass(Program& program);

/// Whether a value has a storage dtype. Without one, the passes on them have nothing to do.
bool has_narrow(const Program& program);
/// Moves elements of storage dtypes before it casts them, and scales results instead of operands (Op::scaled).
void postpone_pass(Program& program);
/// Casts inputs of storage dtypes to the dtypes that kernels compute with, and the results back.
void widen_pass(Program& program);

/// Computes small values that depend on constants only.
void fold_pass(Program& program);

/// Merges equal calls on equal inputs. Calls from different regions are not merged: otherwise a checkpoint would be
/// undone.
void common_pass(Program& program);

/// Turns the sum of a value and a call, such as a product, into a call that adds onto the value, by Op::accumulate.
void accumulate_pass(Program& program);

/// For products that round their factors to bfloat16: stores computed values that only products read as bfloat16, which
/// takes half the memory. The results have the same bits, except for products too small to round their factors.
void store_factors_pass(Program& program);
/// Drops casts before inputs that kernels widen as they read them (Lowering::widens).
void read_narrow_pass(Program& program);

/// Fuses elementwise ops of one shape into ops that run tile by tile.
void elementwise_pass(Program& program);

/// The nodes of a tape that `outputs` and the carries of `options` need, after all passes that `options` enables.
Program optimised(const Tape& tape, const Vars& outputs, const PlayerOptions& options);
/// The same where scans compute values again; nothing if no scan can.
std::optional<Program> with_repeated_steps(const Tape& tape, const Vars& outputs, const PlayerOptions& options,
                                           RepeatSteps which);

/// The op of nodes whose body is a number of fused elementwise ops.
const Op& fused_elementwise_op();

/// Whether the op has a tile function, or is fused from ops that have one.
bool runs_in_tiles(const Op& op);

/// The kernel of an op for which runs_in_tiles() is true.
Kernel make_elementwise(const KernelCall& call);

/// Per stacked output of a node that is played step by step: whether steps that do not take place must leave zeros
/// there. They need not if it is read only by other such nodes of which the same steps take place, such as the gradient.
std::vector<bool> needed_zeros(const Program& program, const Users& users, std::int32_t index);

/// The kernel of an op whose body is played step by step. The body is planned once, with the passes and the seed of
/// `options`. `zeros` are needed_zeros. `cost` is set to the cost of all steps.
Kernel make_stepped(const KernelCall& call, const PlayerOptions& options, const std::vector<bool>& zeros, Cost& cost);

}  // namespace xtape
