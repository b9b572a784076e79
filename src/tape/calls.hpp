/// Recording on behalf of a line of the caller's program.
#pragma once

#include "xtape/tape.hpp"

namespace xtape {

/// Runs `body`; its errors name the place of the call.
template <class Body>
auto at_place(const Caller& caller, const Body& body) {
  try {
    return body();
  } catch (Error& error) {
    error.name_place(to_string(caller));
    throw;
  }
}

/// Runs `body` as a call of `op` (null: none in particular) from `caller`: what it records stands there, and its errors
/// name the place.
template <class Body>
auto as_call(Tape tape, const Op* op, const Caller& caller, const Body& body) {
  return at_place(caller, [&] {
    const auto guard = tape.in_call(op, caller);
    return body();
  });
}

}  // namespace xtape
