/// The number of threads.
#pragma once

namespace xtape {

/// The largest number of threads that a caller may request.
inline constexpr int most_threads = 4096;

/// Returns the number of threads for an option, where 0 means omp_get_max_threads(). If this process never had this
/// many threads, starts them for a moment to test whether the system permits them. (Without this test, a team would
/// silently have fewer threads and be slow.) Throws Error if `asked` is out of range or the system refuses the threads.
int thread_count(int asked = 0);

/// Returns the largest number that thread_count has returned so far.
int most_threads_so_far();

}  // namespace xtape
