/// Messages between processes: the interface through which training uses several of them. xtape itself has no
/// implementation; <xtape/mpi.hpp>, in the library xtape-mpi, is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// A group of processes ("ranks") that send bytes to each other. For one thread at a time.
///
/// Functions throw CommunicationError if a rank cannot be reached or does not answer in time; the message names it and
/// its host.
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

  /// Start to send `count` bytes to another rank, or to receive them from it. The memory must stay valid and, for a
  /// send, unchanged until the request is complete. Messages from one rank to another arrive in order; each receive
  /// must have the size of its message.
  virtual Request send(int to, const void* bytes, std::size_t count) = 0;
  virtual Request receive(int from, void* bytes, std::size_t count) = 0;
  /// Waits until all requests are complete, and empties the list.
  virtual void wait(std::vector<Request>& requests) = 0;
  /// Lets messages go on without waiting. To be called now and then during long computations.
  virtual void progress() = 0;
  /// Waits until all ranks have called it.
  virtual void barrier() = 0;

  /// Memory that the ranks of one host share. All ranks call it at once, each with the number of bytes of its own part.
  /// Returns the part of each rank, aligned to 64 bytes and zero at first, and null for ranks on other hosts. Each part
  /// stays valid as long as any of the pointers. Without shared memory all parts but this rank's own are null.
  virtual std::vector<std::shared_ptr<std::byte>> share(std::size_t bytes) = 0;
};

}  // namespace xtape
