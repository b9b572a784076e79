// Headers that nearly every file of a layer includes: half of a file's compile time, spent once per layer. No file
// depends on it (-Db_pch=false also builds).
#ifndef XTAPE_LAYER_PCH_HPP
#define XTAPE_LAYER_PCH_HPP

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <variant>

#include "xtape/array.hpp"
#if XTAPE_LAYER >= 2 && XTAPE_LAYER <= 7
#include "xtape/op.hpp"
#endif

#endif
