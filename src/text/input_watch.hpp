/// Tells of files that are slow to read.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace xtape {

/// Watches the reading of a file while it lives: a thread tells how much has come, as watch_inputs says. Does nothing
/// for a regular file, which ends, and for one that does not exist.
class InputWatch {
 public:
  explicit InputWatch(const std::string& path);
  InputWatch(const InputWatch&) = delete;
  InputWatch& operator=(const InputWatch&) = delete;
  ~InputWatch();
  void add(std::size_t bytes) { bytes_ += bytes; }  ///< So many more bytes have come.

 private:
  void watch();

  std::string what_;  // "data.fifo, a pipe"
  std::atomic<std::size_t> bytes_{0};
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace xtape
