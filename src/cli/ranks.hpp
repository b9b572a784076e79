/// The processes that an MPI launcher (mpirun, srun) has started together with this process.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "xtape/communicator.hpp"

namespace xtape::cli {

struct RankArguments {
  double timeout = 600;
};
/// Adds the option --timeout.
void add_ranks(CLI::App& command, RankArguments& arguments);

/// Returns the communicator of all ranks, or null if no MPI launcher has started this process. The first call loads the
/// library xtape-mpi. Throws WorkFailed if the library is missing.
std::shared_ptr<Communicator> ranks(const RankArguments& arguments);
/// Returns whether this process prints and writes for all ranks.
bool is_first_rank();
/// Releases the ranks. Afterwards each rank can end independently.
void leave_ranks();
/// Ends all ranks with the exit code. First prints the message, unless another rank of this host has printed an error.
/// Does nothing if there is only one rank.
void end_all_ranks(const std::string& message, int exit_code, bool names_rank);

}  // namespace xtape::cli
