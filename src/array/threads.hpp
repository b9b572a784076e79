/// Work shared out over threads. The only place where OpenMP regions are opened.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace xtape {

/// Calls body(begin, end, piece) on contiguous pieces that cover [0, count), on at most `threads` threads; each piece but
/// the last is a multiple of `grain`, and no two pieces have one number in [0, threads): scratch can be kept by it. Where
/// one piece is enough, no region is opened. `body` must not throw. Which thread runs a piece decides no result: bodies
/// that reduce do so over chunks of fixed size.
template <class Body>
void parallel_pieces(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  if (count <= 0) return;
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t pieces = std::min<std::int64_t>(threads, grains);
  if (pieces <= 1) {
    body(std::int64_t{0}, count, std::int64_t{0});
    return;
  }
  const std::int64_t piece = (grains + pieces - 1) / pieces * grain;
  // A team of always the same size: the OpenMP library keeps it from region to region and allocates nothing.
#pragma omp parallel num_threads(threads)
  for (std::int64_t i = omp_get_thread_num(); i < pieces; i += omp_get_num_threads()) {
    const std::int64_t begin = i * piece;
    const std::int64_t finish = std::min(count, begin + piece);
    if (begin < finish) body(begin, finish, i);
  }
}

/// As parallel_pieces, for bodies that need no piece number: body(begin, end).
template <class Body>
void parallel_for(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_pieces(threads, count, grain,
                  [&](std::int64_t begin, std::int64_t finish, std::int64_t) { body(begin, finish); });
}

/// Calls body(index) for every index in [0, count), handing indices out in turn: for pieces of uneven or unknown cost.
template <class Body>
void parallel_each(int threads, std::int64_t count, const Body& body) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace xtape
