/// Ranks that are connected by MPI. The library xtape-mpi is the only one that depends on MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "xtape/communicator.hpp"

namespace xtape {

/// The shortest and the longest timeout in seconds. Clocks can add the longest, three years, without overflow.
inline constexpr double least_timeout = 1e-3, most_timeout = 1e8;

struct MpiOptions {
  double timeout = 600;       ///< A rank that does not answer within this number of seconds is an error.
  bool shared_memory = true;  ///< Whether ranks of one host share memory.
  /// The calls that initialise MPI, finalise MPI or share memory wait for all ranks and cannot be cancelled. If such a
  /// call takes longer than `timeout`, another thread calls this function with a message. The function must end the
  /// process. If empty, xtape prints the message and ends the process with exit code 1.
  std::function<void(const std::string& message)> late = {};
};

/// Returns the ranks of MPI_COMM_WORLD. Initialises MPI if necessary; destroying the last copy of the pointer then
/// finalises MPI. Throws CommunicationError if the launcher belongs to another implementation of MPI and has started
/// several processes, which MPI then does not connect. Throws Error if the timeout is out of range.
std::shared_ptr<Communicator> mpi_communicator(const MpiOptions& options = {});

/// Ends all ranks immediately with this exit code.
[[noreturn]] void mpi_abort(int exit_code);

}  // namespace xtape

/// The same functions for programs that load libxtape-mpi.so at run time (dlopen).
extern "C" {
struct XtapeMpi {
  std::shared_ptr<xtape::Communicator> (*communicator)(const xtape::MpiOptions&);
  void (*abort)(int exit_code);
};
const XtapeMpi* xtape_mpi();
}
