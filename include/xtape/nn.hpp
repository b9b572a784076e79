/// Layers as plain functions. Each function makes its parameters in a scope, and records its ops.
///
///   Var h = relu(nn::linear(p / "hidden", x, 64));  // hidden.weight [64, in], hidden.bias [64]
///
/// Sizes of inputs come from the shapes of the arguments. Names, layouts and initial values of parameters are those of
/// the blocks in models/blocks, so files of weights fit both. Options have PyTorch's order, with `with_bias` and the
/// initialiser of the weight at the end. Errors are those of the recorded ops and of Parameters. The nodes have the
/// scope as their module. Errors name the program's line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/parameters.hpp"

namespace xtape::nn {

// Linear maps of the last axis ----------------------------------------------------------------------------------------
/// x [..., in] times weight [out, in] plus bias [out], with the weight layout of PyTorch's Linear.
Var linear(const Parameters& p, const Argument& x, std::int64_t out, bool with_bias = true,
           const Initialiser& initialiser = init::glorot_uniform());
/// Like `linear`, but with weight [in, out], the layout of Keras's Dense and GPT-2's Conv1D.
Var dense(const Parameters& p, const Argument& x, std::int64_t out, bool with_bias = true,
          const Initialiser& initialiser = init::glorot_uniform());
/// Returns row i of weight [rows, width] for every integer i of `indices`. The table is p.vars().at("NAME.weight").
Var embedding(const Parameters& p, const Argument& indices, std::int64_t rows, std::int64_t width,
              const Initialiser& initialiser = init::normal(0.02));
/// linear1 to width d_ff, the activation, dropout, and linear2 back to the width of x (Vaswani et al., 2017, section
/// 3.3).
Var feed_forward(const Parameters& p, const Argument& x, std::int64_t d_ff, double dropout_rate = 0,
                 const std::function<Var(const Var&)>& activation = relu, bool with_bias = true);

// Convolutions of [b, channels, spatial axes] -------------------------------------------------------------------------
/// conv1d of x [b, in, n] with weight [out, in / groups, size] and bias [out].
Var conv1d(const Parameters& p, const Argument& x, std::int64_t out, std::int64_t size, const PerAxis& stride = 1,
           const ConvPadding& padding = 0, const PerAxis& dilation = 1, std::int64_t groups = 1, bool with_bias = true,
           const Initialiser& initialiser = init::he_normal());
/// conv2d of x [b, in, h, w] with weight [out, in / groups, size, size]. A size is one number or two.
Var conv2d(const Parameters& p, const Argument& x, std::int64_t out, const PerAxis& size, const PerAxis& stride = 1,
           const ConvPadding& padding = 0, const PerAxis& dilation = 1, std::int64_t groups = 1, bool with_bias = true,
           const Initialiser& initialiser = init::he_normal());
/// conv_transpose1d and conv_transpose2d with weight [in, out / groups, size…].
Var conv_transpose1d(const Parameters& p, const Argument& x, std::int64_t out, std::int64_t size,
                     const PerAxis& stride = 1, const PerAxis& padding = 0, const PerAxis& output_padding = 0,
                     std::int64_t groups = 1, bool with_bias = true, const PerAxis& dilation = 1,
                     const Initialiser& initialiser = init::he_normal());
Var conv_transpose2d(const Parameters& p, const Argument& x, std::int64_t out, const PerAxis& size,
                     const PerAxis& stride = 1, const PerAxis& padding = 0, const PerAxis& output_padding = 0,
                     std::int64_t groups = 1, bool with_bias = true, const PerAxis& dilation = 1,
                     const Initialiser& initialiser = init::he_normal());

// Norms, with weight and bias -----------------------------------------------------------------------------------------
Var layer_norm(const Parameters& p, const Argument& x, double epsilon = 1e-5, bool with_bias = true);
Var rms_norm(const Parameters& p, const Argument& x, double epsilon = 1e-6);  ///< Has no bias.
/// Normalises groups of the channels of x [b, channels, ...]. In all functions of this file, channels are axis 1.
Var group_norm(const Parameters& p, const Argument& x, std::int64_t groups, double epsilon = 1e-5);
/// In mode train, normalises with the statistics of the batch, and records the updates of running_mean and running_var
/// (Parameters::update assigns them). In other modes, normalises with running_mean and running_var. `momentum` is the
/// weight of the batch in these updates.
Var batch_norm(const Parameters& p, const Argument& x, double epsilon = 1e-5, double momentum = 0.1);

// Recurrent layers ----------------------------------------------------------------------------------------------------
/// The results of a recurrent layer of x [b, t, in].
struct Recurrence {
  Var outputs;  ///< [b, t, units], or [b, t, 2 * units] if bidirectional.
  /// The states after the last step, [b, units] each: h, or h and c of an lstm. If bidirectional: forward, then
  /// backward.
  Vars states;
};
struct RecurrentOptions {
  Vars init = {};              ///< The initial states. If empty, zeros. If bidirectional: forward, then backward.
  Var valid = {};              ///< bool [b, t], false at padding positions (see ScanOptions).
  bool reverse = false;        ///< Whether to run from the last step to the first.
  bool bidirectional = false;  ///< Two layers, in the scopes "forward" and "backward".
  double forget_bias = 0;      ///< For lstm: a constant added before the sigmoid of the forget gate.
  bool recurrent_bias = true;  ///< Whether the product with the state also has a bias, as in PyTorch.
};
/// h' = tanh(W x + b + U h + c), with input.weight [units, in] and recurrent.weight [units, units] (Elman, 1990).
Recurrence rnn(const Parameters& p, const Argument& x, std::int64_t units, const RecurrentOptions& options = {});
/// Gates i, f, g, o, in PyTorch's order: input.weight [4 * units, in] (Hochreiter and Schmidhuber, 1997).
Recurrence lstm(const Parameters& p, const Argument& x, std::int64_t units, const RecurrentOptions& options = {});
/// Gates r, z, n. The reset gate multiplies the result of the matrix product, as in PyTorch (Cho et al., 2014).
Recurrence gru(const Parameters& p, const Argument& x, std::int64_t units, const RecurrentOptions& options = {});

// Attention (Vaswani et al., 2017) ------------------------------------------------------------------------------------
struct AttentionOptions {
  Var mask = {};        ///< bool, true where a query must not attend to a key. Broadcasts to [b, heads, query, key].
  bool causal = false;  ///< Whether queries do not attend to later keys.
  double dropout_rate = 0;  ///< The dropout rate of the attention weights.
  bool with_bias = true;    ///< Whether all four linear maps have a bias.
  bool cached = false;  ///< In mode predict, whether queries also attend to the keys of earlier positions in a cache.
};
/// Multi-head attention with linear maps query, key, value and output, for q [b, query, width], k and v [b, key, ...].
Var multi_head_attention(const Parameters& p, const Argument& q, const Var& k, const Var& v, std::int64_t heads,
                         const AttentionOptions& options = {});
/// Self-attention of x.
Var multi_head_attention(const Parameters& p, const Argument& x, std::int64_t heads,
                         const AttentionOptions& options = {});
/// Sines and cosines of the positions of tokens [b, t]: [t, width] (section 3.5). Has no parameters.
Var sinusoidal_positions(const Argument& tokens, std::int64_t width, std::int64_t axis = -1);

/// Options of the layers of models/transformer.json.
struct TransformerOptions {
  std::int64_t heads = 8, d_ff = 2048;
  double dropout_rate = 0.1, attention_dropout_rate = 0, activation_dropout_rate = 0;
  bool norm_first = false;
  double epsilon = 1e-6;
};
/// Self-attention and feed_forward, each with a residual connection and a norm. `mask` has the form of
/// AttentionOptions::mask and may be empty.
Var transformer_encoder_layer(const Parameters& p, const Argument& x, const Var& mask,
                              const TransformerOptions& options = {});
/// Causal self-attention, attention to `memory` [b, s, width], and feed_forward.
Var transformer_decoder_layer(const Parameters& p, const Argument& x, const Var& memory, const Var& memory_mask,
                              const TransformerOptions& options = {});

}  // namespace xtape::nn
