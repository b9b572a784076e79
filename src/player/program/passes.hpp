/// The passes. Each pass rewrites a program into an equivalent program that is faster or needs less memory. The
/// passes run in the order of their declarations (passes.cpp).
#pragma once

#include "player/program/program.hpp"

namespace xtape {

/// The ops that are replaced by their expansions. `without_kernel` replaces only ops that have no kernel, such as
/// checkpoint. `fused` also replaces the calls that `grad` fused. `all` replaces all ops that have an expansion.
/// `all_but_scans` replaces the same ops, except for scans.
enum class Expand : std::uint8_t { without_kernel, fused, all_but_scans, all };
void expand_pass(Program& program, Expand which);
/// Records the expansion of node `index` in place of the node.
void expand_node(Rewriter& rewriter, std::int32_t index);

/// Moves nodes that are played early to the place right after the last of their inputs. Tangents are then beside their
/// primals, so the player need not keep the primals of all layers at once.
void early_pass(Program& program);

/// Applies the rules of the tape's op table. A fused call and the equal call that `grad` recorded for it become one.
void fuse_pass(Program& program);
/// Returns the places where fuse_pass applies a rule, and its near misses with their reasons.
std::vector<Plan::Fusion> notes_on_rules(Program& program);
/// Like notes_on_rules above, for a tape whose op table was `table` at planning time. The result is empty if `options`
/// disables rules.
std::vector<Plan::Fusion> notes_on_rules(const Tape& tape, const OpTable& table, const Vars& outputs,
                                         const PlayerOptions& options);

/// The values that a scan computes again instead of reading them from stacked outputs of other scans. `none`: no
/// values. `elementwise`: results of elementwise ops. `all`: all values that no other node reads.
enum class RepeatSteps : std::uint8_t { none, elementwise, all };
/// Lets scans compute values of the same step of other scans again, from the states before the step. The gradient of a
/// scan then reads fewer stacked values. The results keep their bits. Returns whether the pass has changed a scan. Only
/// with_repeated_steps runs this pass.
bool repeat_steps_pass(Program& program, RepeatSteps which);

/// Returns whether any value of the program has a storage dtype. If not, the passes for storage dtypes have nothing to
/// do.
bool has_narrow(const Program& program);
/// Moves elements of storage dtypes before casting them, and scales results instead of operands (Op::Algebra::scaled).
/// `blocks` says whether it moves blocks, too: the views of blocks that it makes cannot be played one by one.
void postpone_pass(Program& program, bool blocks);
/// Casts inputs of storage dtypes to the dtypes of kernels, and casts the results back.
void widen_pass(Program& program);

/// Computes small values that depend only on constants.
void fold_pass(Program& program);

/// Merges equal calls on equal inputs. Calls from different regions are not merged, because merging would undo a
/// checkpoint.
void common_pass(Program& program);

/// Removes unread outputs of scans. Most of them exist for the gradient.
void scan_pass(Program& program);

/// Uses Op::Algebra::accumulate to turn the sum of a value and a call, such as a product, into a call that adds to the
/// value.
void accumulate_pass(Program& program);

/// Runs if products round their factors to bfloat16. Stores computed values as bfloat16 if only products read them.
/// This halves the memory of the values. The results keep their bits, except for products that are too small to round
/// their factors.
void store_factors_pass(Program& program);
/// Drops casts before inputs that kernels widen themselves (Lowering::Dtypes::widens). `blocks` is that of
/// postpone_pass.
void read_narrow_pass(Program& program, bool blocks);

/// Fuses elementwise ops of one shape into ops that run tile by tile.
void elementwise_pass(Program& program);

/// Returns the program that computes `outputs` and the carries of `options`, after all passes that `options` enables.
Program optimised(const Tape& tape, const Vars& outputs, const PlayerOptions& options);
/// Like optimised, but with scans that compute values again (RepeatSteps). Returns nothing if no scan can compute any
/// of these values again. With `none`, the result is that of optimised.
std::optional<Program> with_repeated_steps(const Tape& tape, const Vars& outputs, const PlayerOptions& options,
                                           RepeatSteps which);

/// Returns the op of nodes whose body consists of fused elementwise ops.
const Op& fused_elementwise_op();

/// Returns whether the op has a tile function or is fused from ops that have one.
bool runs_in_tiles(const Op& op);

/// Returns, for each stacked output of a node that is played step by step, whether steps that do not take place must
/// write zeros. Zeros are not needed if all readers of the output are also played step by step, with the same steps. An
/// example is the gradient of the node.
std::vector<bool> needed_zeros(const Program& program, const Users& users, std::int32_t index);

}  // namespace xtape
