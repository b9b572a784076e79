/// How many threads work.
#pragma once

namespace xtape {

/// The most threads that may be asked for.
inline constexpr int most_threads = 4096;

/// The number of threads that an option asks for, where 0 means omp_get_max_threads(). Starts so many threads for a
/// moment, if this process never had as many: a team that gets fewer would only be slow. Throws Error if `asked` is out
/// of range or the system refuses the threads.
int thread_count(int asked = 0);

/// The largest number that thread_count has returned so far.
int most_threads_so_far();

}  // namespace xtape
