/// Activation functions of floats, elementwise except for glu, with PyTorch's names, argument order and defaults. All
/// are compositions of other ops, and players fuse these compositions. docs/reference/ops/activations.md has the
/// formulas.
#pragma once

#include <cstdint>

#include "xtape/tape.hpp"

namespace xtape {

Var elu(const Argument& x, double alpha = 1);                     ///< Clevert et al., 2015.
Var selu(const Argument& x);                                      ///< Klambauer et al., 2017.
Var celu(const Argument& x, double alpha = 1);                    ///< Barron, 2017. alpha must not be 0.
Var leaky_relu(const Argument& x, double negative_slope = 0.01);  ///< Maas et al., 2013.
/// x where x > 0, otherwise weight * x (He et al., 2015). The weight has one element, or one per index of axis 1 of x.
Var prelu(const Argument& x, const Var& weight);
Var hardswish(const Argument& x);    ///< x * clip(x + 3, 0, 6) / 6 (Howard et al., 2019).
Var hardsigmoid(const Argument& x);  ///< clip(x + 3, 0, 6) / 6.
Var hardtanh(const Argument& x, double min_val = -1, double max_val = 1);  ///< clip(x, min_val, max_val).
Var relu6(const Argument& x);                                              ///< clip(x, 0, 6).
Var mish(const Argument& x);                                               ///< x * tanh(softplus(x)) (Misra, 2019).
Var softsign(const Argument& x);                                           ///< x / (1 + |x|).
Var log_sigmoid(const Argument& x);                                        ///< log(sigmoid(x)), without overflow.
Var tanhshrink(const Argument& x);                                         ///< x - tanh(x).
Var hardshrink(const Argument& x, double lambd = 0.5);                     ///< x where |x| > lambd, otherwise 0.
Var softshrink(const Argument& x, double lambd = 0.5);  ///< x shrunk towards 0 by lambd; 0 where |x| <= lambd.
Var threshold(const Argument& x, double threshold, double value);  ///< x where x > threshold, otherwise `value`.
/// a * sigmoid(b) for the two halves a, b of x along `axis`, whose size must be even (Dauphin et al., 2017).
Var glu(const Argument& x, std::int64_t axis = -1);

}  // namespace xtape
