/// Records calls with the location of the line in the caller's program.
#pragma once

#include "xtape/tape.hpp"

namespace xtape {

/// Adds the location of a call to an error.
void name_place(Error& error, const Caller& caller);
void name_place(Error& error, const Site& site);

/// Runs `body`. Errors of `body` name the location of the call.
template <class Body>
auto at_place(const Caller& caller, const Body& body) {
  try {
    return body();
  } catch (Error& error) {
    name_place(error, caller);
    throw;
  }
}

/// Runs `body` as a call of `op` from `caller`. `op` is null if the call belongs to no particular op. The sites of the
/// nodes that `body` records have this op and this location. Errors that `body` throws name the location.
template <class Body>
auto as_call(Tape tape, const Op* op, const Caller& caller, const Body& body) {
  return at_place(caller, [&] {
    const auto guard = tape.in_call(op, caller);
    return body();
  });
}

/// Like as_call, but if `body` throws, the tape keeps none of the nodes that `body` recorded.
template <class Body>
auto all_or_nothing(Tape tape, const Op* op, const Caller& caller, const Body& body) {
  const std::size_t size = tape.size();
  return as_call(tape, op, caller, [&] {
    try {
      return body();
    } catch (...) {
      tape.truncate(size);
      throw;
    }
  });
}

}  // namespace xtape
