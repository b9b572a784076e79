/// Loops distributed over the threads of a team.
#pragma once

#include <cstdint>

namespace xtape {

/// parallel_pieces and parallel_each for a body that is a function of `context`. They are compiled once, not once per
/// body.
void run_pieces(int threads, std::int64_t count, std::int64_t grain, const void* context,
                void (*body)(const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker));
void run_each(int threads, std::int64_t count, const void* context,
              void (*body)(const void* context, std::int64_t index));

/// Calls body(begin, end, worker) on contiguous pieces that cover [0, count), on at most `threads` threads. The size of
/// each piece but the last is a multiple of `grain`. `worker` is in [0, threads), and pieces that run at the same time
/// have different workers, so scratch memory can be indexed by it. Every thread takes its own range in several pieces
/// and then helps with the other ranges, so that a core busy with other work does not delay the rest. If one range is
/// enough, the caller does it alone. `body` must not throw. Results must depend neither on the thread that runs a piece
/// nor on where a piece ends: bodies that reduce do so over chunks of fixed size.
template <class Body>
void parallel_pieces(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  run_pieces(threads, count, grain, &body,
             [](const void* context, std::int64_t begin, std::int64_t finish, std::int64_t worker) {
               (*static_cast<const Body*>(context))(begin, finish, worker);
             });
}

/// As parallel_pieces, for bodies without scratch memory: body(begin, end).
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
