/// Records calls with the location of the line in the caller's program.
#pragma once

#include "xtape/tape.hpp"

namespace xtape {

/// Runs `body`; errors that it throws name the location of the call.
template <class Body>
auto at_place(const Caller& caller, const Body& body) {
  try {
    return body();
  } catch (Error& error) {
    error.name_location(to_string(caller));
    throw;
  }
}

/// Runs `body` as a call of `op` from `caller`; null if it is no particular op. The nodes that `body` records have this
/// op and location in their sites, and errors that it throws name the location.
template <class Body>
auto as_call(Tape tape, const Op* op, const Caller& caller, const Body& body) {
  return at_place(caller, [&] {
    const auto guard = tape.in_call(op, caller);
    return body();
  });
}

}  // namespace xtape
