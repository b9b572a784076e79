#include "ranks/gradient_sum.hpp"

namespace xtape::ranks {

namespace {
/// Returns the bytes of a weight, starting at an element.
std::byte* bytes_of(const Store& weights, std::size_t weight, std::int64_t element = 0) {
  Array array(weights[weight].value);
  return static_cast<std::byte*>(array.data()) + element * static_cast<std::int64_t>(size_of(array.dtype()));
}

/// Calls visit(owner, memory, bytes) for each range of adjacent elements of a weight that one rank owns.
template <class Visit>
void for_owned_ranges(const GradientLayout& layout, const Store& weights, const Visit& visit) {
  for (std::size_t i = 0; i < layout.pieces.size();) {
    const Piece& first = layout.pieces[i];
    std::int64_t count = 0;
    std::size_t k = i;
    for (; k < layout.pieces.size() && layout.pieces[k].weight == first.weight && layout.owner[k] == layout.owner[i];
         ++k)
      count += layout.pieces[k].count;
    visit(layout.owner[i], bytes_of(weights, first.weight, first.begin),
          static_cast<std::size_t>(count) * size_of(weights[first.weight].value.dtype()));
    i = k;
  }
}
}  // namespace

SharedWeights::SharedWeights(Model& model, const std::vector<std::string>& names, RankGroup& group) : group_(&group) {
  for (const std::string& name : names) weights_.add(name, Array(model.weights().at(name)));
  if (group.size() == 1) return;
  std::size_t total = 0;
  const auto rounded = [](const Array& array) { return (array.bytes() + 63) / 64 * 64; };
  for (const Store::Entry& entry : weights_) total += rounded(entry.value);
  const bool first = group.host(group.rank()) == group.rank();
  const std::vector<std::shared_ptr<std::byte>> memory = group.share(first ? total : 0);
  const std::shared_ptr<std::byte>& base = memory[group.host(group.rank())];
  Store shared;
  std::size_t at = 0;
  for (const Store::Entry& entry : weights_) {
    Array array(std::shared_ptr<std::byte>(base, base.get() + at), entry.value.dtype(), entry.value.shape());
    if (first) array.assign(entry.value);
    shared.add(entry.name, array);
    at += rounded(entry.value);
  }
  weights_ = shared;
  broadcast();
  model.use_weights(weights_);
}

void SharedWeights::broadcast() {
  std::vector<Communicator::Request> requests;
  const int rank = group_->rank();
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const std::size_t bytes = weights_[i].value.bytes();
    if (bytes == 0) continue;
    if (rank == 0) {
      for (int to = 1; to < group_->size(); ++to)
        if (group_->host(to) == to) requests.push_back(group_->communicator().send(to, bytes_of(weights_, i), bytes));
    } else if (group_->host(rank) == rank) {
      requests.push_back(group_->communicator().receive(0, bytes_of(weights_, i), bytes));
    }
  }
  group_->wait(requests);
  group_->near_barrier();
}

void SharedWeights::exchange(const GradientLayout& layout) {
  if (group_->size() == 1) return;
  const int rank = group_->rank();
  std::vector<int> hosts;  // the other hosts
  for (int other = 0; other < group_->size(); ++other)
    if (group_->host(other) == other && !group_->is_near(other)) hosts.push_back(other);
  std::vector<Communicator::Request> requests;
  if (!hosts.empty())
    for_owned_ranges(layout, weights_, [&](int owner, std::byte* memory, std::size_t bytes) {
      if (owner == rank) {
        for (int host : hosts)
          requests.push_back(group_->communicator().send(group_->receiver(rank, host), memory, bytes));
      } else if (!group_->is_near(owner) && group_->receiver(owner, group_->host(rank)) == rank) {
        requests.push_back(group_->communicator().receive(owner, memory, bytes));
      }
    });
  group_->wait(requests);
  group_->near_barrier();
}

}  // namespace xtape::ranks
