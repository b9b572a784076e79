/// Reports files that are slow to read.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace xtape {

/// Watches the reading of a file during its lifetime. A thread reports how much has arrived, as described at
/// watch_inputs. Does nothing for a regular file, whose reading always ends, or for a file that does not exist.
class InputWatch {
 public:
  explicit InputWatch(const std::string& path);
  InputWatch(const InputWatch&) = delete;
  InputWatch& operator=(const InputWatch&) = delete;
  ~InputWatch();
  void add(std::size_t bytes) { bytes_ += bytes; }  ///< Reports that more bytes have arrived.

 private:
  void watch();

  std::string what_;  // a description such as "data.fifo, a pipe"
  std::atomic<std::size_t> bytes_{0};
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace xtape
