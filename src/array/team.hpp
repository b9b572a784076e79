/// The threads that help a thread with its work.
#pragma once

namespace xtape {

/// Calls member(context, worker) on the calling thread, as worker 0, and on the helpers of this thread that come in
/// time, as workers 1 to threads - 1. Returns when all that came have finished. A helper may come late or never, as on
/// a machine whose cores are busy: so members share the work out among themselves, and each can do all of it. A call
/// from within a member has no helpers. `member` must not throw.
///
/// Each thread has helpers of its own, which are started at its first call and end with it. A forked process starts new
/// ones. A helper waits for the next call awake for a moment, then asleep.
void run_team(int threads, const void* context, void (*member)(const void* context, int worker));

}  // namespace xtape
