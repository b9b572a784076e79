/// Parameters in packed form, as products read them. Players share these forms.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// One parameter in one packed form.
class PackedWeight {
 public:
  PackedWeight(const std::atomic<std::uint64_t>& changes, std::size_t bytes);

  /// Returns the memory. First calls prepare(memory) if the parameters have changed since the last call.
  template <class Prepare>
  void* memory(const Prepare& prepare) {
    const std::uint64_t now = changes_;
    if (packed_.load(std::memory_order_acquire) != now) {
      const std::lock_guard lock(packing_);
      if (packed_.load(std::memory_order_relaxed) != now) {
        prepare(memory_.data());
        packed_.store(now, std::memory_order_release);
      }
    }
    return memory_.data();
  }

 private:
  const std::atomic<std::uint64_t>& changes_;
  Array memory_;
  std::mutex packing_;
  std::atomic<std::uint64_t> packed_{0};  // the value of `changes_` at the last packing
};

class PackedWeights {
 public:
  /// Returns the packed weight that a kernel prepares in `bytes` bytes. `form` consists of Kernel::prepared_form and
  /// the addresses of the parameters that the kernel reads. Throws Error if memory runs out.
  std::shared_ptr<PackedWeight> of(const std::string& form, std::size_t bytes);
  void repack() { ++changes_; }

 private:
  std::atomic<std::uint64_t> changes_{1};
  std::mutex adding_;
  std::map<std::string, std::shared_ptr<PackedWeight>> weights_;
};

}  // namespace xtape
