/// Kernels that go row after row.
#pragma once

#include <functional>

#include "lanes.hpp"
#include "rows_done.hpp"
#include "threads.hpp"
#include "xtape/op.hpp"

namespace xtape {

/// Of `rows` rows of `length` elements, which need nothing of one another: body(frame, first, last) computes some.
template <class Body>
Kernel row_kernel(std::int64_t rows, std::int64_t length, int threads, const Body& body) {
  Kernel kernel;
  kernel.run = [=](const Frame& frame) {
    parallel_for(threads, rows, rows_a_piece(length),
                 [&](std::int64_t begin, std::int64_t finish) { body(frame, begin, finish); });
  };
  if (length == 0) return kernel;
  kernel.band = [=](const Frame& frame, const Band& band) { body(frame, band.first / length, band.last / length); };
  kernel.band_step = length;
  return kernel;
}

/// Of an op that finishes output 0 some rows of `length` elements at a time: body(frame, done) computes all of it, and
/// tells `done` of the rows unless it is null. 0 rows at a time: it tells of none.
template <class Body>
Kernel kernel_by_rows(std::int64_t rows_at_a_time, std::int64_t length, const Body& body) {
  Kernel kernel;
  kernel.run = [body](const Frame& frame) { body(frame, nullptr); };
  if (rows_at_a_time == 0 || length == 0) return kernel;
  kernel.run_in_bands = [=](const Frame& frame, const BandDone& done) {
    const auto tell = [&](std::int64_t first, std::int64_t last, std::int64_t worker) {
      done({first * length, last * length, worker});
    };
    const RowsDone rows_done = std::cref(tell);
    body(frame, &rows_done);
  };
  kernel.band_step = rows_at_a_time * length;
  return kernel;
}

}  // namespace xtape
