// What every file of the ops suite includes.
#ifndef XTAPE_OPS_PCH_HPP
#define XTAPE_OPS_PCH_HPP

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <sstream>

#include "gradient_coverage.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

#endif
