#include <algorithm>

#include "base/memory/lengths.hpp"
#include "ranks/gradient_sum.hpp"
#include "ranks/shared_work.hpp"

namespace xtape::ranks {

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

GradientLayout layout_of(const Store& weights, const std::vector<std::size_t>& order, int ranks) {
  GradientLayout layout;
  layout.pieces = pieces_of(weights);
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

}  // namespace xtape::ranks
