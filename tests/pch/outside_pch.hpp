// What the files of the suite outside include: public headers only.
#ifndef XTAPE_OUTSIDE_PCH_HPP
#define XTAPE_OUTSIDE_PCH_HPP

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "xtape/xtape.hpp"

#endif
