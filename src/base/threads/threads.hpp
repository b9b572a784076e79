/// Loops distributed over the threads of a team.
#pragma once

#include <cstdint>

namespace xtape {

/// The implementations of parallel_pieces and parallel_each, for a body that is a function of `context`. They are
/// compiled once, not once per body.
void run_pieces(int threads, std::int64_t count, std::int64_t grain, const void* context,
                void (*body)(const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker));
void run_each(int threads, std::int64_t count, const void* context,
              void (*body)(const void* context, std::int64_t index));

/// Calls body(begin, end, worker) on contiguous pieces that cover [0, count), on at most `threads` threads. The size of
/// each piece except the last is a multiple of `grain`. `worker` is in [0, threads). Pieces that run at the same time
/// have different workers, so `worker` can index scratch memory. Every thread takes its own range in several pieces and
/// then helps with the other ranges. If a core is busy with other work, its thread therefore does not delay the other
/// threads. If there is only one range, the caller processes it alone. `body` must not throw. Results must not depend
/// on the thread that runs a piece or on where a piece ends. Bodies that reduce must therefore reduce over chunks of
/// fixed size.
template <class Body>
void parallel_pieces(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  run_pieces(threads, count, grain, &body,
             [](const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker) {
               (*static_cast<const Body*>(context))(begin, finish, worker);
             });
}

/// Like parallel_pieces, for bodies without scratch memory: body(begin, end).
template <class Body>
void parallel_for(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_pieces(threads, count, grain,
                  [&](std::int64_t begin, std::int64_t finish, std::int64_t) { body(begin, finish); });
}

/// Calls body(index) for every index in [0, count). Threads take one index at a time, which suits items of uneven or
/// unknown cost. `body` must not throw.
template <class Body>
void parallel_each(int threads, std::int64_t count, const Body& body) {
  run_each(threads, count, &body,
           [](const void* context, std::int64_t index) { (*static_cast<const Body*>(context))(index); });
}

}  // namespace xtape
