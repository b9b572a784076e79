#include "ranks/gradient_sum.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/arrays/lengths.hpp"
#include "base/messages/wording.hpp"
#include "base/threads/threads.hpp"
#include "kernels/random/named_draws.hpp"
#include "kernels/table/kernels.hpp"
#include "player/plan/memory.hpp"
#include "ranks/rank_group.hpp"

namespace xtape::ranks {

// The locations of gradients.

namespace {
/// The size is large enough to make the latency of a message small relative to its transfer time on a fast network. It
/// is small enough to send most gradients of a model before the last gradients are computed.
constexpr std::size_t bucket_bytes = std::size_t{4} << 20;
constexpr std::size_t alignment = 64;

/// Distributes the pieces of a bucket. Each rank owns an equal share of the elements, and a piece goes to the rank
/// whose share contains its middle.
void deal(GradientLayout& layout, GradientLayout::Bucket& bucket, const Store& weights, int ranks) {
  std::int64_t total = 0;
  for (std::size_t index : bucket.pieces) total += layout.pieces[index].count;
  bucket.of_rank.resize(static_cast<std::size_t>(ranks));
  std::int64_t before = 0;
  for (std::size_t index : bucket.pieces) {
    const Piece& piece = layout.pieces[index];
    const double middle = static_cast<double>(before) + static_cast<double>(piece.count) / 2;
    const int rank = std::min(ranks - 1, static_cast<int>(middle * ranks / static_cast<double>(total)));
    before += piece.count;
    layout.owner[index] = rank;
    Bytes& range = bucket.of_rank[rank];
    const std::size_t first = layout.piece_at[index];
    if (range.count() == 0) range.first = first;
    range.last = first + static_cast<std::size_t>(piece.count) * size_of(weights[piece.weight].value.dtype());
  }
}
}  // namespace

GradientLayout layout_of(const Store& weights, const std::vector<Piece>& pieces, const std::vector<std::size_t>& order,
                         int ranks) {
  GradientLayout layout;
  layout.pieces = pieces;
  layout.piece_at.resize(layout.pieces.size());
  layout.owner.resize(layout.pieces.size());
  layout.weight_at.resize(weights.size());
  std::vector<std::size_t> first_piece(weights.size() + 1, layout.pieces.size());
  for (std::size_t i = layout.pieces.size(); i-- > 0;) first_piece[layout.pieces[i].weight] = i;
  std::size_t began = 0;  // the first byte of the last bucket
  for (std::size_t weight : order) {
    if (layout.buckets.empty() || layout.bytes - began >= bucket_bytes) {
      layout.buckets.emplace_back();
      began = layout.bytes;
    }
    const Array& array = weights[weight].value;
    layout.weight_at[weight] = layout.bytes;
    layout.buckets.back().weights.push_back(weight);
    for (std::size_t i = first_piece[weight]; i < layout.pieces.size() && layout.pieces[i].weight == weight; ++i) {
      layout.piece_at[i] = layout.bytes + static_cast<std::size_t>(layout.pieces[i].begin) * size_of(array.dtype());
      layout.buckets.back().pieces.push_back(i);
    }
    layout.bytes += round_up(array.bytes(), alignment);
  }
  for (GradientLayout::Bucket& bucket : layout.buckets) deal(layout, bucket, weights, ranks);
  return layout;
}

void PieceOwners::share(std::vector<double>& of_piece) {
  std::vector<PackedBytes> own(static_cast<std::size_t>(size()));
  for (std::size_t i = 0; i < of_piece.size(); ++i) own[owner_[i]].add(of_piece[i]);
  std::vector<std::string> of_rank;
  for (const PackedBytes& each : own) of_rank.push_back(each.bytes());
  group_.all_gather(of_rank);
  std::vector<PackedBytes> all(of_rank.begin(), of_rank.end());
  for (std::size_t i = 0; i < of_piece.size(); ++i) of_piece[i] = all[owner_[i]].take<double>();
}

// Noise.

namespace {
template <class T>
void add_draws(const Draws& draws, const Piece& piece, const GradientNoise& noise, T* sums) {
  static_assert(Piece::most % 2 == 0, "pairs of numbers do not cross pieces");
  for (std::int64_t i = 0; i < piece.count; i += 2) {
    const auto [first, second] = draws.normal(static_cast<std::uint64_t>((piece.begin + i) / 2), noise.update);
    sums[i] = static_cast<T>(sums[i] + noise.deviation * first);
    if (i + 1 < piece.count) sums[i + 1] = static_cast<T>(sums[i + 1] + noise.deviation * second);
  }
}
}  // namespace

void add_noise(const Store& weights, const Piece& piece, const GradientNoise& noise, void* sums) {
  const Store::Entry& weight = weights[piece.weight];
  // The names of weights have no spaces, so no initial weight draws the same numbers.
  const Draws draws(noise.seed, "noise of " + weight.name);
  if (weight.value.dtype() == Dtype::float64)
    add_draws(draws, piece, noise, static_cast<double*>(sums));
  else
    add_draws(draws, piece, noise, static_cast<float*>(sums));
}

// The sum.

namespace {
// number of elements that are added at a time, small enough for the first-level cache
constexpr std::int64_t block = 512;
// a step after every step of a plan
constexpr std::int64_t after_play = std::numeric_limits<std::int64_t>::max();

/// Returns the indices of the weights in the order in which their gradients are computed. Weights without a gradient
/// come last.
std::vector<std::size_t> order_of(const Vars& gradients) {
  std::vector<std::size_t> order(gradients.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto when = [&](std::size_t i) {
    return gradients[i].empty() ? std::numeric_limits<std::int32_t>::max() : gradients[i].id().node;
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return when(a) < when(b); });
  return order;
}

/// Adds `from` to the `lefts` arrays before it, starting with the nearest array. Each array is `stride` bytes before
/// the next one. The result is left[lefts] + (… + (left[1] + from)), and it replaces the first array in memory.
template <class T>
void add_lefts(std::byte* from, int lefts, std::size_t stride, std::int64_t count) {
  const auto left = [&](int k) { return reinterpret_cast<T*>(from - static_cast<std::size_t>(k) * stride); };
  T sum[block];
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    const T* right = left(0) + begin;
    for (int k = 1; k <= lefts; ++k) {
      const T* more = left(k) + begin;
      T* to = k == lefts ? left(k) + begin : sum;
      kernels().of<T>().add_arrays(more, right, to, size);
      right = sum;
    }
  }
}
}  // namespace

GradientSum::GradientSum(const Store& weights, const std::vector<Piece>& pieces, const Vars& gradients,
                         std::int64_t shards, bool sequence, bool overlap, int threads, RankGroup& group)
    : layout_(layout_of(weights, pieces, order_of(gradients), group.size())),
      weights_(weights),
      shards_(shards),
      overlap_(overlap),
      threads_(threads),
      group_(group),
      own_(shards_of(group.rank(), group.size(), shards)),
      slot_count_(slots_for(own_, shards) + (sequence ? 1 : 0)) {
  received_at_.resize(layout_.pieces.size());
  for (const GradientLayout::Bucket& bucket : layout_.buckets) {
    const Bytes& range = bucket.of_rank[group.rank()];
    for (std::size_t piece : bucket.pieces)
      if (layout_.owner[piece] == group.rank())
        received_at_[piece] = owned_bytes_ + layout_.piece_at[piece] - range.first;
    owned_bytes_ += (range.count() + 63) / 64 * 64;
  }
  if (bytes() > memory_limit())
    throw OutOfMemory("out of memory: gradients in " + std::to_string(shards) + " shards take " + bytes_text(bytes()) +
                      " with their partial sums, and this process can have " + bytes_text(memory_limit()) +
                      ": a smaller batch.shards takes less");
  const std::size_t total = static_cast<std::size_t>(slot_count_) * layout_.bytes;
  near_.resize(static_cast<std::size_t>(group.size()));
  if (group.size() > 1) near_ = group.share(total);
  slots_ = near_[group.rank()];
  if (!slots_) {
    const auto memory = std::make_shared<Array>(Dtype::boolean, Shape{static_cast<std::int64_t>(total)});
    slots_ = std::shared_ptr<std::byte>(memory, static_cast<std::byte*>(memory->data()));
    near_[group.rank()] = slots_;
  }
  arrays_.resize(static_cast<std::size_t>(slot_count_));
  for (int index = 0; index < slot_count_; ++index)
    for (std::size_t i = 0; i < weights_.size(); ++i)
      arrays_[index].emplace_back(std::shared_ptr<std::byte>(slots_, slot(index) + layout_.weight_at[i]),
                                  weights_[i].value.dtype(), weights_[i].value.shape());
}

Shards GradientSum::present(int rank) const {
  const Shards all = shards_of(rank, group_.size(), shards_);
  return {std::min(all.first, present_), std::min(all.last, present_)};
}

void GradientSum::begin(std::int64_t shards) {
  present_ = shards;
  stack_ = TreeStack(shards);
  next_shard_ = own_.first;
  in_sequence_ = playing_ = false;
  tops_ = tops_of(present(group_.rank()), shards);
  reached_.assign(weights_.size(), '\0');
  find_terms();
}

/// Lists the terms of the sum in order. Starts to receive the terms that other hosts send.
void GradientSum::find_terms() {
  terms_.clear();
  std::size_t sent = 0;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const std::shared_ptr<std::byte>& near = near_[rank];
    std::size_t index = 0;
    for (const Shards& top : tops_of(present(rank), present_)) {
      if (near) {
        terms_.push_back({.shards = top, .memory = near.get() + index++ * layout_.bytes, .sent = false});
        continue;
      }
      if (sent == received_.size())
        received_.emplace_back(Dtype::boolean, Shape{static_cast<std::int64_t>(owned_bytes_)});
      auto* memory = static_cast<std::byte*>(received_[sent++].data());
      terms_.push_back({.shards = top, .memory = memory, .sent = true});
      for (const GradientLayout::Bucket& bucket : layout_.buckets) {
        const std::size_t bytes = bucket.of_rank[group_.rank()].count();
        if (bytes > 0) requests_.push_back(group_.communicator().receive(rank, memory, bytes));
        memory += (bytes + 63) / 64 * 64;
      }
    }
  }
}

/// Moves the gradients of the play to its slot.
void GradientSum::move_gradients(Player& player) {
  Vars present;
  std::vector<Array> memory;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (play_.gradients[i].empty()) continue;
    reached_[i] = 1;
    present.push_back(play_.gradients[i]);
    memory.push_back(arrays_[play_.slot][i]);
  }
  const std::vector<bool> moved = player.move_outputs(present, memory);
  const std::vector<std::int64_t> final_steps = player.final_steps(present);
  std::vector<std::int64_t> final_step(weights_.size(), after_play);
  play_.moved.assign(weights_.size(), false);
  for (std::size_t i = 0, k = 0; i < weights_.size(); ++i) {
    if (play_.gradients[i].empty()) continue;
    play_.moved[i] = moved[k];
    if (moved[k] && overlap_) final_step[i] = final_steps[k];
    ++k;
  }
  play_.final_step.clear();
  for (const GradientLayout::Bucket& bucket : layout_.buckets) {
    std::int64_t last = -1;
    for (std::size_t weight : bucket.weights) last = std::max(last, final_step[weight]);
    play_.final_step.push_back(last);
  }
}

std::function<void(std::int64_t)> GradientSum::expect(Player& player, const Vars& gradients, bool ends_shard) {
  if (gradients.size() != weights_.size())
    throw Error("a play must have a gradient, which can be empty, for each of the " + std::to_string(weights_.size()) +
                " weights, not " + std::to_string(gradients.size()));
  if (playing_) throw Error("DistributedOptimizer: add() must be called after each play");
  if (next_shard_ >= present(group_.rank()).last)
    throw Error("all shards of this process have been played: it has " +
                std::to_string(present(group_.rank()).count()));
  // The first micro-batch of a shard is computed in the shard's slot. Later micro-batches are computed in the next slot
  // and added to the shard's slot.
  const int before = in_sequence_ ? 1 : 0;
  play_.player = &player;
  play_.gradients = gradients;
  play_.ends_shard = ends_shard;
  play_.slot = stack_.next_slot() + before;
  play_.lefts = before + (ends_shard ? stack_.push({next_shard_, next_shard_ + 1}) : 0);
  play_.is_top = ends_shard && contains(tops_, stack_.tops().back());
  play_.complete = 0;
  move_gradients(player);
  playing_ = true;
  if (group_.size() == 1 && play_.lefts == 0) return {};  // nothing to send or to add
  return [this](std::int64_t step) {
    complete_until(step);
    group_.progress();
  };
}

void GradientSum::add() {
  if (!playing_) throw Error("DistributedOptimizer: expect() and a play must come before add()");
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    Array array = arrays_[play_.slot][i];
    if (play_.gradients[i].empty())
      std::memset(array.data(), 0, array.bytes());
    else if (!play_.moved[i])
      array.assign(play_.player->view(play_.gradients[i]));
  }
  complete_until(after_play);
  playing_ = false;
  in_sequence_ = !play_.ends_shard;
  if (play_.ends_shard) ++next_shard_;
}

/// Completes the buckets whose gradients are final after step `step` of the play.
void GradientSum::complete_until(std::int64_t step) {
  for (; play_.complete < layout_.buckets.size() && play_.final_step[play_.complete] <= step; ++play_.complete)
    complete(layout_.buckets[play_.complete]);
}

/// Adds a bucket of the play's slot to the slots before it. If the sum is a top, sends to each rank of another host its
/// pieces of the sum.
void GradientSum::complete(const GradientLayout::Bucket& bucket) {
  if (play_.lefts > 0)
    parallel_for(threads_, std::ssize(bucket.pieces), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::size_t index = bucket.pieces[i];
        const Piece& piece = layout_.pieces[index];
        std::byte* from = slot(play_.slot) + layout_.piece_at[index];
        if (weights_[piece.weight].value.dtype() == Dtype::float64)
          add_lefts<double>(from, play_.lefts, layout_.bytes, piece.count);
        else
          add_lefts<float>(from, play_.lefts, layout_.bytes, piece.count);
      }
    });
  if (!play_.is_top) return;
  const std::byte* sum = slot(play_.slot - play_.lefts);
  for (int rank = 0; rank < group_.size(); ++rank) {
    const Bytes& range = bucket.of_rank[rank];
    if (near_[rank] || range.count() == 0) continue;
    requests_.push_back(group_.communicator().send(rank, sum + range.first, range.count()));
  }
}

void GradientSum::receive() {
  group_.wait(requests_);
}

/// Computes the sum of `node` for `count` elements of piece `index`, from element `begin` on. Reads terms from index
/// `term` on, from left to right, and advances `term` past them. If one term is the sum, returns its address. Otherwise
/// writes the sum to `to` and returns `to`.
template <class T>
const T* GradientSum::add_terms(const Shards& node, std::size_t& term, std::size_t index, std::int64_t begin,
                                std::int64_t count, T* to) const {
  if (terms_[term].shards == node) return reinterpret_cast<const T*>(at(terms_[term++], index)) + begin;
  T right_memory[block];
  const std::int64_t middle = node.first + left_count(node.count());
  const T* left = add_terms({node.first, middle}, term, index, begin, count, to);
  const T* right = add_terms({middle, node.last}, term, index, begin, count, right_memory);
  kernels().of<T>().add_arrays(left, right, to, count);
  return to;
}

template <class T>
void GradientSum::sum_piece(std::size_t index) {
  T* to = reinterpret_cast<T*>(slot(0) + layout_.piece_at[index]);
  const std::int64_t count = layout_.pieces[index].count;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const std::int64_t size = std::min(block, count - begin);
    // The sum is not written to `to` directly, because `to` may be the memory of a term that is still needed.
    T memory[block];
    std::size_t term = 0;
    const T* sum = add_terms(Shards{0, present_}, term, index, begin, size, memory);
    std::copy_n(sum, size, to + begin);
  }
}

void* GradientSum::sum(std::size_t index) {
  void* place = slot(0) + layout_.piece_at[index];
  if (terms_.size() == 1 && terms_[0].memory == slots_.get()) return place;
  if (weights_[layout_.pieces[index].weight].value.dtype() == Dtype::float64)
    sum_piece<double>(index);
  else
    sum_piece<float>(index);
  return place;
}

std::vector<SentGradients> GradientSum::sendings() const {
  std::vector<double> until = play_.player->seconds();  // the end of each step
  std::partial_sum(until.begin(), until.end(), until.begin());
  const double all = until.empty() ? 0 : until.back();
  std::vector<SentGradients> sendings;
  for (std::size_t i = 0; i < layout_.buckets.size(); ++i) {
    const std::int64_t last = play_.final_step[i];
    SentGradients sending;
    if (last < std::ssize(until) && all > 0) sending.after = last < 0 ? 0 : until[last] / all;
    for (const std::size_t weight : layout_.buckets[i].weights)
      sending.bytes += static_cast<std::int64_t>(weights_[weight].value.bytes());
    sendings.push_back(sending);
  }
  return sendings;
}

std::size_t GradientSum::absent_bytes() const {
  return bytes() - resident_bytes(slots_.get(), static_cast<std::size_t>(slot_count_) * layout_.bytes);
}

std::size_t GradientSum::bytes() const {
  std::size_t sent = 0;
  for (int rank = 0; rank < group_.size(); ++rank)
    if (!group_.is_near(rank)) sent += tops_of(shards_of(rank, group_.size(), shards_), shards_).size();
  return static_cast<std::size_t>(slot_count_) * layout_.bytes + sent * owned_bytes_;
}

}  // namespace xtape::ranks
