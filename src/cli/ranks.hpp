/// The processes that a launcher of MPI (mpirun, srun) has started together with this one.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "xtape/communicator.hpp"

namespace xtape::cli {

struct RankArguments {
  double timeout = 600;
};
/// The option --timeout.
void add_ranks(CLI::App& command, RankArguments& arguments);

/// All ranks; null if no launcher of MPI has started this process. Loads the library xtape-mpi at the first call.
/// Throws WorkFailed if it is missing.
std::shared_ptr<Communicator> ranks(const RankArguments& arguments);
/// Whether this process prints and writes for all ranks.
bool is_first_rank();
/// Releases the ranks, after which they can end one by one.
void leave_ranks();
/// With several ranks: prints the message unless another rank does, and ends all ranks with the exit code.
void end_all_ranks(const std::string& message, int exit_code, bool names_rank);

}  // namespace xtape::cli
