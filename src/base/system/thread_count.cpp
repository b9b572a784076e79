#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "base/system/process_memory.hpp"
#include "base/system/usable_cores.hpp"
#include "base/threads/threads.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
/// Starts threads that all exist at the same time, and ends them. Returns how many could be started. Sets `reason` to
/// the error if there are fewer than `count`.
int started(int count, int& reason) {
  std::mutex gate;  // the threads wait until it is unlocked
  std::unique_lock<std::mutex> closed(gate);
  std::vector<pthread_t> threads(static_cast<std::size_t>(count));
  int made = 0;
  const auto pass = [](void* mutex) -> void* {
    const std::lock_guard<std::mutex> opened(*static_cast<std::mutex*>(mutex));
    return nullptr;
  };
  while (made < count && (reason = pthread_create(&threads[made], nullptr, pass, &gate)) == 0) ++made;
  closed.unlock();
  for (int i = 0; i < made; ++i) pthread_join(threads[i], nullptr);
  return made;
}

std::atomic<int> most{1};  // the largest number of threads that existed at the same time

/// Throws Error if the system does not give this process this many threads, including the calling thread.
void require_threads(int count) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (count <= most) return;
  int reason = 0;
  const int made = started(count - 1, reason) + 1;
  if (made < count)
    throw Error("cannot start " + std::to_string(count) + " threads: the system gives " + std::to_string(made) + " (" +
                std::strerror(reason) + "), and " + memory_left_text());
  most = count;
}
}  // namespace

int thread_count(int asked) {
  if (asked < 0 || asked > most_threads)
    throw Error("the number of threads must be 0 to " + std::to_string(most_threads) + ", not " +
                std::to_string(asked));
  const int count = asked > 0 ? asked : std::min(default_threads().count, most_threads);
  require_threads(count);
  return count;
}

}  // namespace xtape
