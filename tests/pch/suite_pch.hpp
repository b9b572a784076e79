// What the files of the larger suites include.
#ifndef XTAPE_SUITE_PCH_HPP
#define XTAPE_SUITE_PCH_HPP

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

#include "xtape/xtape.hpp"

#endif
