/// Helpers for the programs in kept_test.cpp.
#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "oracles.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"

namespace xtape::fuzz {

/// Runs every check.
inline void agree(const Recipe& recipe) {
  for (const Check& check : all_checks()) {
    const auto failure = first_failure(recipe, {check});
    CHECK_MESSAGE(!failure, check.name << ": " << failure.value_or(Failure()).what);
  }
}

/// The outputs, then the states.
inline Vars joined(const Scanned& scanned) {
  Vars all = scanned.outputs;
  all.insert(all.end(), scanned.states.begin(), scanned.states.end());
  return all;
}

}  // namespace xtape::fuzz
