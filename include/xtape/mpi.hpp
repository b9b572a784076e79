/// Ranks that MPI connects. In the library xtape-mpi, which is the only one that depends on MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "xtape/communicator.hpp"

namespace xtape {

/// The shortest and the longest timeout, in seconds: three years, which clocks can add.
inline constexpr double least_timeout = 1e-3, most_timeout = 1e8;

struct MpiOptions {
  double timeout = 600;       ///< Seconds after which a rank that does not answer is an error.
  bool shared_memory = true;  ///< Whether ranks of one host share memory.
  /// Some calls of MPI wait for all ranks and cannot be given up: those that begin, end and share memory. If one takes
  /// longer than `timeout`, another thread calls this with a message, and it must end the process. Empty: prints the
  /// message and ends the process with exit code 1.
  std::function<void(const std::string& message)> late = {};
};

/// The ranks of MPI_COMM_WORLD. Initialises MPI if necessary, and then finalises it with the last copy of the pointer.
/// Throws CommunicationError if the launcher has started several processes that MPI does not connect: then it belongs
/// to another implementation of MPI than the library, and Error if the timeout is out of range.
std::shared_ptr<Communicator> mpi_communicator(const MpiOptions& options = {});

/// Ends all ranks at once, with this exit code.
[[noreturn]] void mpi_abort(int exit_code);

}  // namespace xtape

/// The same for programs that load libxtape-mpi.so while they run (dlopen).
extern "C" {
struct XtapeMpi {
  std::shared_ptr<xtape::Communicator> (*communicator)(const xtape::MpiOptions&);
  void (*abort)(int exit_code);
};
const XtapeMpi* xtape_mpi();
}
