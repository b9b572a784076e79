// What the benchmarks include.
#ifndef XTAPE_BENCH_PCH_HPP
#define XTAPE_BENCH_PCH_HPP

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "xtape/xtape.hpp"

#endif
