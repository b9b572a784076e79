/// The ranks of a training: their communication, and the memory that the ranks of one host share.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/system/usable_cores.hpp"
#include "xtape/communicator.hpp"

namespace xtape::ranks {

class RankGroup {
 public:
  /// If `communicator` is null, the group consists of this process alone.
  explicit RankGroup(std::shared_ptr<Communicator> communicator);

  int rank() const { return rank_; }
  int size() const { return size_; }
  Communicator& communicator() { return *communicator_; }

  /// Sends the bytes of every rank to all ranks. of_rank[rank()] contains this rank's bytes. The other texts must
  /// already have the lengths of the bytes that they will receive.
  void all_gather(std::vector<std::string>& of_rank);
  /// Returns the numbers of all ranks.
  template <class Number>
  std::vector<Number> all_gather_numbers(Number own);
  /// Returns the texts of all ranks. They may have any lengths.
  std::vector<std::string> all_gather(const std::string& text);
  /// Returns whether `here` is true on any rank.
  bool any(bool here);
  std::string name(int rank) const;  ///< "rank 2 on host b", for messages.
  /// Waits for the requests, then clears the list.
  void wait(std::vector<Communicator::Request>& requests);
  /// Returns the seconds spent waiting for other ranks since the last call.
  double take_waited() { return std::exchange(waited_, 0); }
  void progress() {
    if (size_ > 1) communicator_->progress();
  }

  /// Returns shared memory of this host, one part per rank. See Communicator::share.
  std::vector<std::shared_ptr<std::byte>> share(std::size_t bytes) { return communicator_->share(bytes); }
  /// Returns whether a rank is on this host and shares memory with this rank. True for this rank itself.
  bool is_near(int rank) const { return host_[rank] == host_[rank_]; }
  /// Returns the rank of host `of_host` that receives messages from `from` for the whole host. `from` is a rank of
  /// another host. Different ranks of the host receive the messages of different senders.
  int receiver(int from, int of_host) const;
  /// Returns whether a rank is on the host of this rank, even if they share no memory.
  bool is_on_host(int rank) const { return communicator_->host(rank) == communicator_->host(rank_); }
  /// Returns the first rank on the host of `rank`, which serves as the number of the host.
  int host(int rank) const { return host_[rank]; }
  void barrier() {
    if (size_ > 1) communicator_->barrier();
  }
  /// Waits until all ranks of this host have called near_barrier().
  void near_barrier();

 private:
  std::shared_ptr<Communicator> communicator_;
  int rank_ = 0, size_ = 1;
  std::vector<int> host_ = {0};  // per rank: the first rank of its host
  double waited_ = 0;
};

// Checks what the ranks of a training must have in common.

/// Throws Error on every rank if `value` is not the same on all ranks. The message names two ranks and the part in
/// which their values differ.
void check_agreement(RankGroup& group, const std::string& what, const std::string& value);
/// Throws Error if there are more ranks than shards.
void check_shards(std::int64_t shards, int ranks);

// The threads of ranks.

/// Divides the cores of a machine among processes, so that no core has more than one thread if the processes have at
/// least a core each. A process gets only cores that it can use. All together get the least of their quotas. Returns
/// the number of threads of each process, at least 1.
std::vector<int> divided_cores(const std::vector<UsableCores>& of_process);

/// Returns the number of threads for this rank's option, where 0 means its part of the cores that the ranks of its host
/// can use, and at most default_threads(). Without other ranks, 0 remains 0. All ranks must call it together.
int threads_of(RankGroup& group, int asked);

/// Divides a list of items among the ranks. Batches of items are assigned to the ranks in turn, so every batch is the
/// same as with one process.
class SharedWork {
 public:
  SharedWork(RankGroup& group, std::size_t items, std::size_t batch_size)
      : group_(group), items_(items), batch_size_(batch_size) {}
  /// Returns whether this rank handles item `index`.
  bool is_here(std::size_t index) const { return rank_of(index) == group_.rank(); }
  /// Returns the results of all items in order, given the results of this rank's items. All ranks must call gather()
  /// together.
  std::vector<std::string> gather(const std::vector<std::string>& here) const;

 private:
  int rank_of(std::size_t index) const {
    return static_cast<int>(index / batch_size_ % static_cast<std::size_t>(group_.size()));
  }
  RankGroup& group_;
  std::size_t items_, batch_size_;
};

/// Texts and numbers as bytes. They must be read in the order in which they were added.
class PackedBytes {
 public:
  PackedBytes() = default;
  explicit PackedBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& bytes() const { return bytes_; }
  bool at_end() const { return at_ == bytes_.size(); }
  template <class T>
  void add(const T& number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void add_text(const std::string& text) {
    add(text.size());
    bytes_ += text;
  }
  template <class T>
  T take() {
    T number;
    bytes_.copy(reinterpret_cast<char*>(&number), sizeof number, at_);
    at_ += sizeof number;
    return number;
  }
  std::string take_text() {
    const auto size = take<std::size_t>();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace xtape::ranks
