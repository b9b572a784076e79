/// What the layers share.
#pragma once

#include "calls.hpp"
#include "xtape/nn.hpp"

namespace xtape::nn {

/// Runs `body` as a layer: the nodes that it records belong to the module of p's scope, and are called from `caller`.
template <class Body>
auto as_layer(const Parameters& p, const Caller& caller, const Body& body) {
  Tape tape = p.tape();
  const std::string& prefix = p.prefix();  // "encoder."
  const auto scope = std::make_shared<const Scope>(Scope{prefix.substr(0, prefix.size() - !prefix.empty()), {}});
  const auto guard = tape.in_scope(scope, 0);
  return as_call(tape, nullptr, caller, body);
}

/// The initialiser with these fans, if its numbers depend on fans that it does not give.
Initialiser with_fans(Initialiser initialiser, double fan_in, double fan_out);

/// The parameter "bias" [size], of zeros; or empty.
inline Var bias_of(const Parameters& p, std::int64_t size, bool with_bias) {
  return with_bias ? p("bias", {size}, init::zeros()) : Var();
}
inline Var plus(const Var& x, const Var& bias) {
  return bias.empty() ? x : x + bias;
}

}  // namespace xtape::nn
