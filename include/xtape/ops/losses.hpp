/// Losses of floats, with PyTorch's names, formulas and defaults. `reduction` comes right after the operands, except in
/// ctc_loss. All losses are compositions of other ops; docs/reference/ops/losses.md has the formulas.
///
/// `reduction` is "none", "sum" or "mean". "none" returns the individual losses. "mean" divides their sum by their
/// number. Input and target broadcast. Errors are those of xtape/ops.hpp. Throws Error if `reduction` is another text.
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
/// d ** 2 / 2 where d = |input - target| <= delta, otherwise delta * (d - delta / 2) (Huber, 1964). delta > 0.
Var huber_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean", double delta = 1);
/// huber_loss with delta = beta, divided by beta. If beta is 0, the loss is |input - target| (Girshick, 2015). beta >=
/// 0.
Var smooth_l1_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean",
                   double beta = 1);
/// target * (log(target) - input), or 0 where target is 0. `input` contains log-probabilities. `target` contains
/// probabilities, or log-probabilities if log_target. Reduction "batchmean" divides the sum by the size of the first
/// axis.
Var kl_div(const Argument& input, const Operand& target, const std::string& reduction = "mean",
           bool log_target = false);
/// -(pos_weight * target * log(s) + (1 - target) * log(1 - s)) * weight, where s = sigmoid(input), without overflow.
/// The mean divides by the number of losses, not by the sum of the weights.
Var binary_cross_entropy_with_logits(const Argument& input, const Operand& target,
                                     const std::string& reduction = "mean", const Operand& weight = 1.0,
                                     const Operand& pos_weight = 1.0);
/// input where target is 1, maximum(0, margin - input) where it is -1.
Var hinge_embedding_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean",
                         double margin = 1);
/// maximum(0, -target * (input1 - input2) + margin), where target is 1 or -1.
Var margin_ranking_loss(const Argument& input1, const Operand& input2, const Operand& target,
                        const std::string& reduction = "mean", double margin = 0);
/// (log(v) + (input - target) ** 2 / v) / 2 with v = maximum(var, eps), plus log(2 pi) / 2 if `full` (Nix and Weigend,
/// 1994). The gradient with respect to var ignores the maximum.
Var gaussian_nll_loss(const Argument& input, const Operand& target, const Operand& var,
                      const std::string& reduction = "mean", bool full = false, double eps = 1e-6);
/// exp(input) - target * input if log_input, otherwise input - target * log(input + eps). `full` adds Stirling's
/// approximation of log(target!) where target > 1.
Var poisson_nll_loss(const Argument& input, const Operand& target, const std::string& reduction = "mean",
                     bool log_input = true, bool full = false, double eps = 1e-8);
/// maximum(0, |anchor - positive| - |anchor - negative| + margin) (Balntas et al., 2016). |a - b| is the p-norm of a -
/// b + eps over the last axis. With `swap`, the minimum of |anchor - negative| and |positive - negative| replaces
/// |anchor - negative|.
Var triplet_margin_loss(const Argument& anchor, const Operand& positive, const Operand& negative,
                        const std::string& reduction = "mean", double margin = 1, double p = 2, double eps = 1e-6,
                        bool swap = false);
/// The inner product of x1 and x2 along `axis`, divided by maximum(|x1|, eps) * maximum(|x2|, eps). The axis is
/// dropped. This function is not a loss.
Var cosine_similarity(const Argument& x1, const Operand& x2, std::int64_t axis = 1, double eps = 1e-8);

/// -weight[target] * input[target]. `input` contains log-probabilities, [b, classes, ...] or [classes]. `target`
/// contains int32 or int64 classes, [b, ...] or []. Without `weight`, all weights are 1. `axis` is the axis of the
/// classes. For an input of one axis, `axis` = 1 means 0. Targets equal to ignore_index have loss 0. The mean divides
/// by the sum of the weights of the other targets. Playing throws Error if a target is neither a class nor
/// ignore_index.
Var nll_loss(const Argument& input, const Var& target, const std::string& reduction = "mean",
             std::int64_t ignore_index = -100, std::int64_t axis = 1);
Var nll_loss(const Argument& input, const Var& target, const Var& weight, const std::string& reduction = "mean",
             std::int64_t ignore_index = -100, std::int64_t axis = 1);
/// nll_loss of log_softmax(input), like PyTorch's cross_entropy. With label_smoothing e, the loss is (1 - e) times
/// nll_loss, plus e / classes times the sum of -weight * log_softmax(input) over all classes. Logits [b, t, classes]
/// need axis -1. Sums and means without weights are recorded as cross_entropy_sum, which has its own kernel.
Var cross_entropy(const Argument& input, const Var& target, const std::string& reduction = "mean",
                  std::int64_t ignore_index = -100, double label_smoothing = 0, std::int64_t axis = 1);
Var cross_entropy(const Argument& input, const Var& target, const Var& weight, const std::string& reduction = "mean",
                  std::int64_t ignore_index = -100, double label_smoothing = 0, std::int64_t axis = 1);
/// The same values as those of cross_entropy, recorded as the op "cross_entropy_loss". Definitions call this op.
Var cross_entropy_loss(const Argument& input, const Var& target, const std::string& reduction = "mean",
                       std::int64_t ignore_index = -100, double label_smoothing = 0, std::int64_t axis = 1);
Var cross_entropy_loss(const Argument& input, const Var& target, const Var& weight,
                       const std::string& reduction = "mean", std::int64_t ignore_index = -100,
                       double label_smoothing = 0, std::int64_t axis = 1);

// Losses of sequences. They are scans over time, so their time and memory grow with the number of steps. --------------
/// Connectionist temporal classification (Graves et al., 2006): -log of the total probability of all alignments of the
/// targets with the steps. `log_probs` [t, b, classes] are log-probabilities, `targets` are int32 or int64 [b, s]. Row
/// i uses input_lengths[i] of the t steps and target_lengths[i] of the s targets (integers [b]). Padding has no effect.
/// For a single sequence, all arrays lack the axis b. A target without an alignment has loss inf and gradient 0; with
/// zero_infinity, its loss is 0. Reduction "mean" divides each loss by maximum(target_lengths, 1) before it takes the
/// mean. The order of the arguments is PyTorch's.
///
/// The gradient is the exact derivative with respect to `log_probs`. PyTorch's gradient assumes that `log_probs` comes
/// from log_softmax. If it does, the gradients with respect to the input of log_softmax are equal.
///
/// Throws Error if `blank` is not a class. Playing throws Error if a length is too long, or a target is the blank or
/// not a class.
Var ctc_loss(const Argument& log_probs, const Var& targets, const Var& input_lengths, const Var& target_lengths,
             std::int64_t blank = 0, const std::string& reduction = "mean", bool zero_infinity = false);

// Linear-chain conditional random fields (Lafferty et al., 2001). The score of tags y of a sequence is a sum of four
// terms: emissions[y_i] of each tag, transitions[y_i, y_i+1] between neighbours, start_transitions of the first tag,
// and end_transitions of the last tag. The shapes are [b, t, tags] for `emissions`, [tags, tags] (from, to) for
// `transitions`, and [b, t] for the tags, which are integers. Steps where `mask` (bool [b, t]) is false are omitted, as
// if the sequence were shorter. Their values have no effect. A sequence without steps has score 0.
/// Returns the score of the tags, [b]. Playing throws Error if a tag is outside [0, tags).
Var crf_score(const Argument& emissions, const Var& tags, const Var& transitions, const Operand& mask = true,
              const Operand& start_transitions = 0.0, const Operand& end_transitions = 0.0);
/// Returns log sum exp of the scores of all tag sequences, [b]. Its gradient with respect to `emissions` is the
/// probability of each tag at each step.
Var crf_log_partition(const Argument& emissions, const Var& transitions, const Operand& mask = true,
                      const Operand& start_transitions = 0.0, const Operand& end_transitions = 0.0);
/// -log of the probability of the tags, crf_log_partition - crf_score. The mean divides by the number of sequences.
Var crf_loss(const Argument& emissions, const Var& tags, const Var& transitions, const Operand& mask = true,
             const Operand& start_transitions = 0.0, const Operand& end_transitions = 0.0,
             const std::string& reduction = "mean");
/// Returns the tags with the highest score, int64 [b, t], and this score [b] (Viterbi, 1967). The tags are 0 where the
/// mask is false. If several tag sequences have the highest score, crf_decode returns the sequence with the lowest last
/// tag, then with the lowest tag before it, and so on. Only the score is differentiable.
std::pair<Var, Var> crf_decode(const Argument& emissions, const Var& transitions, const Operand& mask = true,
                               const Operand& start_transitions = 0.0, const Operand& end_transitions = 0.0);

}  // namespace xtape
