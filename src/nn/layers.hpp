/// Shared code of the layers.
#pragma once

#include <string>
#include <vector>

#include "tape/calls.hpp"
#include "xtape/init.hpp"
#include "xtape/nn.hpp"

namespace xtape {

// The table of initialisers for definitions.

/// Returns the settings of the initialiser with this name and their defaults, or null if there is none.
const Initialiser::Settings* initialiser_settings(const std::string& name);
std::vector<std::string> initialiser_names();
std::string to_string(const Initialiser& initialiser);  ///< "normal(std=0.02)".

}  // namespace xtape

namespace xtape::nn {

/// Runs `body` as a layer. Its nodes belong to the module of p's scope, and their caller is `caller`.
template <class Body>
auto as_layer(const Parameters& p, const Caller& caller, const Body& body) {
  Tape tape = p.tape();
  const std::string& prefix = p.prefix();  // "encoder."
  const auto scope = std::make_shared<const Scope>(Scope{prefix.substr(0, prefix.size() - !prefix.empty()), {}});
  const auto guard = tape.in_scope(scope, 0);
  return as_call(tape, nullptr, caller, body);
}

/// Sets the fans of an initialiser, and returns it. Leaves out fans on which the initialiser does not depend, and fans
/// that it already sets.
Initialiser with_fans(Initialiser initialiser, double fan_in, double fan_out);

/// If `with_bias`, returns the parameter "bias" [size], which is initially zero. Otherwise returns an empty var.
inline Var bias_of(const Parameters& p, std::int64_t size, bool with_bias) {
  return with_bias ? p("bias", {size}, init::zeros()) : Var();
}
inline Var plus(const Var& x, const Var& bias) {
  return bias.empty() ? x : x + bias;
}

}  // namespace xtape::nn
