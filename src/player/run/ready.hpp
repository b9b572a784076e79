/// Steps that are ready to run: kernels with their pointers.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "player/plan/plan.hpp"
#include "xtape/op/op.hpp"
#include "xtape/player.hpp"
#include "xtape/tape.hpp"

namespace xtape {

// Packed parameters, shared by players.

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

struct ReadyStep {
  const Kernel* kernel = nullptr;   ///< A kernel of the executable.
  const void* const* in = nullptr;  ///< The addresses of the inputs.
  void* const* out = nullptr;       ///< The addresses of the outputs.
  void* scratch = nullptr;
  /// The result of Kernel::prepare, or null if the kernel has no such function.
  std::shared_ptr<PackedWeight> packed = {};

  void run(std::uint64_t step) const {
    KernelArguments arguments{in, out, scratch, step};
    if (packed)
      arguments.prepared = packed->memory([&](void* memory) { kernel->prepare({in, out, scratch, step, memory}); });
    kernel->run(arguments);
  }
};

// Kernels of nodes that have a body.

/// Creates the kernel of an op for which runs_in_tiles() is true.
Kernel make_elementwise(const KernelCall& call);
/// The kernels that plans need of this room.
const BodyKernels& body_kernels();

/// A loop that computes a node of a body, or two nodes of which the second is the only reader of the first.
struct BodyLoop {
  std::int32_t node = -1;       ///< The node whose outputs the loop writes.
  std::int32_t joined = -1;     ///< The node that the loop computes first, without storing its result, or -1.
  std::size_t operand = 0;      ///< The operand of `node` that is the result of `joined`.
  std::vector<ValueId> inputs;  ///< The values that the loop reads.
};

/// Returns the loops of a body in the order of its nodes.
std::vector<BodyLoop> body_loops(const Tape& body);

}  // namespace xtape
