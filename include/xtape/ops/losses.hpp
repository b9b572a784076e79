/// Losses of floats, with PyTorch's names, formulas and defaults; `reduction` comes right after the operands, except in
/// ctc_loss. All are compositions of other ops; docs/ops.md has the formulas.
///
/// `reduction` is "none" for the losses themselves, "sum", or "mean": their sum divided by their number. Input and
/// target broadcast. Errors are those of xtape/ops.hpp; Error for another reduction.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "xtape/tape.hpp"

namespace xtape {

/// (input - target) ** 2.
Var mse_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean");
/// |input - target|.
Var l1_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean");
/// d ** 2 / 2 where d = |input - target| <= delta, else delta * (d - delta / 2) (Huber, 1964). delta > 0.
Var huber_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean", double delta = 1);
/// huber_loss / beta; |input - target| for a beta of 0 (Girshick, 2015). beta >= 0.
Var smooth_l1_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean",
                   double beta = 1);
/// target * (log(target) - input), 0 where target is 0: input are logarithms of probabilities, and so is target if
/// log_target. Reduction "batchmean" divides the sum by the size of the first axis.
Var kl_div(const Argument& input, const Operand& target, const std::string& reduction = "mean",
           bool log_target = false);
/// -(pos_weight * target * log(s) + (1 - target) * log(1 - s)) * weight, where s = sigmoid(input), without overflow.
/// The mean divides by the number of losses, whatever the weights are.
Var binary_cross_entropy_with_logits(const Argument& input, const Operand& target,
                                     const std::string& reduction = "mean", const Operand& weight = 1.0,
                                     const Operand& pos_weight = 1.0);
/// input where target is 1, maximum(0, margin - input) where it is -1.
Var hinge_embedding_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean",
                         double margin = 1);
/// maximum(0, -target * (input1 - input2) + margin), where target is 1 or -1.
Var margin_ranking_loss(const Argument& input1, const Operand& input2, const Operand& target,
                        const std::string& reduction = "mean", double margin = 0);
/// (log(v) + (input - target) ** 2 / v) / 2, v = maximum(var, eps), plus log(2 pi) / 2 if `full` (Nix and Weigend,
/// 1994). The gradient of var passes the maximum.
Var gaussian_nll_loss(const Argument& input, const Operand& target, const Operand& var,
                      const std::string& reduction = "mean", bool full = false, double eps = 1e-6);
/// exp(input) - target * input if log_input, else input - target * log(input + eps); `full` adds Stirling's
/// approximation of log(target!) where target > 1.
Var poisson_nll_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean",
                     bool log_input = true, bool full = false, double eps = 1e-8);
/// maximum(0, |anchor - positive| - |anchor - negative| + margin) (Balntas et al., 2016): norms of order p over the
/// last axis, of differences plus eps. With `swap`, the second is the smaller one of that and |positive - negative|.
Var triplet_margin_loss(const Argument& anchor, const Operand& positive, const Operand& negative,
                        const std::string& reduction = "mean", double margin = 1, double p = 2, double eps = 1e-6,
                        bool swap = false);
/// The inner product of x1 and x2 along `axis`, which is dropped, divided by the product of their norms, each at least
/// eps. Not a loss.
Var cosine_similarity(const Argument& x1, const Operand& x2, std::int64_t axis = 1, double eps = 1e-8);

/// -weight[target] * input[target] for input [b, classes, ...] or [classes] of logarithms of probabilities and int32 or
/// int64 targets [b, ...] or []. `axis` is that of the classes; 1 means 0 for an input of one axis. Targets equal to
/// ignore_index have loss 0; the mean divides by the sum of the weights of the others. Other targets that are no
/// classes make the play throw Error.
Var nll_loss(const Argument& input, const Var& target, const std::string& reduction = "mean",
             std::int64_t ignore_index = -100, std::int64_t axis = 1);
Var nll_loss(const Argument& input, const Var& target, const Var& weight, const std::string& reduction = "mean",
             std::int64_t ignore_index = -100, std::int64_t axis = 1);
/// nll_loss of log_softmax(input), as PyTorch's: with label_smoothing e, (1 - e) times that plus e / classes times the
/// sum of -weight * log_softmax(input) over all classes. Logits [b, t, classes] need axis -1. Sums and means without
/// weights are recorded as cross_entropy_sum, which has a kernel of its own.
Var cross_entropy(const Argument& input, const Var& target, const std::string& reduction = "mean",
                  std::int64_t ignore_index = -100, double label_smoothing = 0, std::int64_t axis = 1);
Var cross_entropy(const Argument& input, const Var& target, const Var& weight, const std::string& reduction = "mean",
                  std::int64_t ignore_index = -100, double label_smoothing = 0, std::int64_t axis = 1);
/// The same values, recorded as the op of this name, by which definitions call it.
Var cross_entropy_loss(const Argument& input, const Var& target, const std::string& reduction = "mean",
                       std::int64_t ignore_index = -100, double label_smoothing = 0, std::int64_t axis = 1);
Var cross_entropy_loss(const Argument& input, const Var& target, const Var& weight,
                       const std::string& reduction = "mean", std::int64_t ignore_index = -100,
                       double label_smoothing = 0, std::int64_t axis = 1);

// Losses of sequences. They are scans over time, so what they take grows with the number of steps. -------------------
/// Connectionist temporal classification (Graves et al., 2006): -log of the probability of all alignments of `targets`,
/// int32 or int64 [b, s], with `log_probs` [t, b, classes], logarithms of probabilities. Row i has input_lengths[i] of
/// the t steps and target_lengths[i] of the s targets (integers [b]); what pads both changes nothing. Without b
/// everywhere, for one sequence. A target that has no alignment has loss inf and gradient 0, or with zero_infinity loss
/// 0. The mean is that of the losses divided by maximum(target_lengths, 1). The gradient is that of the function, where
/// PyTorch's counts on `log_probs` from log_softmax; through log_softmax both are the same. The order of the arguments
/// is PyTorch's. Throws Error unless `blank` is a class; a length that is too long, or a target that is the blank or no
/// class, makes the play throw Error.
Var ctc_loss(const Argument& log_probs, const Var& targets, const Var& input_lengths, const Var& target_lengths,
             std::int64_t blank = 0, const std::string& reduction = "mean", bool zero_infinity = false);

// Linear-chain conditional random fields (Lafferty et al., 2001). The score of tags y of a sequence is the sum of its
// emissions[y_i], of transitions[y_i, y_i+1] between neighbours, of start_transitions of the first tag and of
// end_transitions of the last one. `emissions` are [b, t, tags], `transitions` [tags, tags] (from, to), the tags
// integers [b, t]. Where `mask` (bool [b, t]) is false, a step is left out, as if the sequence were shorter; what is
// there changes nothing. A sequence without steps has score 0.
/// [b]: the score of the tags. A tag outside [0, tags) makes the play throw Error.
Var crf_score(const Argument& emissions, const Var& tags, const Var& transitions, const Operand& mask = true,
              const Operand& start_transitions = 0.0, const Operand& end_transitions = 0.0);
/// [b]: log sum exp of the scores of all tags. Its gradient by `emissions` is the probability of each tag at each step.
Var crf_log_partition(const Argument& emissions, const Var& transitions, const Operand& mask = true,
                      const Operand& start_transitions = 0.0, const Operand& end_transitions = 0.0);
/// -log of the probability of the tags: crf_log_partition - crf_score. The mean divides by the number of sequences.
Var crf_loss(const Argument& emissions, const Var& tags, const Var& transitions, const Operand& mask = true,
             const Operand& start_transitions = 0.0, const Operand& end_transitions = 0.0,
             const std::string& reduction = "mean");
/// The tags with the highest score, int64 [b, t], 0 where the mask is false, and this score [b] (Viterbi, 1967). Of
/// equal ones, the last step that differs has the lower tag. The gradient goes to the score.
std::pair<Var, Var> crf_decode(const Argument& emissions, const Var& transitions, const Operand& mask = true,
                               const Operand& start_transitions = 0.0, const Operand& end_transitions = 0.0);

}  // namespace xtape
