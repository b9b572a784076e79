/// Messages between processes. Training uses this interface to run on several processes. xtape itself has no
/// implementation of the interface; <xtape/mpi.hpp> in the library xtape-mpi implements it with MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// A group of processes ("ranks") that send bytes to each other. One thread at a time may use a communicator.
///
/// Functions throw CommunicationError if a rank cannot be reached or does not answer in time. The message names the
/// rank and its host.
class Communicator {
 public:
  using Request = std::uint64_t;

  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;  ///< The rank of this process: 0 to size() - 1.
  virtual int size() const = 0;
  virtual std::string host(int rank) const = 0;  ///< The name of the host of a rank.

  /// Start to send `count` bytes to another rank, or to receive `count` bytes from another rank. The memory must stay
  /// valid until the request is complete. The memory of a send must also stay unchanged. Messages from one rank to
  /// another arrive in order. Each receive must have the size of its message.
  virtual Request send(int to, const void* bytes, std::size_t count) = 0;
  virtual Request receive(int from, void* bytes, std::size_t count) = 0;
  /// Waits until all requests are complete, then empties the list.
  virtual void wait(std::vector<Request>& requests) = 0;
  /// Makes progress on pending messages. Does not block. Long computations call this function regularly.
  virtual void progress() = 0;
  /// Waits until all ranks have called `barrier`.
  virtual void barrier() = 0;

  /// Allocates memory that the ranks of one host share. All ranks must call `share` together. `bytes` is the size of
  /// the part of the calling rank. Returns a pointer to the part of each rank, and null for ranks on other hosts. The
  /// parts are aligned to 64 bytes and zero at first. All parts stay valid while any of the returned pointers exists.
  /// Without shared memory, all pointers are null except for the part of this rank.
  virtual std::vector<std::shared_ptr<std::byte>> share(std::size_t bytes) = 0;
};

}  // namespace xtape
