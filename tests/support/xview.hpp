/// xtensor's views. Version 0.26 of xtensor moved its headers into subfolders.
#pragma once

#if __has_include(<xtensor/views/xview.hpp>)
#include <xtensor/views/xview.hpp>
#else
#include <xtensor/xview.hpp>
#endif
