// Headers that nearly every file of the kernels includes, compiled once per instruction set. No file depends on this
// header (-Db_pch=false also builds).
#ifndef XTAPE_KERNEL_PCH_HPP
#define XTAPE_KERNEL_PCH_HPP

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

#include "kernels/math/lanes.hpp"
#include "xtape/array.hpp"

#endif
