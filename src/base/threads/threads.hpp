/// Threads: their number, their team, and loops over them.
#pragma once

#include <cstdint>

namespace xtape {

// The number of threads.

/// The largest number of threads that a caller may request.
inline constexpr int most_threads = 4096;

/// Returns the number of threads for an option, where 0 means default_threads() (usable_cores.hpp). If this process
/// never had this many threads, starts them for a moment to test whether the system permits them. (Without this test, a
/// team would silently have fewer threads and be slow.) Throws Error if `asked` is out of range or the system refuses
/// the threads.
int thread_count(int asked = 0);

// The threads that help a thread with its work.

/// Calls member(context, worker) on the calling thread as worker 0, and on helpers of this thread as workers 1 to
/// threads - 1. Only helpers that arrive in time take part. Returns when all helpers that took part have finished. A
/// helper may arrive late or never, for example if the cores of the machine are busy. Members must therefore divide the
/// work dynamically, and each must be able to do all of it. A call from within a member has no helpers. `member` must
/// not throw.
///
/// Each thread has its own helpers. They start at its first call and end with the thread. A forked process starts new
/// helpers. A helper spins for a moment while it waits for the next call, and then sleeps.
void run_team(int threads, const void* context, void (*member)(const void* context, int worker));

// Loops distributed over the threads of a team.

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
