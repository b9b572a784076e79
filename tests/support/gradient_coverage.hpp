/// Records which ops the tests have gradient-checked. Every file of the ops suite includes this header first (see
/// tests/meson.build). It wraps xtape::gradcheck, so the record is complete and cannot be wrong.
#pragma once

#include <set>
#include <string>

#include "xtape/gradcheck.hpp"
#include "xtape/xtensor.hpp"

namespace xtape {

/// Calls xtape::gradcheck. If it passes, the ops through which a cotangent flowed are recorded.
GradcheckReport counted_gradcheck(const std::function<Vars(const Vars&)>& function,
                                  const std::vector<xt::xarray<double>>& points, const GradcheckOptions& options = {});

/// Returns the names of the ops recorded so far in this program.
const std::set<std::string>& gradient_checked_ops();

}  // namespace xtape

#define gradcheck counted_gradcheck
