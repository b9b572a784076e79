/// The division of the tiles of a product into tasks for threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/arrays/lengths.hpp"

namespace xtape {

/// Tasks of `bands` bands and `panels` panels; the last ones of a product can be smaller.
struct TileTasks {
  std::int64_t bands = 1;
  std::int64_t panels = 1;
};

/// The tiles that are computed at the same time, and the time of a task. The unit is the time of one tile.
struct TiledProducts {
  std::int64_t products, bands, panels;
  int threads;
  std::int64_t most_panels;  ///< of a task, to fit the second-level cache
  double panel_cost;         ///< of each panel of a task, to read it or to pack it
  static constexpr double band_cost = 0.05, task_cost = 0.25, thread_cost = 0.05;

  /// Estimates the time of all threads.
  double time(const TileTasks& tasks) const {
    const std::int64_t row_groups = ceiling(bands, tasks.bands), column_groups = ceiling(panels, tasks.panels);
    const auto count = static_cast<double>(products * row_groups * column_groups);
    const double mean = time_of(static_cast<double>(bands) / static_cast<double>(row_groups),
                                static_cast<double>(panels) / static_cast<double>(column_groups));
    const double largest = time_of(static_cast<double>(tasks.bands), static_cast<double>(tasks.panels));
    // A thread can get several of the largest tasks, until others help it. It can also be late by a part of a task, so
    // many tasks are better than few.
    constexpr double until_help = 4, late = 0.25;
    const double rounds = std::ceil(count / threads);
    return rounds * mean + std::min(rounds, until_help) * (largest - mean) + (count > 1 ? late * largest : 0) +
           thread_cost * std::min<double>(count, threads);
  }

  /// Returns `usual`, or another division if that is clearly faster.
  TileTasks best(const TileTasks& usual) const {
    constexpr double clearly = 0.95;
    const std::int64_t rows_end = std::min<std::int64_t>(32, bands), columns_end = std::min(most_panels, panels);
    TileTasks found = usual;
    double least = clearly * time(usual);
    const double all = static_cast<double>(products * bands * panels),
                 each = static_cast<double>(rows_end * columns_end);
    if (least <= all / threads * time_of(static_cast<double>(rows_end), static_cast<double>(columns_end)) / each)
      return usual;
    const auto next = [](std::int64_t size) { return size + std::max<std::int64_t>(1, size / 8); };  // few candidates
    for (std::int64_t rows = 1; rows <= rows_end; rows = next(rows))
      for (std::int64_t columns = 1; columns <= columns_end; columns = next(columns)) {
        // The parts become equal if they can.
        const TileTasks tasks{ceiling(bands, ceiling(bands, rows)), ceiling(panels, ceiling(panels, columns))};
        if (const double needed = time(tasks); needed < least) {
          least = needed;
          found = tasks;
        }
      }
    return found;
  }

 private:
  double time_of(double rows, double columns) const {
    return rows * (columns + band_cost) + columns * panel_cost + task_cost;
  }
};

}  // namespace xtape
