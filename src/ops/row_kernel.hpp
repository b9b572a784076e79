/// Kernels that go row after row.
#pragma once

#include <functional>

#include "lanes.hpp"
#include "normalise.hpp"
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

/// Of a gradient of a normalisation: body(frame, done) computes it all, and tells of rows as norm_grad does.
template <class Body>
Kernel norm_grad_kernel(std::int64_t rows, std::int64_t length, std::size_t scratch_bytes, const Body& body) {
  Kernel kernel;
  kernel.scratch_bytes = scratch_bytes;
  kernel.run = [body](const Frame& frame) { body(frame, nullptr); };
  kernel.run_in_bands = [=](const Frame& frame, const BandDone& done) {
    const auto tell = [&](std::int64_t first, std::int64_t last, std::int64_t worker) {
      done({first * length, last * length, worker});
    };
    const RowsDone rows_done = std::cref(tell);
    body(frame, &rows_done);
  };
  kernel.band_step = norm_grad_rows(rows) * length;
  return kernel;
}

}  // namespace xtape
