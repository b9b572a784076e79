// Headers that nearly every file includes: half of a file's compile time, spent once per target. No file depends on it
// (-Db_pch=false also builds).
#ifndef XTAPE_LAYER_PCH_HPP
#define XTAPE_LAYER_PCH_HPP

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "xtape/array.hpp"

#endif
