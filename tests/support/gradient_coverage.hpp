/// Counts which ops the tests have gradient-checked. Included first in every file of the ops suite (see
/// tests/meson.build), it puts itself before xtape::gradcheck, so that no test has to remember to be counted and none
/// can claim to be.
#pragma once

#include <set>
#include <string>

#include "xtape/gradcheck.hpp"

namespace xtape {

/// xtape::gradcheck; where it passes, the ops through which a cotangent flowed are counted.
GradcheckReport counted_gradcheck(const std::function<Vars(const Vars&)>& function,
                                  const std::vector<xt::xarray<double>>& points, const GradcheckOptions& options = {});

/// The names of the ops counted so far in this program.
const std::set<std::string>& gradient_checked_ops();

}  // namespace xtape

#define gradcheck counted_gradcheck
