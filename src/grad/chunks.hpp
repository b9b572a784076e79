/// Functions of many tangents or cotangents. Private to what computes matrices of derivatives.
#pragma once

#include <cstdint>
#include <functional>

#include "calls.hpp"
#include "xtape/tape.hpp"

namespace xtape {

/// Runs `body` as a call from `caller`; if it throws, the tape is as before.
template <class Body>
auto all_or_nothing(Tape tape, const Caller& caller, const Body& body) {
  const std::size_t size = tape.size();
  return at_place(caller, [&] {
    try {
      const auto in_call = tape.in_call(nullptr, caller);
      return body();
    } catch (...) {
      tape.truncate(size);
      throw;
    }
  });
}

/// `function` of all rows of `rows` [n, …], `chunk_size` at a time, one chunk after the other; 0: all at once. Results
/// are [n, …].
Vars over_chunks(const std::function<Vars(const Vars&)>& function, const Var& rows, std::int64_t chunk_size);

}  // namespace xtape
