/// The ranks of a training: what they tell each other, and what the ranks of one host share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "xtape/communicator.hpp"

namespace xtape::ranks {

class RankGroup {
 public:
  /// `communicator` null: this process alone.
  explicit RankGroup(std::shared_ptr<Communicator> communicator);

  int rank() const { return rank_; }
  int size() const { return size_; }
  Communicator& communicator() { return *communicator_; }

  /// Gives every rank the bytes of all: of_rank[rank()] are this rank's, and the others must have their lengths.
  void all_gather(std::vector<std::string>& of_rank);
  /// The texts of all ranks, of any lengths.
  std::vector<std::string> all_gather(const std::string& text);
  /// Whether it is true on any rank.
  bool any(bool here);
  std::string name(int rank) const;  ///< "rank 2 on host b", for messages.
  /// Waits for the requests and empties the list.
  void wait(std::vector<Communicator::Request>& requests);
  /// Seconds spent waiting for other ranks since the last call.
  double take_waited();
  void progress() {
    if (size_ > 1) communicator_->progress();
  }

  /// Shared memory of this host, a part per rank; see Communicator::share.
  std::vector<std::shared_ptr<std::byte>> share(std::size_t bytes);
  /// Whether a rank is on this host, with shared memory. True for this rank.
  bool is_near(int rank) const {
    return host_[rank] == host_[rank_];
  }
  /// The rank that on this host receives what `from`, a rank of another host, sends to the whole host. Hosts share the
  /// work between their ranks.
  int receiver(int from, int of_host) const;
  /// The first rank of the host of `rank`: the number of the host.
  int host(int rank) const { return host_[rank]; }
  void barrier() {
    if (size_ > 1) communicator_->barrier();
  }
  /// Waits until all ranks of this host have called it.
  void near_barrier();

 private:
  std::shared_ptr<Communicator> communicator_;
  int rank_ = 0, size_ = 1;
  std::vector<int> host_ = {0};  // per rank: the first rank of its host
  double waited_ = 0;
};

}  // namespace xtape::ranks
