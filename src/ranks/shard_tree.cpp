#include "ranks/shard_tree.hpp"

#include <algorithm>

namespace xtape::ranks {

Shards shards_of(int rank, int ranks, std::int64_t shards) {
  const std::int64_t each = shards / ranks;
  const std::int64_t more = shards % ranks;
  const std::int64_t first = rank * each + std::min<std::int64_t>(rank, more);
  return {first, first + each + (rank < more ? 1 : 0)};
}

std::int64_t left_count(std::int64_t count) {
  std::int64_t left = 1;
  while (left < count - left) left *= 2;
  return left;
}

bool are_siblings(const Shards& left, const Shards& right, std::int64_t shards) {
  const std::int64_t count = left.count();
  const bool is_power_of_two = (count & (count - 1)) == 0;
  return is_power_of_two && left.first % (2 * count) == 0 && left.last == right.first &&
         right.last == std::min(left.first + 2 * count, shards);
}

namespace {
void find_tops(const Shards& node, const Shards& range, std::vector<Shards>& tops) {
  if (node.last <= range.first || node.first >= range.last) return;
  if (node.first >= range.first && node.last <= range.last) {
    tops.push_back(node);
    return;
  }
  const std::int64_t middle = node.first + left_count(node.count());
  find_tops({node.first, middle}, range, tops);
  find_tops({middle, node.last}, range, tops);
}
}  // namespace

std::vector<Shards> tops_of(const Shards& range, std::int64_t shards) {
  std::vector<Shards> tops;
  if (range.count() > 0) find_tops({0, shards}, range, tops);
  return tops;
}

double tree_sum(const double* values, std::int64_t count) {
  if (count == 0) return 0;
  if (count == 1) return values[0];
  const std::int64_t left = left_count(count);
  return tree_sum(values, left) + tree_sum(values + left, count - left);
}

int TreeStack::push(const Shards& shard) {
  Shards top = shard;
  int added = 0;
  for (; !tops_.empty() && are_siblings(tops_.back(), top, shards_); ++added) {
    top.first = tops_.back().first;
    tops_.pop_back();
  }
  tops_.push_back(top);
  return added;
}

int slots_for(const Shards& range, std::int64_t shards) {
  int slots = 1;
  TreeStack stack(shards);
  for (std::int64_t shard = range.first; shard < range.last; ++shard) {
    slots = std::max(slots, stack.next_slot() + 1);
    stack.push({shard, shard + 1});
  }
  return slots;
}

}  // namespace xtape::ranks
