/// Losses of floats, with PyTorch's names, formulas and defaults; `reduction` comes right after the operands. All are
/// compositions of other ops; docs/ops.md has the formulas.
///
/// `reduction` is "none" for the losses themselves, "sum", or "mean": their sum divided by their number. Input and
/// target broadcast. Errors are those of xtape/ops.hpp; Error for another reduction.
#pragma once

#include <cstdint>
#include <string>

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
/// nll_loss of log_softmax(input), as PyTorch's cross_entropy, whose name the op without weights has: with
/// label_smoothing e, (1 - e) times that plus e / classes times the sum of -weight * log_softmax(input) over all
/// classes.
Var cross_entropy_loss(const Argument& input, const Var& target, const std::string& reduction = "mean",
                       std::int64_t ignore_index = -100, double label_smoothing = 0, std::int64_t axis = 1);
Var cross_entropy_loss(const Argument& input, const Var& target, const Var& weight,
                       const std::string& reduction = "mean", std::int64_t ignore_index = -100,
                       double label_smoothing = 0, std::int64_t axis = 1);

}  // namespace xtape
