#include "ranks/rank_group.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>

#include "base/messages/wording.hpp"
#include "xtape/distributed.hpp"
#include "xtape/trace.hpp"

namespace xtape::ranks {

std::vector<std::string> SharedWork::gather(const std::vector<std::string>& here) const {
  if (group_.size() == 1) return here;
  PackedBytes own;
  for (const std::string& text : here) own.add_text(text);
  std::vector<PackedBytes> of_rank;
  for (std::string& bytes : group_.all_gather(own.bytes())) of_rank.emplace_back(std::move(bytes));
  std::vector<std::string> all;
  for (std::size_t i = 0; i < items_; ++i) all.push_back(of_rank[rank_of(i)].take_text());
  return all;
}

RankGroup::RankGroup(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {
  if (!communicator_) return;
  rank_ = communicator_->rank();
  size_ = communicator_->size();
  // A rank gets the shared memory of the ranks of its host only, so one shared byte shows which ranks these are.
  const std::vector<std::shared_ptr<std::byte>> near = share(1);
  const auto is_here = [](const std::shared_ptr<std::byte>& memory) { return memory != nullptr; };
  host_ = all_gather_numbers(static_cast<int>(std::ranges::find_if(near, is_here) - near.begin()));
}

void RankGroup::wait(std::vector<Communicator::Request>& requests) {
  if (requests.empty()) return;
  const double start = Trace::now();
  communicator_->wait(requests);
  waited_ += Trace::now() - start;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // makes earlier writes of other ranks to shared memory visible
}

void RankGroup::all_gather(std::vector<std::string>& of_rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::vector<Communicator::Request> requests;
  const std::string& own = of_rank[rank_];
  for (int rank = 0; rank < size_; ++rank) {
    std::string& theirs = of_rank[rank];
    if (rank == rank_) continue;
    if (!theirs.empty()) requests.push_back(communicator_->receive(rank, theirs.data(), theirs.size()));
    if (!own.empty()) requests.push_back(communicator_->send(rank, own.data(), own.size()));
  }
  wait(requests);
}

template <class Number>
std::vector<Number> RankGroup::all_gather_numbers(Number own) {
  std::vector<std::string> bytes(static_cast<std::size_t>(size_), std::string(sizeof own, '\0'));
  std::memcpy(bytes[rank_].data(), &own, sizeof own);
  all_gather(bytes);
  std::vector<Number> numbers(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) std::memcpy(&numbers[i], bytes[i].data(), sizeof own);
  return numbers;
}

std::vector<std::string> RankGroup::all_gather(const std::string& text) {
  std::vector<std::string> texts;
  for (const std::size_t length : all_gather_numbers(text.size())) texts.emplace_back(length, '\0');
  texts[rank_] = text;
  all_gather(texts);
  return texts;
}

bool RankGroup::any(bool here) {
  return contains(all_gather_numbers<char>(here ? 1 : 0), 1);
}

std::string RankGroup::name(int rank) const {
  return "rank " + std::to_string(rank) + (communicator_ ? " on " + communicator_->host(rank) : "");
}

int RankGroup::receiver(int from, int of_host) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank)
    if (host(rank) == of_host) ranks.push_back(rank);
  return ranks[static_cast<std::size_t>(from) % ranks.size()];
}

void RankGroup::near_barrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::vector<Communicator::Request> requests;
  char byte = 0;
  std::string received(static_cast<std::size_t>(size_), '\0');
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || !is_near(rank)) continue;
    requests.push_back(communicator_->receive(rank, &received[rank], 1));
    requests.push_back(communicator_->send(rank, &byte, 1));
  }
  wait(requests);
}

// What the ranks of a training must have in common.

namespace {
/// Returns `text` or, if one of the texts is long, the part of `text` around their first difference.
std::string excerpt(const std::string& text, const std::string& other) {
  constexpr std::size_t before = 20, most = 100;
  if (text.size() <= most && other.size() <= most) return text;
  const std::size_t at = static_cast<std::size_t>(
      std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first - text.begin());
  const std::size_t from = at > before ? at - before : 0;
  return (from > 0 ? "…" : "") + text.substr(from, most) + (from + most < text.size() ? "…" : "");
}
}  // namespace

void check_agreement(RankGroup& group, const std::string& what, const std::string& value) {
  const std::vector<std::string> of_rank = group.all_gather(value);
  for (int rank = 1; rank < group.size(); ++rank) {
    const std::string& other = of_rank[rank];
    if (other != of_rank[0])
      throw Error("all ranks must have the same " + what + ": " + group.name(0) + " has " + excerpt(of_rank[0], other) +
                  ", " + group.name(rank) + " has " + excerpt(other, of_rank[0]));
  }
}

void check_shards(std::int64_t shards, int ranks) {
  if (ranks > shards)
    throw Error(std::to_string(ranks) + " ranks need at least as many shards of a batch, but batch.shards is " +
                std::to_string(shards));
}

std::vector<int> divided_cores(const std::vector<UsableCores>& of_process) {
  std::map<int, std::vector<std::size_t>> users;  // the processes that can use a core
  double quota = 0;                               // 0: none
  for (std::size_t i = 0; i < of_process.size(); ++i) {
    for (const int core : of_process[i].cores) users[core].push_back(i);
    const double own = of_process[i].quota;
    quota = own > 0 && (quota == 0 || own < quota) ? own : quota;
  }
  std::vector<std::vector<std::size_t>> cores;
  for (auto& [core, processes] : users) cores.push_back(std::move(processes));
  // A core that few processes can use goes to one of these first.
  std::ranges::stable_sort(cores, {}, [](const auto& processes) { return processes.size(); });
  std::vector<int> threads(of_process.size(), 0);
  for (const std::vector<std::size_t>& processes : cores)
    ++threads[*std::ranges::min_element(processes, {}, [&](std::size_t i) { return threads[i]; })];
  for (int& count : threads) {
    const double most = quota > 0 ? std::ceil(quota) / static_cast<double>(threads.size()) : count;
    count = std::max(1, static_cast<int>(std::min<double>(count, most)));
  }
  return threads;
}

int threads_of(RankGroup& group, int asked) {
  if (group.size() == 1) return asked;
  const UsableCores own = usable_cores();
  PackedBytes bytes;
  bytes.add(own.quota);
  for (const int core : own.cores) bytes.add(core);
  const std::vector<std::string> of_rank = group.all_gather(bytes.bytes());
  if (asked != 0) return asked;
  std::vector<UsableCores> here;  // of the ranks of this host
  std::size_t place = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!group.is_on_host(rank)) continue;
    if (rank == group.rank()) place = here.size();
    PackedBytes sent(of_rank[rank]);
    here.emplace_back().quota = sent.take<double>();
    while (!sent.at_end()) here.back().cores.push_back(sent.take<int>());
  }
  return std::min(default_threads().count, divided_cores(here)[place]);
}

}  // namespace xtape::ranks

namespace xtape {

void share_cores(const std::shared_ptr<Communicator>& communicator) {
  ranks::RankGroup group(communicator);
  const int own = ranks::threads_of(group, 0);
  if (own > 0) limit_default_threads(own, "its part of the cores that the ranks of its host share");
}

}  // namespace xtape
