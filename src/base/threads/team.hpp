/// The threads that help a thread with its work.
#pragma once

namespace xtape {

/// Calls member(context, worker) on the calling thread as worker 0, and on helpers of this thread as workers 1 to
/// threads - 1. Only helpers that arrive in time take part. Returns when all helpers that took part have finished. A
/// helper may arrive late or never, for example if the cores of the machine are busy. Members must therefore divide the
/// work dynamically, and each must be able to do all of it. A call from within a member has no helpers. `member` must
/// not throw.
///
/// Each thread has its own helpers. They start at its first call and end with the thread. A forked process starts new
/// helpers. A helper spins for a moment while it waits for the next call, and then sleeps.
void run_team(int threads, const void* context, void (*member)(const void* context, int worker));

}  // namespace xtape
