// A Communicator over MPI. Uses only functions of version 3 of the standard.
#include "xtape/mpi.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/arrays/lengths.hpp"

namespace xtape {

namespace {
constexpr std::size_t largest_message = std::size_t{1} << 30;  // MPI counts in int
constexpr int tag = 0;  // messages between two ranks are received in the order in which they are sent

std::string seconds_text(const MpiOptions& options) {
  return std::to_string(static_cast<long>(options.timeout)) + " s";
}

void check(int code, const std::string& what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw CommunicationError(what + ": " + std::string(text.data(), static_cast<std::size_t>(length)));
}

/// Watches a call of MPI that waits for all ranks and that cannot be interrupted otherwise. See MpiOptions::late.
class Deadline {
 public:
  Deadline(const MpiOptions& options, std::string what) : options_(options), what_(std::move(what)) {
    watch_ = std::thread([this] {
      std::unique_lock<std::mutex> lock(mutex_);
      if (!over_.wait_for(lock, std::chrono::duration<double>(options_.timeout), [&] { return done_; })) end();
    });
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
    }
    over_.notify_all();
    watch_.join();
  }

 private:
  void end() const {
    const std::string message =
        "some rank has not answered for " + seconds_text(options_) + ", while the ranks " + what_;
    if (options_.late) options_.late(message);
    std::fputs((message + "\n").c_str(), stderr);
    std::_Exit(1);
  }

  const MpiOptions& options_;
  std::string what_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread watch_;
};

/// Returns the number of processes that the launcher has started, according to the environment, or 0 if it is not
/// known.
int launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* value = std::getenv(name); value != nullptr) return std::atoi(value);
  return 0;
}

class MpiRanks : public Communicator, public std::enable_shared_from_this<MpiRanks> {
 public:
  explicit MpiRanks(const MpiOptions& options) : options_(options) {
    const Deadline deadline(options_, "connect to each other");
    int initialised = 0;
    MPI_Initialized(&initialised);
    if (initialised == 0) {
      int provided = 0;
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
      finalises_ = true;
    }
    check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
    if (size_ == 1 && launched() > 1)
      throw CommunicationError("the launcher has started " + std::to_string(launched()) +
                               " processes, but MPI connects this one to no other: the launcher belongs to another "
                               "implementation of MPI than the library xtape-mpi, which has " +
                               library());
    find_hosts();
  }

  ~MpiRanks() override {
    int finalised = 0;
    MPI_Finalized(&finalised);
    if (finalised != 0) return;
    const Deadline deadline(options_, "end");
    for (MPI_Win& window : windows_) MPI_Win_free(&window);
    if (host_ != MPI_COMM_NULL) MPI_Comm_free(&host_);
    MPI_Comm_free(&world_);
    if (finalises_) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host(int rank) const override { return hosts_[rank]; }

  Request send(int to, const void* bytes, std::size_t count) override {
    return start(to, count, [&](std::size_t at, int part, MPI_Request* request) {
      return MPI_Isend(static_cast<const std::byte*>(bytes) + at, part, MPI_BYTE, to, tag, world_, request);
    });
  }

  Request receive(int from, void* bytes, std::size_t count) override {
    return start(from, count, [&](std::size_t at, int part, MPI_Request* request) {
      return MPI_Irecv(static_cast<std::byte*>(bytes) + at, part, MPI_BYTE, from, tag, world_, request);
    });
  }

  void wait(std::vector<Request>& requests) override {
    Patience patience(*this);
    for (const Request request : requests) {
      const auto found = started_.find(request);
      if (found == started_.end()) continue;
      for (MPI_Request& part : found->second.parts) {
        int done = 0;
        const int rank = found->second.rank;
        while (done == 0) {
          if (const int code = MPI_Test(&part, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
            check(code, "the connection to " + name(rank) + " is lost");
          if (done == 0) patience.wait(rank);
        }
        patience.restart();
      }
      started_.erase(found);
    }
    requests.clear();
  }

  void progress() override {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, tag, world_, &found, MPI_STATUS_IGNORE);
  }

  void barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(world_, &request), "MPI_Ibarrier");
    Patience patience(*this);
    int done = 0;
    while (check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test"), done == 0) patience.wait(-1);
  }

  std::vector<std::shared_ptr<std::byte>> share(std::size_t bytes) override {
    std::vector<std::shared_ptr<std::byte>> parts(static_cast<std::size_t>(size_));
    if (host_ == MPI_COMM_NULL) {
      const std::size_t rounded = (bytes + 64) / 64 * 64;
      auto* own = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
      if (own == nullptr) throw Error("out of memory: cannot allocate " + std::to_string(bytes) + " bytes");
      std::fill_n(own, rounded, std::byte{0});
      parts[rank_] = {own, [](std::byte* p) { std::free(p); }};
      return parts;
    }
    barrier();  // a rank can abandon this wait, but not the call of MPI below, which `deadline` watches
    const Deadline deadline(options_, "share memory");
    // The parts need not be adjacent, so each part can have its own pages.
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    constexpr std::size_t alignment = 64;
    void* own = nullptr;
    // The destructor frees the windows. Freeing needs all ranks at once, but ranks stop using the memory at different
    // times. The returned pointers therefore keep this object alive.
    MPI_Win& window = windows_.emplace_back(MPI_WIN_NULL);
    const int code = MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes + alignment), 1, info, host_, &own, &window);
    MPI_Info_free(&info);
    check(code, "the ranks of a host cannot share memory; XTAPE_SHARED_MEMORY=0 avoids it");
    for (int peer = 0; peer < static_cast<int>(host_ranks_.size()); ++peer) {
      MPI_Aint size = 0;
      int unit = 0;
      void* base = nullptr;
      check(MPI_Win_shared_query(window, peer, &size, &unit, &base), "MPI_Win_shared_query");
      const auto address = reinterpret_cast<std::uintptr_t>(base);
      auto* aligned = reinterpret_cast<std::byte*>(round_up(address, alignment));
      parts[host_ranks_[peer]] = {shared_from_this(), aligned};
    }
    return parts;
  }

 private:
  struct Started {
    int rank;
    std::vector<MPI_Request> parts;
  };

  /// Waits a little longer each time, up to a limit, so that waiting ranks leave the processor to other ranks.
  class Patience {
   public:
    explicit Patience(MpiRanks& ranks) : ranks_(ranks) { restart(); }
    void restart() {
      tries_ = 0;
      start_ = std::chrono::steady_clock::now();
    }
    void wait(int rank) {
      constexpr int spins = 200, yields = 2000;
      if (++tries_ < spins) return;
      if (tries_ < yields) {
        std::this_thread::yield();
        return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      constexpr int until_look = 500;
      if (tries_ % until_look == 0) ranks_.look_for_dead();
      const double since = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
      if (since > ranks_.options_.timeout) ranks_.give_up(rank);
    }

   private:
    MpiRanks& ranks_;
    int tries_ = 0;
    std::chrono::steady_clock::time_point start_;
  };

  [[noreturn]] void give_up(int rank) const {
    throw CommunicationError((rank < 0 ? "some rank" : name(rank)) + " has not answered for " + seconds_text(options_));
  }

  /// Throws if the process of a rank on this host has died. The launcher then ends all ranks, but does not report the
  /// reason.
  void look_for_dead() const {
    for (std::size_t i = 0; i < host_ranks_.size(); ++i) {
      std::ifstream status("/proc/" + std::to_string(host_processes_[i]) + "/stat");
      const std::string text((std::istreambuf_iterator<char>(status)), std::istreambuf_iterator<char>());
      const std::size_t state = text.rfind(") ");
      const bool dead = state == std::string::npos || text[state + 2] == 'Z' || text[state + 2] == 'X';
      if (dead) throw CommunicationError(name(host_ranks_[i]) + " has died");
    }
  }

  std::string name(int rank) const { return "rank " + std::to_string(rank) + " on " + host(rank); }

  static std::string library() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string version(text.data(), static_cast<std::size_t>(length));
    return version.substr(0, version.find_first_of(",\n"));
  }

  template <class Start>
  Request start(int rank, std::size_t count, const Start& begin) {
    Started started{rank, {}};
    for (std::size_t at = 0; at < count || at == 0; at += largest_message) {
      const std::size_t part = std::min(largest_message, count - at);
      started.parts.push_back(MPI_REQUEST_NULL);
      check(begin(at, static_cast<int>(part), &started.parts.back()), "a message cannot be sent or received");
    }
    started_.emplace(++last_, std::move(started));
    return last_;
  }

  void find_hosts() {
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    MPI_Get_processor_name(name.data(), &length);
    std::vector<char> names(name.size() * static_cast<std::size_t>(size_));
    check(MPI_Allgather(name.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, names.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR,
                        world_),
          "MPI_Allgather");
    for (int rank = 0; rank < size_; ++rank)
      hosts_.emplace_back(names.data() + static_cast<std::size_t>(rank) * name.size());
    if (!options_.shared_memory) return;
    check(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host_), "MPI_Comm_split_type");
    int host_size = 0;
    MPI_Comm_size(host_, &host_size);
    host_ranks_.resize(static_cast<std::size_t>(host_size));
    check(MPI_Allgather(&rank_, 1, MPI_INT, host_ranks_.data(), 1, MPI_INT, host_), "MPI_Allgather");
    MPI_Comm_set_errhandler(host_, MPI_ERRORS_RETURN);
    const int process = getpid();
    host_processes_.resize(host_ranks_.size());
    check(MPI_Allgather(&process, 1, MPI_INT, host_processes_.data(), 1, MPI_INT, host_), "MPI_Allgather");
  }

  MpiOptions options_;
  bool finalises_ = false;
  MPI_Comm world_ = MPI_COMM_NULL, host_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<int> host_ranks_, host_processes_;  // the ranks of this host, and their processes
  std::vector<MPI_Win> windows_;
  std::vector<std::string> hosts_;
  Request last_ = 0;
  std::unordered_map<Request, Started> started_;
};
}  // namespace

std::shared_ptr<Communicator> mpi_communicator(const MpiOptions& options) {
  if (!(options.timeout >= least_timeout && options.timeout <= most_timeout))
    throw Error("the timeout of ranks must be " + std::to_string(least_timeout) + " to " +
                std::to_string(most_timeout) + " seconds, not " + std::to_string(options.timeout));
  return std::make_shared<MpiRanks>(options);
}

void mpi_abort(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace xtape

const XtapeMpi* xtape_mpi() {
  static const XtapeMpi functions = {xtape::mpi_communicator, xtape::mpi_abort};
  return &functions;
}
