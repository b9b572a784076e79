#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "cli/commands.hpp"
#include "xtape/distributed.hpp"
#include "xtape/mpi.hpp"

namespace xtape::cli {

namespace {
std::shared_ptr<Communicator> all_ranks;
/// 1 after a rank of this host has printed an error. The ranks of the host share this memory.
std::shared_ptr<std::byte> printed;
const XtapeMpi* mpi = nullptr;

bool is_launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

void* load_mpi() {
  std::string why;
  if (const char* given = std::getenv("XTAPE_MPI"); given != nullptr) {
    if (void* library = load_library(given, why)) return library;
    throw WorkFailed("XTAPE_MPI: " + why);
  }
  namespace fs = std::filesystem;
  const std::string name = "libxtape-mpi.so";
  const fs::path here = fs::path(program_path()).parent_path();
  // The places where the library is installed, where it is built, and where the system searches.
  for (const fs::path& path : {here / ".." / XTAPE_LIBDIR / name, here / ".." / "mpi" / name, fs::path(name)}) {
    if (path.has_parent_path() && !fs::exists(path)) continue;
    if (void* library = load_library(path.string(), why)) return library;
  }
  throw WorkFailed("MPI has started this process, but the library xtape-mpi cannot be loaded: " + why +
                   "; build xtape with -Dmpi=enabled, or name the library in the variable XTAPE_MPI");
}

/// Prints an error of this rank, unless another rank of this host has printed one.
void print_once(int rank, const std::string& message) {
  // If several ranks have an error, the first of them prints it and ends the others while they wait. A launcher can
  // take two seconds to end the ranks, and it can wake a rank that was stopped.
  constexpr int most_seconds = 8;
  if (rank > 0) std::this_thread::sleep_for(std::chrono::seconds(std::min(1 + 2 * rank, most_seconds)));
  if (!printed || __atomic_exchange_n(reinterpret_cast<unsigned char*>(printed.get()), 1, __ATOMIC_SEQ_CST) == 0)
    std::cerr << "xtape: " << message << std::endl;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // gives the launcher time to forward the message
}

/// Ends this process because a call of MPI does not return. The launcher then ends the other processes. A thread of the
/// MPI library calls this function.
void end_late(const std::string& message) {
  int rank = 0;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* value = std::getenv(name); value != nullptr) rank = std::atoi(value);
  print_once(rank, "rank " + std::to_string(rank) + ": " + message);
  std::_Exit(work_failed);
}
}  // namespace

void add_ranks(CLI::App& command, RankArguments& arguments) {
  add_option(command, "--timeout", arguments.timeout,
             "With several ranks: seconds after which one that does not answer is an error", shown)
      ->check(CLI::Range(least_timeout, most_timeout));
}

std::shared_ptr<Communicator> ranks(const RankArguments& arguments) {
  if (all_ranks || !is_launched()) return all_ranks;
  void* library = load_mpi();
  const auto functions = reinterpret_cast<const XtapeMpi* (*)()>(function_of(library, "xtape_mpi"));
  if (functions == nullptr) throw WorkFailed("the library for MPI has no function xtape_mpi");
  mpi = functions();
  MpiOptions options;
  options.timeout = arguments.timeout;
  const char* shared = std::getenv("XTAPE_SHARED_MEMORY");
  options.late = end_late;
  options.shared_memory = shared == nullptr || std::string(shared) != "0";
  all_ranks = mpi->communicator(options);
  share_cores(all_ranks);
  const std::vector<std::shared_ptr<std::byte>> parts = all_ranks->share(1);
  printed = *std::ranges::find_if(parts, [](const auto& part) { return part != nullptr; });
  return all_ranks;
}

bool is_first_rank() {
  return !all_ranks || all_ranks->rank() == 0;
}

void leave_ranks() {
  printed.reset();
  all_ranks.reset();
}

void end_all_ranks(const std::string& message, int exit_code, bool names_rank) {
  if (!all_ranks || all_ranks->size() == 1) return;
  const int rank = all_ranks->rank();
  print_once(rank,
             (names_rank ? "" : "rank " + std::to_string(rank) + " on " + all_ranks->host(rank) + ": ") + message);
  mpi->abort(exit_code);
}

}  // namespace xtape::cli
