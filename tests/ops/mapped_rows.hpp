/// A check of vmap for tests of ops.
#pragma once

#include "play.hpp"
#include "xtape/vmap.hpp"

namespace xtape {

/// Compares vmap with a loop over the first axis of every input.
inline void check_mapped_rows(const std::function<Var(const Vars&)>& function,
                              const std::vector<xt::xarray<double>>& rows) {
  Tape tape;
  Vars inputs, apart;
  for (const auto& each : rows) inputs.push_back(tape.parameter("x" + std::to_string(inputs.size()), ArrayView(each)));
  for (std::int64_t i = 0; i < inputs[0].size(0); ++i) {
    Vars row;
    for (const Var& x : inputs) row.push_back(squeeze(slice(x, {i}, {i + 1}), {0}));
    apart.push_back(function(row));
  }
  const Var all = cast(vmap([&](const Vars& x) { return Vars{function(x)}; }, inputs)[0], Dtype::float64);
  CHECK(fast(all).to<double>() == fast(cast(stack(apart), Dtype::float64)).to<double>());
}

}  // namespace xtape
