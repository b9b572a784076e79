/// Ranks that are threads of this process.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "xtape/communicator.hpp"

namespace testing {

/// The data that the ranks share.
struct Ranks {
  explicit Ranks(std::vector<int> hosts) : host(std::move(hosts)), parts(host.size()) {}
  std::vector<int> host;  ///< The host of each rank.
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::string>> messages;  ///< By sender and receiver.
  std::size_t sent_bytes = 0;                                       ///< The bytes of all messages.
  int waiting = 0;
  std::int64_t barriers = 0;
  std::vector<std::shared_ptr<std::byte>> parts;
  bool failed = false;  ///< Whether a rank has thrown. The others then must not wait for it.
};

class ThreadRank : public xtape::Communicator {
 public:
  ThreadRank(std::shared_ptr<Ranks> ranks, int rank) : ranks_(std::move(ranks)), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_->host.size()); }
  std::string host(int rank) const override {
    return "host" + std::to_string(ranks_->host[static_cast<std::size_t>(rank)]);
  }

  Request send(int to, const void* bytes, std::size_t count) override {
    const std::lock_guard lock(ranks_->mutex);
    ranks_->messages[{rank_, to}].emplace_back(static_cast<const char*>(bytes), count);
    ranks_->sent_bytes += count;
    ranks_->changed.notify_all();
    return 0;
  }
  Request receive(int from, void* bytes, std::size_t count) override {
    pending_[++last_] = {from, bytes, count};
    return last_;
  }
  void wait(std::vector<Request>& requests) override {
    // Receives are completed in the order of their creation.
    std::unique_lock lock(ranks_->mutex);
    std::map<Request, bool> wanted;
    for (Request request : requests)
      if (pending_.count(request) > 0) wanted[request] = true;
    while (!wanted.empty()) {
      for (auto each = pending_.begin(); each != pending_.end();) {
        auto& queue = ranks_->messages[{each->second.from, rank_}];
        bool earlier = false;
        for (auto before = pending_.begin(); before != each; ++before)
          earlier = earlier || before->second.from == each->second.from;
        if (queue.empty() || earlier) {
          ++each;
          continue;
        }
        if (queue.front().size() != each->second.count) throw std::runtime_error("a message of another size");
        std::memcpy(each->second.bytes, queue.front().data(), each->second.count);
        queue.pop_front();
        wanted.erase(each->first);
        each = pending_.erase(each);
      }
      if (wanted.empty()) break;
      if (ranks_->failed) throw std::runtime_error("another rank has failed");
      ranks_->changed.wait(lock);
    }
    requests.clear();
  }
  void progress() override {}
  void barrier() override {
    std::unique_lock lock(ranks_->mutex);
    const std::int64_t now = ranks_->barriers;
    if (++ranks_->waiting == size()) {
      ranks_->waiting = 0;
      ++ranks_->barriers;
      ranks_->changed.notify_all();
    }
    ranks_->changed.wait(lock, [&] { return ranks_->barriers != now || ranks_->failed; });
    if (ranks_->barriers == now) throw std::runtime_error("another rank has failed");
  }
  std::vector<std::shared_ptr<std::byte>> share(std::size_t bytes) override {
    const std::size_t rounded = (bytes + 63) / 64 * 64 + 64;
    std::shared_ptr<std::byte> own(static_cast<std::byte*>(std::aligned_alloc(64, rounded)),
                                   [](std::byte* p) { std::free(p); });
    std::memset(own.get(), 0, rounded);
    ranks_->parts[static_cast<std::size_t>(rank_)] = own;
    barrier();
    std::vector<std::shared_ptr<std::byte>> parts;
    for (std::size_t i = 0; i < ranks_->parts.size(); ++i)
      parts.push_back(ranks_->host[i] == ranks_->host[static_cast<std::size_t>(rank_)] ? ranks_->parts[i] : nullptr);
    barrier();
    return parts;
  }

 private:
  struct Pending {
    int from;
    void* bytes;
    std::size_t count;
  };
  std::shared_ptr<Ranks> ranks_;
  int rank_;
  Request last_ = 0;
  std::map<Request, Pending> pending_;
};

/// Calls work(communicator) for ranks on these hosts, each in its own thread. Rethrows the first exception.
inline std::shared_ptr<Ranks> run_ranks(const std::vector<int>& hosts,
                                        const std::function<void(const std::shared_ptr<xtape::Communicator>&)>& work) {
  const auto ranks = std::make_shared<Ranks>(hosts);
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> thrown(hosts.size());
  for (std::size_t i = 0; i < hosts.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        work(std::make_shared<ThreadRank>(ranks, static_cast<int>(i)));
      } catch (...) {
        const std::lock_guard lock(ranks->mutex);
        thrown[i] = std::current_exception();
        ranks->failed = true;
        ranks->changed.notify_all();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& each : thrown)
    if (each) std::rethrow_exception(each);
  return ranks;
}

}  // namespace testing
