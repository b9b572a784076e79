// What the files of the suite outside include.
#ifndef XTAPE_OUTSIDE_PCH_HPP
#define XTAPE_OUTSIDE_PCH_HPP

#include <doctest/doctest.h>

#include "xtape/xtape.hpp"

#endif
